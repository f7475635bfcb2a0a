"""Hits as a table that fits the terminal: one line a hit, empty columns left out, long paths cut at their beginning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evidex.cli.terminal import Terminal, columns, cut, cut_left, padded
from evidex.retrieval.wording import more_places
from evidex.visible import visible

if TYPE_CHECKING:
    from evidex.retrieval.answers import Answer
    from evidex.retrieval.hits import Hit

_GAP = 2
_PLACE = "place (lat, lon)"
_LEAST_FILE = 16
_CAPTION_SHARE = 0.4


@dataclass(frozen=True)
class Pictures:
    """Hits are drawn small, each in lines that are ``width`` columns wide."""

    draw: Callable[[Hit], list[str]]
    width: int


@dataclass(frozen=True)
class _Column:
    heading: str
    cells: list[str]
    right: bool = False

    @property
    def width(self) -> int:
        return max(map(columns, [self.heading, *self.cells]))

    def fitted(self, limit: int, shorten: Callable[[str, int], str]) -> _Column:
        return _Column(self.heading, [shorten(cell, limit) for cell in self.cells], self.right)

    def lines(self) -> list[str]:
        return [padded(cell, self.width, right=self.right) for cell in [self.heading, *self.cells]]


def hit_lines(terminal: Terminal, answer: Answer, pictures: Pictures | None = None) -> list[str]:
    """The hits of ``answer`` below a heading; those that it does not stand on are dim."""
    new = set(answer.refinement.entered) if answer.refinement else set()
    ranks = _Column("", [f"{hit.rank}{'+' if hit.id in new else ''}" for hit in answer.hits])
    scores = _Column("score", [f"{hit.shown_score:.3f}" for hit in answer.hits], right=True)
    drawn = pictures.width + _GAP if pictures else 0
    described = _described(answer, terminal.width - ranks.width - scores.width - drawn - 2 * _GAP)
    gap = " " * _GAP
    left = [gap.join(cells) + gap for cells in zip(ranks.lines(), scores.lines(), strict=True)]
    right = [gap.join(cells).rstrip() for cells in zip(*(column.lines() for column in described), strict=True)]
    lines = [terminal.styled(left[0] + " " * drawn + right[0], "bold")]
    for i, hit in enumerate(answer.hits):
        style = "dim" if i >= len(answer.hits) - answer.apart else ""
        picture = [line + gap for line in pictures.draw(hit)] if pictures else []
        start, end = (terminal.styled(part[i + 1], style) for part in (left, right))
        lines.append(start + (picture[0] if picture else " " * drawn) + end)
        lines += [" " * len(left[0]) + line for line in picture[1:]]
    return lines


def _described(answer: Answer, room: int) -> list[_Column]:
    """What tells hits apart, in ``room`` columns: the file, and where there are any and they fit, place and caption."""
    files = _Column("file", [_file(hit) for hit in answer.hits])
    places = _Column(_PLACE, [_place(hit) for hit in answer.hits])
    captions = _Column("caption", [visible(" ".join((hit.caption or "").split())) for hit in answer.hits])
    placed = any(places.cells) and room - places.width - _GAP >= _LEAST_FILE
    room -= places.width + _GAP if placed else 0
    file, caption = _shared(room, files.width, captions.width if any(captions.cells) else 0)
    return [
        files.fitted(file, cut_left),
        *([places] if placed else []),
        *([captions.fitted(caption, cut)] if caption else []),
    ]


def _shared(room: int, file: int, caption: int) -> tuple[int, int]:
    """How wide files and captions may be: what they need, or their share of the room; no caption where it is narrow."""
    if caption == 0:
        return max(min(file, room), _LEAST_FILE), 0
    room -= _GAP
    captions = min(caption, max(round(room * _CAPTION_SHARE), room - file), room - _LEAST_FILE)
    if captions < len("caption"):
        return max(min(file, room + _GAP), _LEAST_FILE), 0
    return max(min(file, room - captions), _LEAST_FILE), captions


def _file(hit: Hit) -> str:
    path = visible(hit.path)
    name = path if hit.window is None else f"{path} @ {hit.window.x},{hit.window.y}"
    return f"{name} ({more_places(len(hit.copies))})" if hit.copies else name


def _place(hit: Hit) -> str:
    if hit.footprint is None:
        return ""
    longitude, latitude = hit.footprint.center
    return f"{latitude:.4f}, {longitude:.4f}"
