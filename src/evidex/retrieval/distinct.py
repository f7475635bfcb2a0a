"""Hits of which no two show the same picture, best first, each with the other places it was found at.

Copies are left out of the ranking after the scan: scores, evidence and all that is concluded from them are those of all
rows. Where copies take places of the head, more rows are asked for until enough distinct ones are found or none are
left, so the hits are exactly those of the whole ranking with every row passed over that shows what a better one showed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.rows import Row
from evidex.retrieval.scan.partial import Partial
from evidex.retrieval.searchable import Searchable, Selection


@dataclass(frozen=True)
class Ranked:
    """The rows that are shown for one query."""

    part: Partial
    """Its ids and scores are those of ``rows``; its evidence is that of all that were searched."""
    rows: tuple[Row, ...]
    copies: tuple[tuple[Row, ...], ...]
    """For each of ``rows``, the others that show the same picture."""


class Ranking:
    """Ranks for several queries over the same rows; ``once``: each picture once."""

    def __init__(self, rows: Searchable, selection: Selection, top: int, *, once: bool) -> None:
        self._rows, self._selection = rows, selection
        self._top, self._once = top, once
        self._known: dict[int, Row] = {}

    def look_up(self, parts: list[Partial]) -> None:
        """Read the rows of several queries at once."""
        new = np.setdiff1d(np.concatenate([part.ids for part in parts]), list(self._known)).astype(np.int64).tolist()
        self._known.update(zip(new, self._rows.look_up(new), strict=True))

    def of(self, part: Partial, vector: NDArray[np.float32]) -> Ranked:
        """What is shown of ``part``, which was found for the encoded query ``vector`` (dim,)."""
        if not self._once:
            self.look_up([part])
            return Ranked(part, tuple(self._known[row] for row in part.ids.tolist()), ((),) * len(part.ids))
        while True:
            self.look_up([part])
            kept, copies = self._passed_over(part)
            if len(kept) >= self._top or len(part.ids) == part.count:
                break
            seen = len(kept) + sum(map(len, copies))
            deeper = max(2 * len(part.ids), self._top * (1 + seen // len(kept)))
            part = self._rows.scan(vector[None], self._selection, min(deeper, part.count))[0]
        shown = replace(part, ids=part.ids[kept], scores=part.scores[kept])
        return Ranked(shown, tuple(self._known[row] for row in shown.ids.tolist()), tuple(copies))

    def _passed_over(self, part: Partial) -> tuple[list[int], list[tuple[Row, ...]]]:
        """Positions in the head of rows that show something new, as many as are wanted, and the copies of each."""
        kept: list[int] = []
        copies: list[tuple[Row, ...]] = []
        taken: set[int] = set()
        for position, place in enumerate(part.ids.tolist()):
            if place not in taken:
                found = [
                    pair
                    for pair in self._rows.copies(place, self._known[place], self._selection)
                    if pair[0] not in taken
                ]
                taken.update(where for where, _ in found)
                kept.append(position)
                copies.append(tuple(row for _, row in found))
                if len(kept) == self._top:
                    break
        return kept, copies
