"""What the report says of the split, the lexicon and the settings is what was done."""

from pathlib import Path

import numpy as np

from evidex.config import Config, EncoderConfig, LossConfig
from evidex.data.datasets import Dataset, load_dataset
from evidex.data.records import Record
from evidex.evaluation.noisy import NoisySplit, noisy_stages
from evidex.evaluation.report.lexicon_table import exchanges, lexicon_table, marked
from evidex.evaluation.report.results import departures
from evidex.evaluation.report.setting_pairs import encoder_words, loss_words
from tests.evaluation.colours import write_colours


def test_the_steps_end_in_the_very_image_of_the_noisy_split(tmp_path: Path) -> None:
    dataset = load_dataset(write_colours(tmp_path), "val")
    split = NoisySplit(dataset, 5)
    index = int(np.flatnonzero(split.noisy)[0])
    stages = noisy_stages(dataset.open_image(index), 5, index)
    assert np.array_equal(np.asarray(stages[0]), np.asarray(dataset.open_image(index)))
    assert np.array_equal(np.asarray(stages[-1]), np.asarray(split.open_image(index)))


def _split() -> NoisySplit:
    sentences = ("many green trees are beside the harbor .", "some planes near a runway <now> .")
    records = tuple(Record(f"{i}.jpg", "test", sentences) for i in range(40))
    return NoisySplit(Dataset("words", "test", records, tuple(Path(record.filename) for record in records)), 0)


def test_examples_of_the_lexicon_are_captions_of_the_split() -> None:
    split = _split()
    found = exchanges(split)
    assert {"colour_material", "quantifier_weakening", "spatial_relation"} <= set(found)
    for axis, exchange in found.items():
        entry = next(entry for entry in split.lexicon.entries if entry.phrase == exchange.phrase)
        assert entry.axis == axis
        assert exchange.noisy in split.captions
        others = [exchange.clean.replace(exchange.phrase, other) for other in entry.alternatives]
        assert exchange.noisy in others
    table = lexicon_table(split)
    assert table.count("<tr>") == 6
    assert "<now>" not in table


def test_words_that_differ_are_marked() -> None:
    clean, noisy = marked("two <b> ships .", "several <b> ships .")
    assert clean == "<mark>two</mark> &lt;b&gt; ships ."
    assert noisy == "<mark>several</mark> &lt;b&gt; ships ."


def test_clip_is_named_as_what_it_is() -> None:
    words = encoder_words(EncoderConfig(kind="clip", source="openai/clip-vit-base-patch32"))
    assert "clip-vit-base-patch32" in words
    assert "convnet" not in words
    assert "convnet at 224 px" in encoder_words(EncoderConfig())


def test_what_departs_from_the_printed_loss_stands_beside_the_name() -> None:
    assert departures(Config()) == ""
    ours = Config(loss=LossConfig(ucl_target="belief", b2=0.3, b3=3.0))
    assert departures(ours) == "UCL by belief, b2 = 0.3, b3 = 3"
    assert departures(Config(loss=LossConfig(objective="infonce", b2=0.3))) == ""
    assert departures(Config(loss=LossConfig(b2=0.3, relation=False))) == "b2 = 0.3, no RL"
    assert "belief" in loss_words(ours.loss)
