"""A published CLIP in one file, as open_clip and OpenAI save it, as a model to measure (RemoteCLIP, for one)."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from evidex.encoders.clip.encoder import ClipEncoder
from evidex.encoders.clip.open_clip_weights import Activation
from evidex.encoders.engines import choose
from evidex.encoders.model import Model
from evidex.encoders.torch_engine import moved


def load_clip_file(path: str | Path, *, tokenizer: str, activation: str, device: str | None = None) -> Model:
    """Return the CLIP at ``path``, at the temperature that it was trained with.

    Such a file comes without ``tokenizer``, any CLIP's folder or hub name, and does not tell its ``activation``:
    quick_gelu in OpenAI's, gelu in open_clip's plain names and in RemoteCLIP as its authors load it.
    """
    clip = ClipEncoder.from_open_clip(path, tokenizer=tokenizer, activation=cast(Activation, activation))
    return Model(moved(clip, choose("clip", device, "torch").device), clip.native_temperature)
