"""Runs on several sources: labels and captions, what is measured of each, what is told, and that all of it repeats."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from evidex.config import Config, DataConfig, SourceConfig
from evidex.data.datasets import load_dataset
from evidex.data.label_names import LabelNames
from evidex.data.sources import load_sources
from evidex.encoders.model import load_model
from evidex.encoders.towers import TowerEncoder, new_compact
from evidex.errors import ConfigError, DataError, ModelError
from evidex.progress import silent
from evidex.training.batches import epoch_batches, step_generator
from evidex.training.checkpoint import _compared
from evidex.training.label_lessons import LabelLessons, label_forms, prepare_labels
from evidex.training.lessons import Lessons
from evidex.training.loop import train
from evidex.training.material import pictured_words, prepare, shown_texts, taught_texts
from evidex.training.splits import decoded

CPU = torch.device("cpu")


def _lessons(config: Config) -> tuple[Lessons, TowerEncoder]:
    sources = load_sources(config.data)
    encoder = new_compact(config.encoder, taught_texts(sources))
    return prepare(config, sources, encoder, CPU, silent).lessons, encoder


def _weights(config: Config) -> dict[str, torch.Tensor]:
    return load_file(Path(config.output) / "checkpoint.safetensors")


def test_a_batch_holds_captions_their_twins_and_labels_in_this_order(several: Config) -> None:
    lessons, encoder = _lessons(several)
    dataset = lessons.split.dataset
    batch = next(epoch_batches(dataset, batch_size=8, pairings=2, seed=1, epoch=0, mix=lessons.mix))
    seen: list[list[str]] = []
    tokenize = encoder.tokenize

    def listening(texts: Sequence[str]) -> dict[str, torch.Tensor]:
        seen.append(list(texts))
        return tokenize(texts)

    encoder.tokenize = listening  # type: ignore[method-assign]
    pairs = lessons.pairs(batch, encoder, step_generator(1, 0))
    (texts,) = seen
    captions = [dataset.captions[row] for row in batch.captions.reshape(-1)]
    assert lessons.labels is not None
    assert pairs.labels is not None
    assert pairs.has_twin is not None
    assert texts[:16] == captions
    for has, caption, twin in zip(pairs.has_twin.tolist(), captions, texts[16:32], strict=True):
        assert (caption != twin) == has
    assert pairs.has_twin.float().mean() > 0.5
    for name, text in zip(lessons.labels.names, texts[32:], strict=True):
        assert text in label_forms(name)
    assert len(pairs.pixels) == 8 + 6
    rows = lessons.labels.rows(batch.step)
    assert pairs.labels.label.tolist() == lessons.labels.label[rows].tolist()
    assert pairs.image_ids is not None


def test_without_labels_and_twins_nothing_of_them_is_there(config: Config) -> None:
    lessons, encoder = _lessons(config)
    batch = next(epoch_batches(lessons.split.dataset, batch_size=8, pairings=1, seed=1, epoch=0, mix=lessons.mix))
    pairs = lessons.pairs(batch, encoder, step_generator(1, 0))
    assert (pairs.labels, pairs.has_twin, pairs.image_ids, len(pairs.pixels)) == (None, None, None, 8)


def test_pictures_with_labels_take_turns_and_need_no_state(several: Config) -> None:
    sources = load_sources(several.data)
    pictures = decoded(new_compact(several.encoder, ["a river ."]), silent)
    config = dataclasses.replace(several.data, labels_per_step=7)
    lessons = prepare_labels(sources, config, pictures, seed=3)
    assert isinstance(lessons, LabelLessons)
    count = len(sources.labels[0].train)
    shown = np.concatenate([lessons.rows(step) for step in range(count)])  # seven times around
    assert sorted(shown.tolist()) == sorted(list(range(count)) * 7)
    assert all(len(set(part.tolist())) == count for part in shown.reshape(7, count))
    np.testing.assert_array_equal(lessons.rows(5), lessons.rows(5))
    assert prepare_labels(dataclasses.replace(sources, labels=()), config, pictures, seed=3) is None


def test_labels_in_their_forms() -> None:
    assert label_forms("airport") == ("airport", "an airport", "an aerial image of an airport .")
    assert label_forms("storage tanks")[1] == "storage tanks"
    assert label_forms("trains stop here .") == ("trains stop here .",) * 3
    assert label_forms("place of worship")[1] == "a place of worship"
    assert label_forms("boats at a pier")[1] == "boats at a pier"
    assert label_forms("where trains stop")[1:] == ("where trains stop", "an aerial image of where trains stop .")


def test_words_are_pictured_as_often_as_the_labels_that_they_name_by_themselves(several: Config) -> None:
    sources = load_sources(several.data)
    count = Counter(record.label for source in sources.labels for record in source.train.records)
    names = LabelNames(
        {"port": ("harbour", "moored ships", "quays"), "river": ("stream", "harbour"), "lake": ("mere",)}
    )
    shown = pictured_words(dataclasses.replace(sources, label_names=names))
    assert count["port"] > 0 < count["river"]
    assert shown["harbour"] == count["port"] + count["river"]
    assert (shown["port"], shown["quays"]) == (count["port"], count["port"])
    assert shown["stream"] == count["river"]
    assert not {"moored", "ships", "moored ships", "mere", "lake", "storage", "tanks"} & shown.keys()


def test_sentences_said_of_labels_are_shown_and_teach_no_words(several: Config) -> None:
    sources = load_sources(several.data)
    names = LabelNames({"port": ("quays", "sailors sleep here ."), "nowhere": ("nobody is here .",)})
    said = dataclasses.replace(sources, label_names=names)
    taught, shown = taught_texts(said), shown_texts(said)
    assert {"quays", "an aerial image of quays ."} <= set(taught)
    assert not {"sailors sleep here .", "nobody is here ."} & set(taught)
    assert shown == [*taught, "sailors sleep here ."]


def test_a_table_without_a_name_of_any_label_is_refused(several: Config) -> None:
    sources = dataclasses.replace(load_sources(several.data), label_names=LabelNames({"nowhere": ("elsewhere",)}))
    pictures = decoded(new_compact(several.encoder, ["a river ."]), silent)
    data = dataclasses.replace(several.data, label_names="names.tsv")
    with pytest.raises(ConfigError, match=r"'names\.tsv' has no name of a label here \(.*; write labels as"):
        prepare_labels(sources, data, pictures, seed=0)


def test_what_is_pictured_is_told_when_training_ends(several: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr("evidex.training.loop.measure_saved_domain", lambda *given: told.append(given[-1]))
    train(dataclasses.replace(several, train=dataclasses.replace(several.train, epochs=1)), device=CPU)
    assert told == [pictured_words(load_sources(several.data))]


def test_a_checkpoint_of_before_these_switches_is_one_of_the_same_configuration(config: Config) -> None:
    from evidex.checked import to_table

    now = to_table(config)
    before = json.loads(json.dumps(now))
    for name in ("source", "batches", "labels_per_step", "texts"):
        del before["data"][name]
    for name in ("labels", "twins"):
        del before["loss"][name]
    assert _compared(before) == _compared(now)
    before["data"]["texts"] = ["other.json"]
    assert _compared(before) != _compared(now)


@pytest.mark.slow
def test_a_run_on_several_sources_repeats_and_tells_what_it_learnt_from(several: Config) -> None:
    again = dataclasses.replace(several, output=several.output + "-again")
    run = train(several, device=CPU)
    train(again, device=CPU)
    first, second = _weights(several), _weights(again)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert {"twins", "labels"} <= run.history[0]["loss"].keys()
    rows = run.model.card["sources"]
    assert rows == json.loads((run.model_path.parent / "sources.json").read_text())
    assert [row["name"] for row in rows][::2] == [rows[0]["name"], "marked"]
    assert rows[0]["terms"] == "rendered here"
    assert [row["val_drawn"] for row in rows] == [False, False, True]
    assert rows[0]["val_rsum"] == rows[1]["val_rsum"] == pytest.approx(run.history[0]["val_rsum"])
    assert 0 <= rows[2]["val_names"] <= 1
    assert run.history[0]["val_sources"].keys() == {row["name"] for row in rows}


@pytest.mark.slow
def test_one_source_named_in_either_way_gives_the_same_weights(config: Config) -> None:
    short = dataclasses.replace(config, train=dataclasses.replace(config.train, epochs=1))
    listed = dataclasses.replace(
        short, output=short.output + "-listed", data=DataConfig(source=(SourceConfig(config.data.path),))
    )
    for each in (short, listed):
        train(each, device=CPU)
    first, second = _weights(short), _weights(listed)
    assert all(torch.equal(first[name], second[name]) for name in first)
    model, other = (load_model(Path(each.output) / "model.safetensors", device="cpu") for each in (short, listed))
    assert model.fingerprint == other.fingerprint
    with pytest.raises(ModelError, match=r"data\.path was"):
        train(dataclasses.replace(listed, output=short.output), device=CPU)


@pytest.mark.slow
def test_mentors_features_are_those_of_each_source(several: Config) -> None:
    """With the model of a run as its mentor, image by image."""
    from evidex.config import LossConfig, MentorConfig
    from evidex.training.mentoring import mentor_features

    short = dataclasses.replace(several, loss=LossConfig(relation=False))
    run = train(short, device=CPU)
    name = str(run.model_path)
    mentored = dataclasses.replace(short, loss=LossConfig(), mentors=MentorConfig(image=name, text=name, center=False))
    sources = load_sources(several.data)
    datasets = [source.train for source in sources.captions]
    found = mentor_features(mentored, datasets, datasets[0].captions[:5], CPU)
    assert found.image is not None
    count = len(datasets[0])
    assert len(found.image) == 2 * count
    torch.testing.assert_close(found.image[:count], found.image[count:])
    expected = run.model.encode_images([load_dataset(Path(several.data.source[0].path), "train").open_image(3)])
    np.testing.assert_allclose(found.image[3], expected[0], atol=1e-5)
    again = dataclasses.replace(mentored, output=several.output + "-mentored")
    assert train(again, device=CPU).history[0]["loss"]["relation"] > 0


def _named(several: Config, folder: Path, captions: float = 0.0) -> LabelLessons:
    """The lessons of labels that share names, one of them a label itself, with captions of one of them."""
    table = folder / "names.tsv"
    table.write_text("label\tnames\nriver\tstream|water\nlake\twater\ndesert\tlake\n")
    texts = folder / "texts.json"
    texts.write_text(json.dumps({"texts": [{"label": "stream", "captions": ["a stream between trees ."]}]}))
    document = json.loads((folder / "marked" / "labels.json").read_text())
    for number, entry in enumerate(document["images"]):
        entry["label"] = ("river", "lake", "desert")[number % 3]
    (folder / "marked" / "labels.json").write_text(json.dumps(document))
    data = dataclasses.replace(several.data, label_names=str(table), texts=(str(texts),), label_captions=captions)
    pictures = decoded(new_compact(several.encoder, ["a river ."]), silent)
    lessons = prepare_labels(load_sources(data), data, pictures, seed=1)
    assert lessons is not None
    assert lessons.names == ("desert", "lake", "river")
    return lessons


def test_another_name_stands_for_its_label_and_is_kept_from_no_label_it_holds_for(
    several: Config, tmp_path: Path
) -> None:
    lessons = _named(several, tmp_path)
    holds = {"desert": {0}, "lake": {0, 1}, "river": {2}, "stream": {2}, "water": {1, 2}}
    name_of = {form: name for name in holds for form in label_forms(name)}
    generator = torch.Generator().manual_seed(0)
    drawn = [lessons.texts(generator) for _ in range(400)]
    for step in drawn:
        names = [name_of[text] for text in step.texts]
        expected = [[row != column and row not in holds[names[column]] for column in range(3)] for row in range(3)]
        assert step.exclude.tolist() == expected
    for place, own, others in ((0, "desert", ["lake"]), (1, "lake", ["water"]), (2, "river", ["stream", "water"])):
        counts = Counter(name_of[step.texts[place]] for step in drawn)
        assert 160 <= counts.pop(own) <= 240  # half of the time its own name
        assert sorted(counts) == others
        assert min(counts.values()) >= 70
    assert lessons.exclude.sum() == 6  # what all steps share is not changed


def test_captions_of_pictures_that_are_not_at_hand_stand_for_their_label(several: Config, tmp_path: Path) -> None:
    lessons = _named(several, tmp_path, captions=0.4)
    generator = torch.Generator().manual_seed(0)
    drawn = [lessons.texts(generator).texts for _ in range(400)]
    rivers = [texts[2] for texts in drawn]
    assert 120 <= rivers.count("a stream between trees .") <= 200
    own = sum(text in label_forms("river") for text in rivers)
    assert 80 <= own <= 160  # half of the rest
    assert 160 <= sum(texts[1] in label_forms("lake") for texts in drawn) <= 240  # which has no captions
    assert not any("stream" in text for texts in drawn for text in texts[:2])


def test_a_run_learns_from_names_and_captions_of_labels(several: Config, tmp_path: Path) -> None:
    table = tmp_path / "names.tsv"
    table.write_text("label\tnames\nriver\tstream|flowing water\n")
    data = dataclasses.replace(several.data, label_names=str(table))
    run = train(dataclasses.replace(several, data=data))
    assert run.history[-1]["loss"]["labels"] > 0
    with pytest.raises(DataError, match=r"none\.tsv"):
        load_sources(dataclasses.replace(several.data, label_names=str(tmp_path / "none.tsv")))
