"""Val parts of several sources: each measured for itself, and their mean by the number of their images."""

from __future__ import annotations

from pathlib import Path

import pytest

from evidex.config import Config
from evidex.data.datasets import load_dataset
from evidex.encoders.towers import new_compact
from evidex.progress import silent
from evidex.training.splits import decoded, prepare_pixels, prepare_split
from evidex.training.validation import LabelVal, Val, validate


def test_the_recall_of_all_is_the_mean_over_images_of_val(config: Config) -> None:
    dataset = load_dataset(Path(config.data.path), "val")
    encoder = new_compact(config.encoder, dataset.captions).eval()
    few, many = (dataset.subset(rows) for rows in (range(6), range(6, len(dataset))))
    splits = {
        name: prepare_split(part, encoder, decoded(encoder, silent)([part]))
        for name, part in (("few", few), ("many", many))
    }
    labels = [record.label for record in dataset.records]
    marked = LabelVal(prepare_pixels(dataset, encoder, silent), labels)
    found = validate(encoder, Val(splits, {"marked": marked}))
    alone = {name: validate(encoder, Val({name: split}, {})).recall for name, split in splits.items()}
    assert {name: found.sources[name] for name in alone} == {
        name: {"val_rsum": scores.rsum} for name, scores in alone.items()
    }
    assert 0 <= found.sources["marked"]["val_names"] <= 1
    share = 6 / len(dataset)
    assert found.recall.rsum == pytest.approx(share * alone["few"].rsum + (1 - share) * alone["many"].rsum)
    assert found.recall.i2t[5] == pytest.approx(share * alone["few"].i2t[5] + (1 - share) * alone["many"].i2t[5])
