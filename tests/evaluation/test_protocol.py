from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evidex.data.datasets import Dataset, load_dataset
from evidex.errors import InputError
from evidex.evaluation import auroc, hits_i2t, recall, selective, uncertainty_scores
from evidex.evaluation.deferral import Refinements
from evidex.evaluation.features import encode_images, encode_texts, match
from evidex.evaluation.protocol import evaluate, evaluate_features
from evidex.evaluation.query_uncertainty import SCORE_NAMES
from tests.evaluation.colours import ColourModel, write_colours


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return load_dataset(write_colours(tmp_path_factory.mktemp("colours")), "val")


def random_features(rows: int, seed: int) -> NDArray[np.float32]:
    values = np.random.default_rng(seed).normal(size=(rows, 16))
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), dtype=np.float32)


def test_features_are_measured_as_the_parts_say() -> None:
    images, texts, owner = random_features(20, 0), random_features(60, 1), np.repeat(np.arange(20), 3)
    got = evaluate_features(images, texts, owner, 0.1)
    similarity = match(images, texts).similarity
    assert got.recall == recall(similarity, owner)
    entropy = uncertainty_scores(similarity, 0.1).entropy
    expected = selective(entropy, hits_i2t(similarity, owner, 10))
    assert got.i2t.quality["entropy"].error_auroc[10] == pytest.approx(expected.auroc)
    assert got.i2t.quality["entropy"].aurc[10] == pytest.approx(expected.aurc)
    assert got.t2i.quality["entropy"].degraded_auroc is None
    assert got.t2i.quality["entropy"].out_of_domain_auroc is None


def test_directions_are_not_mixed_up() -> None:
    images, texts, owner = random_features(9, 2), random_features(27, 3), np.repeat(np.arange(9), 3)
    degraded = np.arange(9) < 4
    got = evaluate_features(
        images,
        texts,
        owner,
        0.1,
        degraded,
        out_of_domain=(random_features(5, 4), random_features(7, 5)),
    )
    assert len(got.i2t.scores.vacuity) == 9
    assert len(got.t2i.scores.vacuity) == 27
    u = uncertainty_scores(texts @ images.T, 0.1).vacuity
    out_of_domain = uncertainty_scores(random_features(7, 5) @ images.T, 0.1).vacuity
    quality = got.t2i.quality["vacuity"]
    assert quality.degraded_auroc == pytest.approx(auroc(u[degraded[owner]], u[~degraded[owner]]))
    assert quality.out_of_domain_auroc == pytest.approx(auroc(out_of_domain, u))


def test_equal_features_get_equal_scores_whatever_their_place() -> None:
    images, texts = random_features(37, 6), random_features(401, 7)
    texts[5::9] = texts[5]
    images[3::5] = images[3]
    found = match(images, texts)
    assert (found.similarity[:, 5::9] == found.similarity[:, [5]]).all()
    assert (found.similarity[3::5] == found.similarity[[3]]).all()
    np.testing.assert_allclose(found.similarity, images @ texts.T, atol=1e-6)
    assert len(set(found.text_identity[5::9])) == 1
    assert len(set(found.text_identity)) == len({row.tobytes() for row in texts})


def test_features_of_unequal_width_are_refused() -> None:
    with pytest.raises(InputError, match="equal width"):
        match(random_features(3, 0), random_features(3, 0)[:, :8])


def test_each_distinct_text_is_encoded_once() -> None:
    model = ColourModel()
    rows = encode_texts(model, ["a red roof .", "a blue roof .", "a red roof ."])
    assert model.texts_seen == ["a red roof .", "a blue roof ."]
    assert (rows[0] == rows[2]).all()
    assert (rows[0] != rows[1]).any()


