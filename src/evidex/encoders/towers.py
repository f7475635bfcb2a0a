"""Two towers with a linear head each: the compact encoder, and larger ones that start from pretrained towers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import normalize

from evidex.config import EncoderConfig
from evidex.documents import is_file, is_folder
from evidex.encoders.image_tower import ImageTower
from evidex.encoders.image_towers import build_image_tower
from evidex.encoders.preprocess import resize_to_square
from evidex.encoders.protocol import PlacedEncoder, Places
from evidex.encoders.published_text import named_as_ours, published_shape, published_vocabulary
from evidex.encoders.text_towers import TextShape, TextTower
from evidex.encoders.wordpiece import MAX_TOKENS, WordPiece, build_vocabulary
from evidex.errors import ModelError

if TYPE_CHECKING:
    from PIL.Image import Image

_TOGETHER = 32
"""Texts that are encoded together where they are grouped by length."""


class TowerEncoder(PlacedEncoder):
    """An image tower and a text tower, each followed by dropout and a linear head into the common space."""

    def __init__(self, spec: dict[str, Any]) -> None:
        super().__init__()
        self._spec = spec
        self.dim = int(spec["dim"])
        self.image_size = int(spec["image_size"])
        self.tokenizer = WordPiece(spec["vocabulary"], MAX_TOKENS)
        self.image_tower = build_image_tower(spec["image_tower"], spec.get("image_options"))
        self.text_tower = TextTower(TextShape(**spec["text_shape"]), spec.get("dropout", 0.0))
        self.image_head = nn.Linear(self.image_tower.out_dim, self.dim)
        self.text_head = nn.Linear(self.text_tower.out_dim, self.dim)
        self.dropout = nn.Dropout(spec.get("dropout", 0.0))
        self.freeze_batch_norm = False

    def prepare_image(self, image: Image) -> np.ndarray:
        return resize_to_square(image, self.image_size)

    def tokenize(self, texts: Sequence[str]) -> dict[str, torch.Tensor]:
        return {name: torch.from_numpy(ids) for name, ids in self.tokenizer(texts).items()}

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return normalize(self.image_projection(pixels), dim=-1)

    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        return normalize(self.text_projection(tokens), dim=-1)

    def text_outputs(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return `text_features`; on a CPU, where padding costs as much as words, texts of like length go together."""
        ids, mask = tokens["input_ids"], tokens["attention_mask"]
        if ids.device.type != "cpu" or len(ids) < 2 * _TOGETHER:
            return self.text_features(tokens)
        lengths = mask.sum(1)  # padding is at the end
        order = lengths.argsort(stable=True)
        groups = [(rows, int(lengths[rows].max())) for rows in order.split(_TOGETHER)]
        parts = [self.text_features({name: each[rows, :end] for name, each in tokens.items()}) for rows, end in groups]
        return torch.cat(parts)[order.argsort()]

    def image_projection(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return what the image head makes of the pictures, before it is brought to unit length.

        Rows (n, out_dim) are what the tower pooled of them before: one that is locked need not look at them again.
        """
        pooled = pixels if pixels.ndim == 2 else self.image_tower(self.image_tower.normalise(pixels))
        projected: torch.Tensor = self.image_head(self.dropout(pooled)).float()
        return projected

    def text_projection(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return what the text head makes of the sentences, before it is brought to unit length."""
        pooled = self.text_tower(tokens["input_ids"], tokens["attention_mask"])
        projected: torch.Tensor = self.text_head(self.dropout(pooled)).float()
        return projected

    def image_places(self, pixels: torch.Tensor) -> Places:
        grid = self.image_pyramid(pixels)[-1]
        rows = grid.flatten(2).transpose(1, 2)
        return Places(rows, torch.ones(rows.shape[:2], dtype=torch.bool, device=rows.device))

    def text_places(self, tokens: dict[str, torch.Tensor]) -> Places:
        rows = self.text_tower.tokens(tokens["input_ids"], tokens["attention_mask"])
        return Places(rows, self.word_mask(tokens))

    def word_mask(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        return tokens["attention_mask"].bool()

    def new_place_head(self) -> nn.Linear:
        return nn.Linear(self.image_tower.channels[-1], self.dim)

    def new_word_head(self) -> nn.Linear:
        return nn.Linear(self.text_tower.out_dim, self.dim)

    def image_pyramid(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        return self.image_tower.grids(self.image_tower.normalise(pixels))

    def pyramid_channels(self) -> list[int]:
        return list(self.image_tower.channels)

    def image_entry_and_blocks(self) -> tuple[nn.Module, list[nn.Module]]:
        return self.image_tower.entry(), self.image_tower.blocks()

    def text_entry_and_blocks(self) -> tuple[nn.Module, list[nn.Module]]:
        return self.text_tower.entry(), self.text_tower.blocks()

    def heads(self) -> list[nn.Module]:
        return [self.image_head, self.text_head]

    def train(self, mode: bool = True) -> TowerEncoder:
        super().train(mode)
        if mode and self.freeze_batch_norm:
            for module in self.image_tower.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()
        return self

    def spec(self) -> dict[str, Any]:
        return self._spec


def new_compact(config: EncoderConfig, texts: Iterable[str]) -> TowerEncoder:
    """Return an untrained compact encoder whose vocabulary is that of ``texts``."""
    vocabulary = build_vocabulary(texts)
    return TowerEncoder(
        {
            "kind": "towers",
            "image_tower": "convnet",
            "image_size": config.image_size,
            "text_shape": TextShape(vocabulary=len(vocabulary)).described(),
            "vocabulary": vocabulary,
            "dim": config.dim,
            "dropout": config.dropout,
        }
    )


def from_pretrained_towers(config: EncoderConfig) -> TowerEncoder:
    """Return towers that start from the weights in the folder ``config.source`` (see scripts/fetch_weights.py).

    The heads are new. ``config.text_layers`` keeps only that many of the text tower's first layers.
    """
    folder = Path(config.source)
    text_folder = folder / config.text_tower
    if not is_folder(text_folder):
        raise ModelError(f"'{text_folder}' has no text tower: no such folder; run scripts/fetch_weights.py")
    shape = published_shape(text_folder, MAX_TOKENS, config.text_layers)
    encoder = TowerEncoder(
        {
            "kind": "towers",
            "image_tower": config.image_tower,
            "image_size": config.image_size,
            "text_shape": shape.described(),
            "vocabulary": published_vocabulary(text_folder),
            "dim": config.dim,
            "dropout": config.dropout,
            **({"image_options": options} if (options := _image_options(config)) else {}),
        }
    )
    load_tower(encoder.image_tower, folder / f"{config.image_tower}.safetensors")
    load_tower(encoder.text_tower, text_folder / "model.safetensors")
    return encoder


def _image_options(config: EncoderConfig) -> dict[str, Any]:
    """Return what the image tower has to be told; a convolutional one takes pictures of any size."""
    options: dict[str, Any] = {} if config.pooling == "mean" else {"pooling": config.pooling}
    if config.image_tower == "clip_vit_b16":
        options["image_size"] = config.image_size
    return options


def load_tower(tower: ImageTower | TextTower, path: Path) -> None:
    """Load ``path`` into ``tower``: every parameter of the tower must be there; heads for other tasks are left out."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not is_file(path):
        raise ModelError(f"'{path}' does not exist; run scripts/fetch_weights.py")
    try:
        source = named_as_ours(load_file(path))
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"'{path}' is no readable safetensors file ({error}); fetch it again") from None
    wanted = tower.state_dict()
    for name, value in wanted.items():
        if name.endswith("num_batches_tracked"):
            continue
        if name not in source:
            raise ModelError(f"'{path}' lacks '{name}'; it belongs to another architecture")
        found = tower.fit(name, source[name])
        if found.shape != value.shape:
            raise ModelError(f"'{path}': '{name}' has shape {tuple(found.shape)}, expected {tuple(value.shape)}")
        value.copy_(found)
