from __future__ import annotations

import numpy as np
import pytest

from evidex.errors import InputError, ModelError
from evidex.retrieval.certainty.calibration import Calibration
from evidex.retrieval.certainty.scores import certainty_lost
from evidex.retrieval.refine import deferred
from evidex.retrieval.scan.scan import scan


def calibration_of(scores: list[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> Calibration:
    return Calibration("abc123", "text", 1000, "certainty_lost", np.asarray(scores, np.float64))


def test_the_ratio_gate_defers_the_most_uncertain_of_a_batch() -> None:
    rng = np.random.default_rng(0)
    uncertainty = rng.permutation(100) / 100.0
    mask = deferred(uncertainty, 0.1)
    assert sorted(uncertainty[mask].tolist()) == [i / 100 for i in range(90, 100)]


@pytest.mark.parametrize("ratio", [0.0, 0.05, 0.1, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("count", [1, 7, 30, 100])
def test_the_stored_gate_defers_that_share_of_its_own_queries(ratio: float, count: int) -> None:
    scores = np.random.default_rng(count).standard_normal(count)
    mask = calibration_of(scores).gate(ratio).defers(scores)
    assert mask.sum() == int(ratio * count + 1e-9)
    assert not mask.any() or scores[mask].min() > scores[~mask].max(initial=-np.inf)


def test_the_stored_gate_defers_about_that_share_of_new_queries() -> None:
    rng = np.random.default_rng(1)
    gate = calibration_of(rng.standard_normal(4000)).gate(0.2)
    assert gate.defers(rng.standard_normal(4000)).mean() == pytest.approx(0.2, abs=0.03)


def test_equal_scores_are_treated_alike() -> None:
    gate = calibration_of([1.0, 1.0, 1.0, 2.0]).gate(0.5)
    assert gate.defers([1.0, 2.0]).tolist() == [False, True]


def test_the_percentile_is_the_share_of_more_certain_queries() -> None:
    calibration = calibration_of([3.0, 1.0, 2.0, 2.0])
    assert calibration.percentile([0.0, 1.0, 2.0, 2.5, 3.0, 9.0]).tolist() == [0, 0.125, 0.5, 0.75, 0.875, 1]
    assert float(calibration.percentile(2.0)) == 0.5


def test_a_percentile_keeps_its_meaning_when_the_gallery_grows() -> None:
    rng = np.random.default_rng(2)
    gallery = rng.standard_normal((8000, 16)).astype(np.float32)
    gallery /= np.linalg.norm(gallery, axis=1, keepdims=True)
    queries = rng.standard_normal((60, 16)).astype(np.float32) / np.float32(5)
    small = scan(queries, gallery[:2000], temperature=0.1, top=1)
    large = scan(queries, gallery, temperature=0.1, top=1)
    calibration = Calibration("abc123", "text", small.count, "certainty_lost", certainty_lost(small))
    drift = np.abs(calibration.percentile(certainty_lost(large)) - calibration.percentile(certainty_lost(small)))
    assert drift.mean() < 0.05
    # The sum itself would put every query of the larger gallery among the most certain.
    by_sum = Calibration("abc123", "text", small.count, "sum", -small.log_sum_exp)
    assert by_sum.percentile(-large.log_sum_exp).mean() < 0.2


def test_certainty_lost_is_the_log_odds_of_the_uncertainty() -> None:
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((50, 4)).astype(np.float32)
    result = scan(vectors[:5], vectors, temperature=1.0, top=3)
    log_odds = np.log(result.uncertainty / (1 - result.uncertainty))
    np.testing.assert_allclose(certainty_lost(result), log_odds, rtol=1e-9)
    assert float(certainty_lost(result[2])) == pytest.approx(log_odds[2])


def test_a_calibration_of_something_else_is_refused() -> None:
    calibration = calibration_of([1.0])
    calibration.check("abc123", "text", "certainty_lost")
    with pytest.raises(ModelError, match="made with model abc123, not def456"):
        calibration.check("def456", "text", "certainty_lost")
    with pytest.raises(InputError, match="for text queries, not image"):
        calibration.check("abc123", "image", "certainty_lost")
    with pytest.raises(InputError, match="'certainty_lost', not 'entropy'"):
        calibration.check("abc123", "text", "entropy")


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="finite"):
        calibration_of([1.0, np.nan])
    with pytest.raises(InputError, match=r"ratio 1\.5"):
        calibration_of([1.0]).gate(1.5)
