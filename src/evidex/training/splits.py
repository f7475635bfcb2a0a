"""A split ready for the encoder: pictures decoded and scaled, distinct sentences as tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from evidex.data.datasets import Dataset, joined
from evidex.data.object_graphs import graphs_of
from evidex.data.pixels import prepared_pixels
from evidex.encoders.protocol import DualEncoder
from evidex.progress import Progress
from evidex.training.batches import Sentences

Pixels = np.ndarray | torch.Tensor
"""Decoded pictures (n, 3, s, s), or instead of them what a locked tower pools of each, (n, tower's out_dim)."""
Pictures = Callable[[Sequence[Dataset]], Pixels]
"""Brings those of several datasets, one after another."""

_RESIDENT_BYTES = 16 * 2**30  # pictures up to this size live on the accelerator


@dataclass(frozen=True)
class PreparedSplit:
    """Prepared pixels and tokenised distinct sentences."""

    dataset: Dataset
    pixels: Pixels
    sentences: Sentences
    tokens: dict[str, torch.Tensor]
    lengths: np.ndarray
    graphs: np.ndarray | None = None
    """Those of the pictures' objects, where the encoder looks at them."""

    def pictures(self, rows: np.ndarray) -> torch.Tensor:
        """The pixels of ``rows``, where they are."""
        return take(self.pixels, rows)


def take(pixels: Pixels, rows: np.ndarray) -> torch.Tensor:
    """The pictures at ``rows``, where they are."""
    if isinstance(pixels, torch.Tensor):
        return pixels[torch.from_numpy(rows).to(pixels.device)]
    return torch.from_numpy(pixels[rows])


def prepare_pixels(dataset: Dataset, encoder: DualEncoder, progress: Progress) -> Pixels:
    """Decode the pictures, or take them from the cache; on the encoder's accelerator if they fit."""
    how = f"{type(encoder).__name__}-{encoder.image_size}"
    pixels = prepared_pixels(dataset, encoder.prepare_image, encoder.image_size, how, progress=progress)
    resident = encoder.device.type == "cuda" and pixels.nbytes < _RESIDENT_BYTES
    return torch.from_numpy(np.array(pixels)).to(encoder.device) if resident else pixels


def decoded(encoder: DualEncoder, progress: Progress) -> Pictures:
    """The pictures as ``encoder`` wants them."""
    return lambda datasets: prepare_pixels(joined(datasets), encoder, progress)


def prepare_split(dataset: Dataset, encoder: DualEncoder, pixels: Pixels) -> PreparedSplit:
    """Put the tokens of its captions beside its pictures."""
    sentences = Sentences.of(dataset.captions)
    tokens = encoder.tokenize(sentences.texts)
    mask = tokens.get("attention_mask", torch.ones_like(tokens["input_ids"]))
    on_device = {name: ids.to(encoder.device) for name, ids in tokens.items()}
    graphs = graphs_of(dataset.records) if encoder.object_graphs else None
    return PreparedSplit(dataset, pixels, sentences, on_device, mask.sum(1).numpy(), graphs)
