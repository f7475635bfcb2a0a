"""Image towers that are frozen: a pretrained one as a mentor, the offline stand-in for Unicom, and a student's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from evidex.encoders.image_towers import build_image_tower
from evidex.encoders.model_file import fingerprint_of
from evidex.encoders.towers import TowerEncoder, load_tower
from evidex.errors import ModelError
from evidex.files import sha256_of

if TYPE_CHECKING:
    from PIL.Image import Image


_BATCH = 64
_OPTIONS = {"clip_vit_b16": {"pooling": "projected"}}  # what CLIP itself compares


class TowerMentor:
    """The pooled features of the image tower in ``path``; the file's name (``resnet50.safetensors``) says which."""

    def __init__(self, path: Path, device: torch.device) -> None:
        self._tower = build_image_tower(path.stem, _OPTIONS.get(path.stem)).to(device).eval()
        load_tower(self._tower, path)
        self._device, self._size = device, _image_size(path)
        self.dim = self._tower.out_dim
        self.fingerprint = f"{path.stem}-{self._size}-{sha256_of(path)}"

    def features(self, images: Sequence[Image]) -> np.ndarray:
        """Return (n, dim) float32."""
        from PIL.Image import Resampling

        size = (self._size, self._size)
        rows = np.empty((len(images), self.dim), dtype=np.float32)
        for start in range(0, len(images), _BATCH):
            part = images[start : start + _BATCH]
            resized = [np.asarray(image.convert("RGB").resize(size, Resampling.BICUBIC)) for image in part]
            pixels = torch.from_numpy(np.stack(resized)).to(self._device).permute(0, 3, 1, 2)
            with torch.inference_mode():
                rows[start : start + len(part)] = self._tower(self._tower.normalise(pixels)).float().cpu().numpy()
        return rows


class LockedTower:
    """What the image tower of ``encoder`` pools of pictures while it is locked, before the head."""

    def __init__(self, encoder: TowerEncoder) -> None:
        self._encoder = encoder.eval()  # its batch norms look at what it saw before; training sets the rest to train
        self.dim = encoder.image_tower.out_dim
        weights = {name: value.cpu().numpy() for name, value in encoder.image_tower.state_dict().items()}
        shape = {name: encoder.spec().get(name) for name in ("image_tower", "image_options", "image_size")}
        self.fingerprint = f"pooled-{fingerprint_of(shape, 1.0, weights)}"

    def features(self, images: Sequence[Image]) -> np.ndarray:
        """Return (n, dim) float32."""
        tower, device = self._encoder.image_tower, self._encoder.device
        parts = []
        for start in range(0, len(images), _BATCH):
            prepared = [self._encoder.prepare_image(image) for image in images[start : start + _BATCH]]
            with torch.inference_mode():
                pixels = torch.from_numpy(np.stack(prepared)).to(device)
                parts.append(tower(tower.normalise(pixels)).float().cpu().numpy())
        return np.concatenate(parts)


def _image_size(path: Path) -> int:
    """Return the side of the pictures the tower was trained on: what the file says, or ImageNet's 224."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as stream:
            return int((stream.metadata() or {}).get("image_size", 224))
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"'{path}' holds no readable weights ({error}); fetch them again") from None
