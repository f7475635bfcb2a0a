"""What of the weights is kept after an epoch, and how well it finds the pairs of val, source by source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from evidex.data.labels import as_typed
from evidex.encoders.model import Model
from evidex.encoders.protocol import DualEncoder
from evidex.encoders.towers import TowerEncoder
from evidex.encoders.whitening import whitened
from evidex.evaluation.features import match
from evidex.evaluation.recall import Recall, recall
from evidex.evaluation.scene_names import scene_names
from evidex.training.batches import spread
from evidex.training.splits import Pixels, PreparedSplit

_WHITENING_IMAGES, _WHITENING_TEXTS = 2048, 4096  # of the training split; far more than a feature has dimensions


def finished(encoder: DualEncoder, power: float, split: PreparedSplit) -> DualEncoder:
    """Return what is kept of ``encoder``: itself, or a copy with heads whitened on the training ``split``."""
    if not power or not isinstance(encoder, TowerEncoder):
        return encoder.finished()
    encoder.eval()
    pixels = split.pictures(spread(len(split.pixels), _WHITENING_IMAGES))
    rows = torch.from_numpy(spread(len(split.lengths), _WHITENING_TEXTS)).to(encoder.device)
    return whitened(encoder, pixels, {name: ids[rows] for name, ids in split.tokens.items()}, power)


@dataclass(frozen=True)
class LabelVal:
    """The val part of a source that has labels alone."""

    pixels: Pixels
    labels: Sequence[str | None]


@dataclass(frozen=True)
class Val:
    """The val parts of all sources by their names: those with captions, and those with labels."""

    captions: Mapping[str, PreparedSplit]
    labels: Mapping[str, LabelVal]


@dataclass(frozen=True)
class Validation:
    """The recall that decides which weights are kept, and what was measured of each source."""

    recall: Recall
    sources: dict[str, dict[str, float]]


def validate(encoder: DualEncoder, val: Val) -> Validation:
    """Measure each source on its own val part: recall among its pairs, or how many first hits have the label asked for.

    The recall of all is the mean over the sources, each with the weight of its val images: the few images of a small
    source say little, and decide as little.
    """
    model = Model(encoder, temperature=1.0)
    scores = {name: _recall(model, split) for name, split in val.captions.items()}
    found = {name: {"val_rsum": each.rsum} for name, each in scores.items()}
    found |= {name: {"val_names": _names(model, part)} for name, part in val.labels.items()}
    return Validation(_mean(list(scores.values()), [len(split.dataset) for split in val.captions.values()]), found)


def _recall(model: Model, split: PreparedSplit) -> Recall:
    images = model.encode_pixels(split.pixels, batch_size=256, graphs=split.graphs)
    texts = model.encode_texts(split.sentences.texts)[split.sentences.of_caption]
    return recall(match(images, texts, model.similarity).similarity, split.dataset.image_of_caption)


def _names(model: Model, part: LabelVal) -> float:
    names = sorted({label for label in part.labels if label is not None})
    queries = model.encode_texts([as_typed(name) for name in names])
    images = model.encode_pixels(part.pixels, batch_size=256)
    return scene_names(match(images, queries, model.similarity).similarity.T, names, part.labels).mean


def _mean(scores: Sequence[Recall], weights: Sequence[int]) -> Recall:
    if len(scores) == 1:
        return scores[0]
    i2t, t2i = (
        {k: float(np.average([values[k] for values in each], weights=weights)) for k in each[0]}
        for each in ([one.i2t for one in scores], [one.t2i for one in scores])
    )
    return Recall(i2t, t2i)
