from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evidex.errors import DataError, InputError, ModelError
from evidex.retrieval.certainty.guarantee import Guarantee
from evidex.retrieval.gate import Calibration, Gate, certainty_lost, deferred
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


def test_a_score_that_is_no_number_is_deferred() -> None:
    assert Gate(1.0).defers([0.5, np.nan, 1.0, 1.1]).tolist() == [False, True, False, True]


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


def test_a_saved_calibration_comes_back(tmp_path: Path) -> None:
    scores = np.random.default_rng(4).standard_normal(300)
    promise = Guarantee(0.05, 0.1, 1.25, 240, 120, 2, top=5, refine_ratio=0.1, gallery_size=5470)
    none = Guarantee(0.01, 0.1, None, 240, 0, 0)
    saved = Calibration("abc123", "image", 5470, "certainty_lost", scores, (promise, none))
    saved.save(tmp_path / "calibration.json")
    loaded = Calibration.load(tmp_path / "calibration.json")
    np.testing.assert_array_equal(loaded.scores, np.sort(scores))
    assert loaded.guarantees == (promise, none)
    assert (loaded.model_fingerprint, loaded.direction, loaded.gallery_size, loaded.score) == (
        "abc123",
        "image",
        5470,
        "certainty_lost",
    )


def test_a_calibration_of_something_else_is_refused() -> None:
    calibration = calibration_of([1.0])
    calibration.check("abc123", "text", "certainty_lost")
    with pytest.raises(ModelError, match="made with model abc123, not def456"):
        calibration.check("def456", "text", "certainty_lost")
    with pytest.raises(InputError, match="for text queries, not image"):
        calibration.check("abc123", "image", "certainty_lost")
    with pytest.raises(InputError, match="'certainty_lost', not 'entropy'"):
        calibration.check("abc123", "text", "entropy")


@pytest.mark.parametrize(
    "change",
    [
        {"direction": "sound"},
        {"scores": []},
        {"scores": [1.0, None]},
        {"scores": "x"},
        {"guarantees": [{}]},
        {"format": None},
    ],
)
def test_a_damaged_file_is_refused_in_words(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "calibration.json"
    calibration_of([1.0, 2.0]).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 3} | change))
    with pytest.raises(DataError, match="is no calibration"):
        Calibration.load(path)


def test_a_calibration_whose_numbers_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    calibration_of([1.0, 2.0]).save(path)
    path.write_text(path.read_text().replace("2.0", "2.5"))
    with pytest.raises(DataError, match="checksum is wrong"):
        Calibration.load(path)


def test_foreign_missing_and_newer_files_are_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    with pytest.raises(DataError, match="does not exist"):
        Calibration.load(path)
    for content in ("", "[]", "{}", "\x00"):
        path.write_text(content)
        with pytest.raises(DataError, match="is no calibration"):
            Calibration.load(path)
    path.write_text('{"format": 99}')
    with pytest.raises(DataError, match="format 99, newer than 4"):
        Calibration.load(path)


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="finite"):
        calibration_of([1.0, np.nan])
    with pytest.raises(InputError, match=r"ratio 1\.5"):
        calibration_of([1.0]).gate(1.5)
