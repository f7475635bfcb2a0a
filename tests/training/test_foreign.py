"""Words that no picture shows: which they are, how they are asked, and that every picture excludes them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from evidex.config import Config
from evidex.data.label_names import LabelNames
from evidex.data.sources import Sources, load_sources
from evidex.encoders.domain import Domain
from evidex.encoders.nearness import Nearness
from evidex.encoders.towers import new_compact
from evidex.errors import ConfigError
from evidex.progress import silent
from evidex.training import material
from evidex.training.foreign import FAR, ForeignTexts, far_words
from evidex.training.label_lessons import LabelLessons, prepare_labels
from evidex.training.material import foreign_texts, prepare
from evidex.training.splits import decoded

CPU = torch.device("cpu")


def _table(count: int = 100) -> Nearness:
    """ "w00" stands furthest from what was taught."""
    return Nearness(tuple(f"w{n:02d}" for n in range(count)), np.linspace(0, 255, count).astype(np.uint8))


def test_far_are_the_furthest_words_that_are_taught_in_no_form() -> None:
    found = far_words(_table(), {"w03", "w05s", "w98"})
    assert found == tuple(f"w{n:02d}" for n in range(100) if n / 99 < FAR - 0.002 and n not in (3, 5))


def test_texts_are_drawn_anew_each_time_and_of_all_words() -> None:
    words = ("apron", "spoon", "trumpets")
    foreign = ForeignTexts(words, 6)
    generator = torch.Generator().manual_seed(3)
    drawn = [foreign.draw(generator) for _ in range(200)]
    assert {len(texts) for texts in drawn} == {6}
    said = {text for texts in drawn for text in texts}
    assert {"apron", "an apron", "a photo of a spoon .", "spoon and apron", "an apron on a spoon ."} <= said
    assert all(any(word in text for word in words) for text in said)
    assert foreign.draw(torch.Generator().manual_seed(3)) == drawn[0]


def test_every_picture_excludes_what_is_foreign_and_labels_stay_as_they_were(several: Config) -> None:
    sources = load_sources(several.data)
    pictures = decoded(new_compact(several.encoder, ["a river ."]), silent)
    foreign = ForeignTexts(("spoon", "piano"), 5)
    plain = prepare_labels(sources, several.data, pictures, seed=1)
    beside = prepare_labels(sources, several.data, pictures, seed=1, foreign=foreign)
    assert plain is not None
    assert beside is not None
    first, second = (each.texts(torch.Generator().manual_seed(0)) for each in (plain, beside))
    count = len(first.texts)
    assert second.texts[:count] == first.texts
    assert len(second.texts) == count + 5
    np.testing.assert_array_equal(second.exclude[:count, :count], first.exclude)
    assert second.exclude[:count, count:].all()
    assert not second.exclude[count:].any()  # rows of what has no pictures
    assert first.exclude.shape == (count, count)


def _labels_of(config: Config, sources: Sources) -> LabelLessons | None:
    return prepare(config, sources, new_compact(config.encoder, ["a river ."]), CPU, silent).lessons.labels


def test_words_that_are_taught_or_told_of_are_not_foreign(several: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Nearness(("piano", "river", "spoon", "would"), np.zeros(4, np.uint8))
    known = Domain(
        frozenset(), np.zeros(4, np.float32), np.eye(1, 4, dtype=np.float32), np.ones(2, np.float32), nearness=table
    )
    monkeypatch.setattr(material, "domain_before", lambda _: known)
    sources = load_sources(several.data)
    config = dataclasses.replace(several, data=dataclasses.replace(several.data, foreign=4))
    assert foreign_texts(config, sources, CPU) == ForeignTexts(("piano", "spoon"), 4)
    assert isinstance(prepared := _labels_of(config, sources), LabelLessons)
    assert prepared.foreign == ForeignTexts(("piano", "spoon"), 4)
    assert len(prepared.texts(torch.Generator().manual_seed(0)).texts) == len(prepared.names) + 4
    said = LabelNames({"river": ("a spoon lies in the mud .", "brook")})
    assert foreign_texts(config, dataclasses.replace(sources, label_names=said), CPU).words == ("piano",)
    told = dataclasses.replace(sources, labelled_texts=(*sources.labelled_texts, ("", "a spoon in the sand .")))
    assert foreign_texts(config, told, CPU).words == ("piano",)
    before = dataclasses.replace(known, words=frozenset({"piano"}))
    monkeypatch.setattr(material, "domain_before", lambda _: before)
    assert foreign_texts(config, sources, CPU).words == ("spoon",)
    monkeypatch.setattr(material, "domain_before", lambda _: dataclasses.replace(known, nearness=None))
    with pytest.raises(ConfigError, match=r"data\.foreign = 4 needs"):
        foreign_texts(config, sources, CPU)
