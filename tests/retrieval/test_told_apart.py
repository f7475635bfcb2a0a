"""Numbers and states in questions: what the model that comes with evidex cannot tell."""

from __future__ import annotations

import numpy as np
import pytest

from evidex.encoders.model import Model, load_model
from evidex.retrieval.out_of_domain import Reading, readings
from evidex.retrieval.told_apart import counted


@pytest.fixture(scope="module")
def compact() -> Model:
    return load_model("compact")


def _read(model: Model, *texts: str) -> list[Reading]:
    return readings(model, texts, np.asarray(model.encode_texts(list(texts)), np.float32), "text")


def test_a_number_of_things_is_told(compact: Model) -> None:
    texts = ["two planes", "one tree", "show me a single tree", "are there a pair of bridges?", "exactly 3 ships"]
    assert [read.counted for read in _read(compact, *texts)] == ["two", "one", "a single", "a pair of", "3"]


@pytest.mark.parametrize(
    "text",
    [
        "planes",
        "houses on two sides of a road",
        "two sides of a river",
        "a road from one bank to the other",
        "one or two trees",
        "one of the runways",
        "a six lane road",
        "747 on a runway",
        "2019 flood",
        "many planes",
        "single houses with gardens",
    ],
)
def test_other_numbers_are_not(text: str) -> None:
    assert counted(text) is None


def test_a_state_that_was_hardly_taught_is_told_and_others_are_not(compact: Model) -> None:
    told = _read(compact, "broken bridge", "flooded houses", "an abandoned factory", "damaged roofs")
    for read, word in zip(told, ("broken", "flooded", "abandoned", "damaged"), strict=True):
        assert word in (read.state, *read.ignored_words, *read.new_words, *read.in_passing)
    for read in _read(compact, "empty parking lot", "bare land", "a busy intersection", "dry river"):
        assert (read.state, read.counted) == (None, None)
