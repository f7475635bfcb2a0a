"""Ranges of a gallery's rows, and how a gallery is cut into them."""

from __future__ import annotations

from dataclasses import dataclass

_UNEVEN = 1.5
"""How much more than its share the last range may hold before all are cut anew."""


@dataclass(frozen=True)
class Span:
    """Rows ``first`` to ``stop`` of one version of a gallery."""

    version: int
    first: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.first


class MovedError(Exception):
    """The gallery that a process sees is not at the version it was asked about; ``seen`` is the one it is at."""

    def __init__(self, seen: int) -> None:
        super().__init__(seen)
        self.seen = seen


def cut(version: int, rows: int, shards: int, before: tuple[Span, ...] = ()) -> tuple[Span, ...]:
    """Ranges of all ``rows``, as even as they go; rows that were added since ``before`` go to the last.

    What a process holds stays where it is while a gallery grows, until the last has far more than the others.
    """
    starts = [span.first for span in before]
    if len(starts) != shards or rows < before[-1].stop or (rows - starts[-1]) * shards > _UNEVEN * rows:
        starts = [rows * number // shards for number in range(shards)]
    return tuple(Span(version, first, stop) for first, stop in zip(starts, [*starts[1:], rows], strict=True))
