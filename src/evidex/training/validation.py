"""What of the weights is kept after an epoch, and how well it finds the pairs of val."""

from __future__ import annotations

import torch

from evidex.encoders.model import Model
from evidex.encoders.protocol import DualEncoder
from evidex.encoders.towers import TowerEncoder
from evidex.encoders.whitening import whitened
from evidex.evaluation.features import match
from evidex.evaluation.recall import Recall, recall
from evidex.training.batches import spread
from evidex.training.splits import PreparedSplit

_WHITENING_IMAGES, _WHITENING_TEXTS = 2048, 4096  # of the training split; far more than a feature has dimensions


def finished(encoder: DualEncoder, power: float, split: PreparedSplit) -> DualEncoder:
    """Return what is kept of ``encoder``: itself, or a copy with heads whitened on the training ``split``."""
    if not power or not isinstance(encoder, TowerEncoder):
        return encoder.finished()
    encoder.eval()
    pixels = split.pictures(spread(len(split.pixels), _WHITENING_IMAGES))
    rows = torch.from_numpy(spread(len(split.lengths), _WHITENING_TEXTS)).to(encoder.device)
    return whitened(encoder, pixels, {name: ids[rows] for name, ids in split.tokens.items()}, power)


def validate(encoder: DualEncoder, split: PreparedSplit) -> Recall:
    """Recall among the pairs of ``split``."""
    model = Model(encoder, temperature=1.0)
    images = model.encode_pixels(split.pixels, batch_size=256)
    texts = model.encode_texts(split.sentences.texts)[split.sentences.of_caption]
    return recall(match(images, texts, model.similarity).similarity, split.dataset.image_of_caption)
