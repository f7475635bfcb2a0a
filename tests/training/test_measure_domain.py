"""What a run tells its model: from which captions, when there are too few, and that it is told once."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from evidex.config import Config
from evidex.data.datasets import load_dataset
from evidex.encoders.domain import fit_domain
from evidex.encoders.model import Model, load_model
from evidex.training import measure_domain as measuring
from evidex.training.loop import train
from evidex.training.measure_domain import LEAST_OTHERS, LEAST_TEXTS, LEAST_WORDS, measure_domain, with_counts
from tests.retrieval.archive import tiny_model

CPU = torch.device("cpu")


def _word(number: int) -> str:
    """A word of letters alone, another one for each number."""
    return "q" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


def _texts(first: int, count: int, words: int) -> list[str]:
    """``count`` distinct texts with ``words`` distinct words between them."""
    each = -(-words // count)
    lines = [" ".join(_word((n * each + k) % words) for k in range(each)) for n in range(count)]
    return [f"{line} {n}" for n, line in enumerate(lines, start=first)]


class _Killed(Exception):
    pass


class _Listening(Model):
    """Arbitrary vectors, and a note of which texts they were asked for."""

    def __init__(self, *, blind: bool = False) -> None:
        plain = tiny_model()
        super().__init__(plain.encoder, plain.temperature)
        self.asked: list[list[str]] = []
        self._blind = blind

    def encode_texts(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        self.asked.append(list(texts))
        vectors = np.random.default_rng(len(texts)).standard_normal((len(texts), self.dim)).astype(np.float32)
        return np.ones_like(vectors) if self._blind else vectors


TAUGHT, OTHERS = _texts(0, LEAST_TEXTS, LEAST_WORDS), _texts(10_000, LEAST_OTHERS, 300)


def test_the_words_are_those_of_the_captions_of_the_lexicon_and_of_every_sentence() -> None:
    model = _Listening()
    known = measure_domain(model, TAUGHT + TAUGHT[:50], OTHERS + TAUGHT[:50])
    assert known is not None
    assert model.asked == [sorted(TAUGHT), sorted(OTHERS)], "each text once, and none of the others trained"
    assert known.new_words(f"{_word(7)} aircraft without giraffes and {_word(LEAST_WORDS)}") == (
        "giraffes", _word(LEAST_WORDS),
    )  # fmt: skip


def test_of_very_many_texts_some_are_asked_that_are_spread_over_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "MOST_TEXTS", 90)
    model = _Listening()
    assert measure_domain(model, TAUGHT, OTHERS) is not None
    for asked, texts in zip(model.asked, (sorted(TAUGHT), sorted(OTHERS)), strict=True):
        places = [texts.index(text) for text in asked]
        assert len(places) == 90
        assert (places[0], places[-1]) == (0, len(texts) - 1)
        assert max(np.diff(places)) <= len(texts) / 90 + 2


def test_little_teaching_says_nothing() -> None:
    few_words = _texts(0, LEAST_TEXTS, LEAST_WORDS - 1)
    for taught, others in (
        (few_words, OTHERS),
        (_texts(0, LEAST_TEXTS - 1, LEAST_WORDS), OTHERS),
        (TAUGHT, OTHERS[1:]),
        (TAUGHT, TAUGHT),
        ([], []),
    ):
        assert measure_domain(_Listening(), taught, others) is None


def test_what_a_model_knew_before_counts() -> None:
    before = measure_domain(_Listening(), TAUGHT, OTHERS)
    few = _texts(50_000, LEAST_TEXTS, 30)
    model = _Listening()
    known = measure_domain(model, few, OTHERS, before)
    assert model.asked == [sorted(few), sorted(OTHERS)]  # its vectors are those of now
    assert before is not None
    assert known is not None
    assert before.words | known.words == known.words


def test_words_are_counted_in_distinct_captions_and_as_what_they_may_stand_for() -> None:
    ports = [f"an airport {n}" for n in range(7)]
    taught = [*TAUGHT, *ports, *ports, "a socks"]
    known = measure_domain(_Listening(), taught, OTHERS)
    assert known is not None
    assert known.counts is not None
    alone = {text for text in taught if _word(7) in text.split()}
    assert (known.counts[_word(7)], known.counts["socks"]) == (len(alone), 1)
    assert known.counts["aerodrome"] == known.counts["airport"] == 7, "the lexicon exchanges them"
    assert known.counts["whom"] == 0, "a word of grammar that no caption has"
    assert with_counts(dataclasses.replace(known, counts=None), taught).counts == known.counts


def test_a_word_that_is_a_labels_name_was_taught_as_often_as_it_was_pictured() -> None:
    taught = [*TAUGHT, "a silo by itself", *(f"a pier {n}" for n in range(9))]
    pictured = {"silo": 40, "pier": 5, "gazebo": 8}
    known = measure_domain(_Listening(), taught, OTHERS, pictured=pictured)
    assert known is not None
    assert known.counts is not None
    assert (known.counts["silo"], known.counts["pier"], known.counts["gazebo"]) == (40, 9, 8)
    assert with_counts(dataclasses.replace(known, counts=None), taught, pictured).counts == known.counts
    assert with_counts(known, taught).counts is not None
    assert with_counts(known, taught).times_taught("silo") == 1


def test_counts_go_on_from_those_before_and_are_none_where_they_were_none() -> None:
    before = measure_domain(_Listening(), TAUGHT, OTHERS)
    assert before is not None
    again = measure_domain(_Listening(), TAUGHT[:LEAST_TEXTS], OTHERS, before)
    assert again is not None
    assert before.counts is not None
    assert again.counts == {word: 2 * often for word, often in before.counts.items()}
    uncounted = measure_domain(_Listening(), TAUGHT, OTHERS, dataclasses.replace(before, counts=None))
    assert uncounted is not None
    assert uncounted.counts is None


def test_a_model_that_tells_no_texts_apart_gets_none() -> None:
    assert measure_domain(_Listening(blind=True), TAUGHT, OTHERS) is None


@pytest.fixture
def little_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rendered archive's captions count, though they are poor in words."""
    for name, least in (("LEAST_WORDS", 50), ("LEAST_TEXTS", 65), ("LEAST_OTHERS", 5)):
        monkeypatch.setattr(measuring, name, least)


