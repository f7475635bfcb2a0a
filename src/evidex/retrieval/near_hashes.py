"""Which of many perceptual hashes differ from a given one in a few bits only, without comparing all.

Cut into four bands of 16 bits, two hashes that differ in at most 4 k + 3 bits differ in at most k in one of the bands:
only those are compared that have such a value there. Nothing is missed, and memory is some 24 bytes a hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evidex.data.perceptual_hash import BITS

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]
_WIDTH = 16
_BANDS = BITS // _WIDTH


@dataclass(frozen=True, eq=False)
class _Band:
    """The hashes ordered by 16 of their bits; those with value v begin at ``starts[v]``."""

    number: int
    order: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, hashes: Hashes, number: int) -> _Band:
        keys = _bits(hashes, number)
        starts = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=1 << _WIDTH))])
        return cls(number, np.argsort(keys, kind="stable").astype(np.int32), starts)

    def close_to(self, value: np.uint64, flips: NDArray[np.uint16]) -> NDArray[np.int32]:
        """Those whose bits here are those of ``value`` with one of ``flips`` applied."""
        keys = (_bits(np.array([value]), self.number) ^ flips).astype(np.int64)
        first, counts = self.starts[keys], self.starts[keys + 1] - self.starts[keys]
        before = np.cumsum(counts) - counts
        return np.asarray(self.order[np.repeat(first - before, counts) + np.arange(counts.sum())])


class NearHashes:
    """``hashes`` (n,), of which those in the mask ``known`` (n,) are looked at; ``most`` bits may differ."""

    def __init__(self, hashes: Hashes, known: NDArray[np.bool_], most: int) -> None:
        self._most = most
        self._places = np.flatnonzero(known)
        self._hashes = hashes[self._places]
        self._bands = [_Band.of(self._hashes, number) for number in range(_BANDS)]
        bits = [1 << bit for bit in range(_WIDTH)]
        few = (sum(chosen) for count in range(most // _BANDS + 1) for chosen in combinations(bits, count))
        self._flips = np.array(list(few), np.uint16)

    def near(self, value: int) -> Places:
        """Places of the hashes that differ from ``value`` in at most ``most`` bits, in their order."""
        wanted = np.uint64(value)
        candidates = np.concatenate([band.close_to(wanted, self._flips) for band in self._bands])
        close = candidates[np.bitwise_count(self._hashes[candidates] ^ wanted) <= self._most]
        return np.asarray(self._places[np.unique(close)])


def _bits(hashes: Hashes, band: int) -> NDArray[np.uint16]:
    return (hashes >> np.uint64(band * _WIDTH)).astype(np.uint16)
