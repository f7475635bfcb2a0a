"""Pictures in the terminal."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image
from rich.console import Console

from evidex.cli.half_blocks import can_show, half_blocks


def test_two_pixels_to_a_character() -> None:
    pixels = np.zeros((4, 4, 3), np.uint8)
    pixels[0], pixels[1] = (255, 0, 0), (0, 255, 0)
    text = half_blocks(Image.fromarray(pixels), 4)
    assert text.plain == "▀▀▀▀\n▀▀▀▀"
    stream = io.StringIO()
    Console(file=stream, force_terminal=True, color_system="truecolor", width=20).print(text)
    assert "38;2;255;0;0" in stream.getvalue()
    assert "48;2;0;255;0" in stream.getvalue()


def test_strips_stay_small() -> None:
    for size in ((1, 3000), (3000, 1), (1, 1)):
        lines = half_blocks(Image.new("RGB", size), 18).plain.split("\n")
        assert 1 <= len(lines) <= 18
        assert {len(line) for line in lines} == {18}


def test_only_capable_terminals_get_pictures() -> None:
    assert not can_show(Console(file=io.StringIO()))
    assert not can_show(Console(file=io.StringIO(), force_terminal=True, color_system="standard"))