@pytest.fixture
def short(config: Config) -> Config:
    return dataclasses.replace(config, train=dataclasses.replace(config.train, epochs=2))


@pytest.mark.slow
def test_a_run_on_the_sample_archive_is_not_told_and_does_not_refuse_its_users(short: Config) -> None:
    assert train(short, device=CPU).model.domain is None


@pytest.mark.slow
@pytest.mark.usefixtures("little_is_enough")
def test_a_finished_run_knows_its_training_captions_by_its_best_weights(short: Config) -> None:
    run = train(short, device=CPU)
    known = load_model(run.model_path, device="cpu").domain
    assert known is not None
    assert run.model.domain is not None
    assert run.model.domain.digest == known.digest
    taught, val = (load_dataset(Path(short.data.path), split).captions for split in ("train", "val"))
    expected = fit_domain(
        known.words,
        run.model.encode_texts(sorted(set(taught))),
        run.model.encode_texts(sorted(set(val) - set(taught))),
    )
    np.testing.assert_array_equal(known.mean, expected.mean)
    np.testing.assert_array_equal(known.lengths, expected.lengths)
    assert all(not known.new_words(text) for text in taught)
    assert known.new_words("a giraffe") == ("giraffe",)
    assert run.model.card["config"]["seed"] == short.seed, "the card stays"


@pytest.mark.slow
@pytest.mark.usefixtures("little_is_enough")
def test_further_captions_without_pictures_widen_what_counts_as_taught(short: Config, tmp_path: Path) -> None:
    further = [f"a giraffe beside {number} quarries ." for number in range(200)]
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps({"texts": [{"captions": further}]}))
    wider = dataclasses.replace(
        short, output=f"{short.output}-wider", data=dataclasses.replace(short.data, texts=(str(texts),))
    )
    plain, widened = (train(each, device=CPU).model for each in (short, wider))
    assert plain.fingerprint == widened.fingerprint, "they teach the towers nothing"
    assert plain.domain is not None
    assert widened.domain is not None
    assert plain.domain.new_words("giraffes in a quarry") == ("giraffes", "quarry")
    assert widened.domain.new_words("giraffes in a quarry") == ()
    vectors = plain.encode_texts(further)
    assert widened.domain.outside(vectors).mean() < plain.domain.outside(vectors).mean()


@pytest.mark.slow
@pytest.mark.usefixtures("little_is_enough")
def test_a_run_that_ends_before_it_is_told_is_told_by_the_next_and_then_never_again(
    short: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(short, device=CPU).model_path
    bytes_of_whole = whole.read_bytes()
    broken = dataclasses.replace(short, output=str(whole.parent.parent / "broken"))

    def dies(*_: object) -> None:
        raise _Killed

    with monkeypatch.context() as killed:
        killed.setattr(measuring, "measure_domain", dies)
        with pytest.raises(_Killed):
            train(broken, device=CPU)
        path = Path(broken.output) / "model.safetensors"
        assert load_model(path, device="cpu").domain is None, "what was trained is whole all the same"
    left = path.with_name("left.safetensors")
    shutil.copy(path, left)
    train(broken, device=CPU)
    repaired = path.read_bytes()
    assert load_model(path, device="cpu").fingerprint == load_model(left, device="cpu").fingerprint
    assert len(repaired) > left.stat().st_size

    monkeypatch.setattr(measuring, "measure_domain", dies)
    train(short, device=CPU)
    train(broken, device=CPU)
    assert whole.read_bytes() == bytes_of_whole
    assert path.read_bytes() == repaired
    tensors = [dict(load_model(each, device="cpu").encoder.weights()) for each in (whole, path)]
    assert all(np.array_equal(tensors[0][name], tensors[1][name]) for name in tensors[0])
    digests = {known.digest for each in (whole, path) if (known := load_model(each, device="cpu").domain)}
    assert len(digests) == 1


ALONE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import evidex.training.loop
from evidex.config import EncoderConfig
from evidex.encoders.model import Model
from evidex.encoders.towers import new_compact
from evidex.training.measure_domain import measure_domain
model = Model(new_compact(EncoderConfig(image_size=32, dim=32), {taught!r}), 0.1)
assert measure_domain(model, {taught!r}, {others!r}) is not None
"""


@pytest.mark.slow
def test_training_is_told_where_little_but_torch_is_installed() -> None:
    absent = {"PIL", "lance", "pyarrow", "numba", "llvmlite", "rasterio", "typer", "rich", "matplotlib", "fastapi"}
    absent |= {"onnxruntime"}
    script = ALONE.format(absent=absent, taught=TAUGHT, others=OTHERS)
    done = subprocess.run([sys.executable], input=script, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
