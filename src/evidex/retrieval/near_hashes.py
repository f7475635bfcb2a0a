"""Which of many perceptual hashes differ from a given one in a few bits only, without comparing all.

Cut into one more band than bits may differ, two hashes so near agree in one whole band at least: only those that share
a band are compared. Nothing is missed, and memory is a few bytes a hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evidex.data.perceptual_hash import BITS

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Band:
    """The hashes ordered by some of their bits; those with value v begin at ``starts[v]``."""

    shift: int
    width: int
    order: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, hashes: Hashes, shift: int, width: int) -> _Band:
        keys = _bits(hashes, shift, width)
        order = np.argsort(keys, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=1 << width))])
        return cls(shift, width, order.astype(np.int32), starts)

    def sharing(self, value: np.uint64) -> NDArray[np.int32]:
        key = int(_bits(np.array([value]), self.shift, self.width)[0])
        return self.order[self.starts[key] : self.starts[key + 1]]


class NearHashes:
    """``hashes`` (n,), of which those in the mask ``known`` (n,) are looked at.

    ``most`` bits may differ, at least 3: bands are then short, and can be counted through.
    """

    def __init__(self, hashes: Hashes, known: NDArray[np.bool_], most: int) -> None:
        self._most = most
        self._places = np.flatnonzero(known)
        self._hashes = hashes[self._places]
        edges = np.linspace(0, BITS, most + 2).round().astype(int).tolist()
        self._bands = [_Band.of(self._hashes, a, b - a) for a, b in pairwise(edges)]

    def near(self, value: int) -> Places:
        """Places of the hashes that differ from ``value`` in at most ``most`` bits, in their order."""
        wanted = np.uint64(value)
        candidates = np.concatenate([band.sharing(wanted) for band in self._bands])
        close = candidates[np.bitwise_count(self._hashes[candidates] ^ wanted) <= self._most]
        return np.asarray(self._places[np.unique(close)])


def _bits(hashes: Hashes, shift: int, width: int) -> NDArray[np.int64]:
    return ((hashes >> np.uint64(shift)) & np.uint64((1 << width) - 1)).astype(np.int64)
