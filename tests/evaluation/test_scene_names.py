from __future__ import annotations

import itertools

import numpy as np
import pytest

from evidex.data.datasets import Dataset, load_dataset
from evidex.errors import InputError
from evidex.evaluation.protocol import evaluate
from evidex.evaluation.scene_names import FIRST, scene_names
from tests.evaluation.colours import ColourModel, write_colours


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return load_dataset(write_colours(tmp_path_factory.mktemp("colours")), "val")


def expected_by_all_orders(scores: np.ndarray, wanted: np.ndarray, first: int) -> float:
    """The mean over every order of the rows, best first and ties in the order given."""
    shares = []
    for order in itertools.permutations(range(len(scores))):
        ranked = sorted(order, key=lambda row: -scores[row])
        shares.append(wanted[ranked[:first]].mean())
    return float(np.mean(shares))


@pytest.mark.parametrize("seed", range(8))
def test_ties_are_taken_in_expectation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, 7) / 4.0
    labels = [str(label) for label in rng.choice(["port", "park"], 7)]
    labels[:2] = ["port", "park"]
    wanted = np.array(labels) == "port"
    got = scene_names(scores[None], ["port"], labels).precision["port"]
    assert got == pytest.approx(expected_by_all_orders(scores, wanted, min(FIRST, int(wanted.sum()))))


def test_a_model_that_cannot_tell_gets_chance() -> None:
    labels = ["port"] * 15 + ["park"] * 45
    found = scene_names(np.zeros((2, 60)), ["port", "park"], labels)
    assert found.precision == {"port": pytest.approx(0.25), "park": pytest.approx(0.75)}
    assert found.mean == pytest.approx(0.5)


def test_only_the_first_hits_count_and_all_of_a_rare_scene() -> None:
    labels = ["port"] * 20 + ["park"] * 3
    scores = np.stack([np.arange(23.0)[::-1], np.where(np.arange(23) == 21, 1.0, 0.0) + np.arange(23) / 100])
    found = scene_names(scores, ["port", "park"], labels)
    assert found.precision == {"port": 1.0, "park": 1.0}
    assert scene_names(-scores, ["port", "park"], labels).precision == {"port": 0.7, "park": 0.0}


def test_labels_without_an_image_are_refused() -> None:
    with pytest.raises(InputError, match="'quay'"):
        scene_names(np.zeros((1, 3)), ["quay"], ["port", "park", None])


def test_an_evaluation_asks_for_the_labels_of_its_split(dataset: Dataset) -> None:
    found = evaluate(ColourModel(), dataset, absent=False)
    labels = {record.label for record in dataset.records}
    assert found.scene_names is not None
    assert set(found.scene_names.precision) == labels
    assert found.scene_names.mean == 1.0
    assert found.to_json()["scene_names"]["mean"] == 1.0


def test_names_without_a_match_are_counted_in_galleries_of_one_label() -> None:
    labels = ["port", "park", "park", "pond"]
    similarity = np.array([[0.9, 0.1, 0.3, 0.1], [0.1, 0.2, 0.1, 0.6], [0.4, 0.1, 0.1, 0.1]])
    found = scene_names(similarity, ["port", "park", "pond"], labels, floor=0.25)
    # elsewhere: port .3 .1, park .1 .6, pond .4 .1; at home .9, .2, .1
    assert [found.refused_elsewhere, found.refused_at_home] == pytest.approx([3 / 6, 2 / 3])
    without = scene_names(similarity, ["port", "park", "pond"], labels)
    assert (without.refused_elsewhere, without.precision) == (None, found.precision)
