"""Hits as a table that fits the terminal: one line a hit, empty columns left out, long paths cut at their beginning."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from evidex.retrieval.answers import Answer
    from evidex.retrieval.hits import Hit

_GAP = 2
_PLACE = "place (lat, lon)"
_LEAST_FILE = 16
_CAPTION_SHARE = 0.4


def hit_table(answer: Answer, width: int, draw: Callable[[Hit], RenderableType] | None = None, drawn: int = 0) -> Table:
    """The hits of ``answer`` in ``width`` columns; ``draw`` makes their pictures, ``drawn`` columns wide."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    new = set(answer.refinement.entered) if answer.refinement else set()
    ranks = [f"{hit.rank}{'+' if hit.id in new else ''}" for hit in answer.hits]
    scores = [f"{hit.shown_score:.3f}" for hit in answer.hits]
    files = [_file(hit) for hit in answer.hits]
    places = [_place(hit) for hit in answer.hits]
    captions = [" ".join((hit.caption or "").split()) for hit in answer.hits]

    def longest(cells: list[str]) -> int:
        return max(map(cell_len, cells), default=0)

    fixed = longest(ranks) + _GAP + longest([*scores, "score"])
    fixed += drawn + _GAP if draw is not None else 0
    place_width = longest([*places, _PLACE]) + _GAP
    placed = any(places) and width - fixed - _GAP - place_width >= _LEAST_FILE
    fixed += place_width if placed else 0
    file_width, caption_width = _shared(
        width - fixed - _GAP, longest([*files, "file"]), longest([*captions, "caption"]) if any(captions) else 0
    )

    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    table.add_column("", no_wrap=True, min_width=longest(ranks))
    table.add_column("score", justify="right", no_wrap=True, min_width=longest([*scores, "score"]))
    if draw is not None:
        table.add_column("", no_wrap=True)
    table.add_column("file", no_wrap=True)
    if placed:
        table.add_column(_PLACE, no_wrap=True)
    if caption_width:
        table.add_column("caption", no_wrap=True)
    for i, hit in enumerate(answer.hits):
        cells: list[RenderableType] = [ranks[i], scores[i]]
        if draw is not None:
            cells.append(draw(hit))
        cells.append(Text(cut_left(files[i], file_width)))
        if placed:
            cells.append(places[i])
        if caption_width:
            caption = Text(captions[i])
            caption.truncate(caption_width, overflow="ellipsis")
            cells.append(caption)
        table.add_row(*cells, style="dim" if i >= len(answer.hits) - answer.apart else None)
    return table


def cut_left(text: str, width: int) -> str:
    """``text`` in ``width`` columns; what does not fit goes from the left, where paths are alike."""
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return text
    while text and cell_len(text) > width - 1:
        text = text[1:]
    return "…" + text


def _shared(room: int, file: int, caption: int) -> tuple[int, int]:
    """How wide files and captions may be: what they need, or their share of the room; no caption where it is narrow."""
    if caption == 0:
        return max(min(file, room), _LEAST_FILE), 0
    room -= _GAP
    captions = min(caption, max(round(room * _CAPTION_SHARE), room - file))
    if captions < len("caption"):
        return max(min(file, room + _GAP), _LEAST_FILE), 0
    return max(min(file, room - captions), _LEAST_FILE), captions


def _file(hit: Hit) -> str:
    return hit.path if hit.window is None else f"{hit.path} @ {hit.window.x},{hit.window.y}"


def _place(hit: Hit) -> str:
    if hit.footprint is None:
        return ""
    longitude, latitude = hit.footprint.center
    return f"{latitude:.4f}, {longitude:.4f}"
