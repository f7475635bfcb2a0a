"""What is done about queries by where they stand among those of a calibration."""

from __future__ import annotations

import numpy as np
import pytest

from evidex.retrieval.certainty.calibration import Calibration
from evidex.retrieval.certainty.guarantee import Guarantee
from evidex.retrieval.certainty.policy import Policy
from evidex.retrieval.scan.partial import ScanResult

NO_VECTORS = np.zeros((0, 4), np.float32)
CALIBRATION = Calibration("abc123", "text", 100, "similarity", -np.linspace(0.0, 1.0, 101))


def _seen(*best: float) -> ScanResult:
    ids, scores = np.zeros((len(best), 1), np.int64), np.array(best)[:, None]
    return ScanResult(ids, scores, np.ones(len(best)), 100, 0.1)


def test_queries_are_compared_with_the_calibrations_and_passed_through_both_gates() -> None:
    judged = Policy.of(CALIBRATION, 0.2, 0.1).judge(_seen(0.995, 0.495, 0.155, 0.015, np.nan), NO_VECTORS, NO_VECTORS)
    assert [one.percentile for one in judged[:4]] == pytest.approx([0.0, 0.5, 0.84, 0.98], abs=0.011)
    assert [one.unsure for one in judged] == [False, False, True, True, True]
    assert [one.unsupported for one in judged] == [False, False, False, True, True]
    assert {(one.chance, one.chance_top) for one in judged} == {(None, None)}


def test_a_guaranteed_threshold_decides_about_abstaining() -> None:
    guaranteed = Calibration(
        "abc123", "text", 100, "similarity", CALIBRATION.scores, (Guarantee(0.1, 0.1, -0.5, 80, 40, 1),)
    )
    judged = Policy.of(guaranteed, 0.0, 0.02).judge(_seen(0.6, 0.4), NO_VECTORS, NO_VECTORS)
    assert [(one.unsure, one.unsupported) for one in judged] == [(False, False), (False, True)]
