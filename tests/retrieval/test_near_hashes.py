"""Near hashes are found as comparing with all of them would."""

from __future__ import annotations

import numpy as np
import pytest

from evidex.retrieval.near_hashes import NearHashes


@pytest.mark.parametrize("most", [0, 3, 4, 8, 11])
def test_it_finds_what_comparing_all_finds(most: int) -> None:
    rng = np.random.default_rng(most)
    hashes = rng.integers(0, 2**64, 300, dtype=np.uint64)
    for place in range(0, 300, 3):  # so many bits from the one before, up to a few too many
        flips = rng.permutation(64)[: rng.integers(0, most + 4)]
        hashes[place + 1] = hashes[place] ^ np.bitwise_or.reduce(np.uint64(1) << flips.astype(np.uint64), initial=0)
    known = rng.random(300) < 0.9
    near = NearHashes(hashes, known, most)
    for value in hashes:
        expected = np.flatnonzero((np.bitwise_count(hashes ^ value) <= most) & known)
        assert near.near(int(value)).tolist() == expected.tolist()


def test_none_are_near_where_there_are_none() -> None:
    assert NearHashes(np.zeros(0, np.uint64), np.zeros(0, np.bool_), 8).near(5).tolist() == []