def test_images_are_encoded_in_order(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = encode_images(ColourModel(), dataset)
    monkeypatch.setattr("evidex.evaluation.features._IMAGES_IN_MEMORY", 5)
    np.testing.assert_array_equal(encode_images(ColourModel(), dataset), whole)
    np.testing.assert_array_equal(encode_images(ColourModel(), dataset, [7, 2]), whole[[7, 2]])


def test_a_model_of_colours_finds_colours(dataset: Dataset) -> None:
    got = evaluate(ColourModel(), dataset)
    # Six images share each colour and its sentences: one in six is right at random, all among the first ten.
    assert got.recall.t2i[1] == pytest.approx(100 / 6, abs=12)
    assert got.recall.t2i[10] == 100.0
    assert got.recall.i2t[1] == pytest.approx(100 / 6, abs=1e-9)
    assert got.clean_recall is None
    assert got.i2t.quality["max_similarity"].removed_class_auroc == 1.0
    assert (got.images, got.captions) == (24, 72)


def test_noise_lowers_no_other_half(dataset: Dataset) -> None:
    clean = evaluate(ColourModel(), dataset, absent=False)
    noisy = evaluate(ColourModel(), dataset, noisy_seed=3, absent=False)
    assert noisy.clean_recall == clean.recall
    assert noisy.encoded is not None
    assert clean.encoded is not None
    assert noisy.encoded.degraded_images is not None
    changed = (noisy.encoded.images != clean.encoded.images).any(axis=1)
    np.testing.assert_array_equal(changed, noisy.encoded.degraded_images)
    assert changed.sum() == 12
    assert noisy.i2t.quality["vacuity"].degraded_auroc is not None
    again = evaluate(ColourModel(), dataset, noisy_seed=3, absent=False)
    assert json.dumps(again.to_json()) == json.dumps(noisy.to_json())


def test_deferral_refines_the_share_that_was_asked(dataset: Dataset) -> None:
    got = evaluate(ColourModel(), dataset, refinements=Refinements((0.0, 0.25, 1.0)), absent=False)
    none, some, all_of_them = got.deferral
    assert none.recall == got.recall
    assert (none.image_queries, some.image_queries, all_of_them.image_queries) == (0, 6, 24)
    assert (none.text_queries, some.text_queries, all_of_them.text_queries) == (0, 18, 72)
    alone = evaluate(ColourModel(), dataset, refinements=Refinements((0.25,)), absent=False)
    assert alone.deferral == (some,)


def test_the_result_is_plain_json(dataset: Dataset, tmp_path: Path) -> None:
    from evidex.files import write_json_atomic

    got = evaluate(ColourModel(), dataset, noisy_seed=0, refinements=Refinements((0.1,)))
    write_json_atomic(tmp_path / "result.json", got.to_json())
    table = json.loads((tmp_path / "result.json").read_text())
    assert table["dataset"] == "colours"
    assert table["fingerprint"] == "c0102"
    assert table["recall"]["rsum"] == pytest.approx(got.recall.rsum)
    assert set(table["uncertainty"]["t2i"]["scores"]) == set(SCORE_NAMES)
    assert table["deferral"][0]["ratio"] == 0.1


def test_an_undefined_figure_becomes_null() -> None:
    images = np.eye(4, dtype=np.float32)
    got = evaluate_features(images, images, np.arange(4), 0.1)
    assert math.isnan(got.i2t.quality["vacuity"].error_auroc[1])
    assert got.to_json()["uncertainty"]["i2t"]["scores"]["vacuity"]["error_auroc"]["1"] is None


def test_progress_runs_to_its_end_and_never_back(dataset: Dataset) -> None:
    seen: list[tuple[int, int]] = []
    evaluate(
        ColourModel(),
        dataset,
        noisy_seed=1,
        refinements=Refinements((0.2,)),
        progress=lambda done, total: seen.append((done, total)),
    )
    done = [step for step, _ in seen]
    assert done == sorted(done)
    assert len({total for _, total in seen}) == 1
    assert seen[-1][0] == seen[-1][1]


def test_a_split_without_labels_skips_the_class_test(dataset: Dataset) -> None:
    from dataclasses import replace

    bare = Dataset(
        dataset.name, dataset.split, tuple(replace(r, label=None) for r in dataset.records), dataset.locations
    )
    got = evaluate(ColourModel(), bare)
    assert got.i2t.quality["vacuity"].removed_class_auroc is None
    assert got.i2t.quality["vacuity"].out_of_domain_auroc is not None
