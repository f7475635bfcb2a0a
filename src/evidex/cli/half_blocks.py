"""Small pictures in a terminal: half blocks, two pixels to a character."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image
    from rich.console import Console
    from rich.text import Text


def can_show(console: Console) -> bool:
    """Whether the terminal has 24-bit colour and writes block characters."""
    return (
        console.is_terminal
        and console.color_system == "truecolor"
        and (console.encoding or "").lower().replace("-", "") == "utf8"
        and os.environ.get("TERM") != "dumb"
    )


def half_blocks(picture: Image, columns: int) -> Text:
    """The picture as text of ``columns`` characters a line."""
    import numpy as np
    from rich.text import Text

    rows = max(2, round(columns * picture.height / picture.width / 2) * 2)
    small = picture.convert("RGB").resize((columns, min(rows, 2 * columns)))
    pixels = np.asarray(small)
    text = Text()
    for y in range(0, small.height - 1, 2):
        for x in range(columns):
            (r, g, b), (r2, g2, b2) = pixels[y, x], pixels[y + 1, x]
            text.append("▀", style=f"rgb({r},{g},{b}) on rgb({r2},{g2},{b2})")
        if y + 3 < small.height:
            text.append("\n")
    return text
