"""The scan of few rows, which numpy does: a query finds the same whichever others it is asked with."""

from __future__ import annotations

import numpy as np
import pytest

from evidex.retrieval.scan.scan import scan


def _unit(count: int, dim: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@pytest.mark.parametrize("rows", [1, 60, 3001])
def test_a_query_finds_the_same_to_the_last_bit_in_any_batch(rows: int) -> None:
    queries, vectors = _unit(33, 512, 0), _unit(rows, 512, 1)
    together = scan(queries, vectors, temperature=0.05, top=5)
    for number in range(len(queries)):
        alone = scan(queries[number : number + 1], vectors, temperature=0.05, top=5)
        np.testing.assert_array_equal(alone.ids[0], together.ids[number])
        np.testing.assert_array_equal(alone.scores[0], together.scores[number])
        np.testing.assert_array_equal(alone.log_sum_exp[0], together.log_sum_exp[number])
