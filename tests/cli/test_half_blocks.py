"""Pictures in the terminal."""

from __future__ import annotations

import re

import numpy as np
from PIL import Image

from evidex.cli.half_blocks import half_blocks

_CODES = re.compile("\x1b\\[[0-9;]*m")


def test_two_pixels_to_a_character() -> None:
    pixels = np.zeros((4, 4, 3), np.uint8)
    pixels[0], pixels[1] = (255, 0, 0), (0, 255, 0)
    lines = half_blocks(Image.fromarray(pixels), 4)
    assert [_CODES.sub("", line) for line in lines] == ["▀▀▀▀", "▀▀▀▀"]
    assert lines[0].count("38;2;255;0;0;48;2;0;255;0") == 4
    assert all(line.endswith("\x1b[0m") for line in lines)


def test_strips_stay_small() -> None:
    for size in ((1, 3000), (3000, 1), (1, 1)):
        lines = [_CODES.sub("", line) for line in half_blocks(Image.new("RGB", size), 18)]
        assert {len(line) for line in lines} == {18}
        assert 1 <= len(lines) <= 18
