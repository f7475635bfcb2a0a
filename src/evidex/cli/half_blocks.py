"""Small pictures in a terminal: half blocks, two pixels to a character."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image


def half_blocks(picture: Image, columns: int) -> list[str]:
    """The picture as lines of ``columns`` characters."""
    import numpy as np

    rows = max(2, round(columns * picture.height / picture.width / 2) * 2)
    small = picture.convert("RGB").resize((columns, min(rows, 2 * columns)))
    pixels = np.asarray(small).tolist()
    return [
        "".join(_block(upper, lower) for upper, lower in zip(pixels[y], pixels[y + 1], strict=True)) + "\x1b[0m"
        for y in range(0, small.height - 1, 2)
    ]


def _block(upper: list[int], lower: list[int]) -> str:
    """A character whose upper half has one colour, and its lower half the other."""
    (r, g, b), (r2, g2, b2) = upper, lower
    return f"\x1b[38;2;{r};{g};{b};48;2;{r2};{g2};{b2}m▀"
