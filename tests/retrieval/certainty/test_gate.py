"""A gate defers what is above its threshold."""

from __future__ import annotations

import numpy as np

from evidex.retrieval.certainty.gate import Gate


def test_a_score_that_is_no_number_is_deferred() -> None:
    assert Gate(1.0).defers([0.5, np.nan, 1.0, 1.1]).tolist() == [False, True, False, True]
