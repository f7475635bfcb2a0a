"""``python -m evidex.evaluation MODEL DATASET [SPLIT]``: figures as JSON, where only torch is installed."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evidex.data.datasets import load_dataset
from evidex.encoders.model import load_model
from evidex.errors import EvidexError, outcome
from evidex.evaluation.absent import out_of_domain_queries
from evidex.evaluation.features import encode_images, encode_texts
from evidex.evaluation.foreign_pictures import foreign_pictures
from evidex.evaluation.noisy import NoisySplit
from evidex.evaluation.protocol import FOREIGN_PICTURES, FOREIGN_SEED, evaluate_features, name_scenes


def main(arguments: list[str]) -> int:
    if len(arguments) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(json.dumps(_figures(*arguments)))
    except EvidexError as error:
        print(f"evidex: error: {error}", file=sys.stderr)
        return outcome(error).exit_code
    return 0


def _figures(model_path: str, dataset_path: str, split: str = "val") -> dict[str, Any]:
    model, dataset = load_model(model_path), load_dataset(Path(dataset_path), split)
    foreign = encode_texts(model, out_of_domain_queries())
    pictures = model.encode_images(foreign_pictures(FOREIGN_PICTURES, np.random.default_rng(FOREIGN_SEED)))
    labels = [record.label for record in dataset.records]
    images = encode_images(model, dataset, batch_size=256)
    clean = evaluate_features(
        images,
        encode_texts(model, dataset.captions),
        dataset.image_of_caption,
        model.temperature,
        labels=labels if any(labels) else None,
        foreign_images=pictures,
        foreign_texts=foreign,
    )
    clean = replace(clean, scene_names=name_scenes(model, images, labels))
    noisy = NoisySplit(dataset, seed=0)
    degraded = evaluate_features(
        encode_images(model, noisy, batch_size=256),
        encode_texts(model, noisy.captions),
        np.asarray(dataset.image_of_caption),
        model.temperature,
        noisy.noisy,
        degraded_captions=noisy.changed_captions,
    )
    return {"clean": clean.to_json(), "noisy": degraded.to_json()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
