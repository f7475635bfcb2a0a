"""Pretrained text towers as they are published: folders with a BERT or an MPNet, read as our text tower has them."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from evidex.documents import read_json, read_text
from evidex.encoders.sizes import TEXT_EPSILON
from evidex.encoders.text_towers import TextShape
from evidex.errors import ModelError

_LARGEST_SIZE = 1 << 24
_SIZES = {
    "vocabulary": "vocab_size",
    "hidden": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "intermediate": "intermediate_size",
}
_EPSILON, _DISTANCES = "layer_norm_eps", "relative_attention_num_buckets"
_MPNET_DISTANCES = 32
_MPNET_PARTS = {"q": "self.query", "k": "self.key", "v": "self.value", "o": "output.dense"}
_MPNET_NAME = re.compile(r"\.attention\.(?:attn\.([qkvo])|LayerNorm)\.")
_POSITIONS = "embeddings.position_embeddings.weight"
_MPNET_FIRST_POSITION = 2
"""Where MPNet begins to count: the rows before are for padding."""


def published_shape(folder: Path, positions: int, layers: int = 0) -> TextShape:
    """The shape of the text tower in ``folder``, for texts of ``positions`` tokens; of ``layers`` only, unless 0."""
    path = folder / "config.json"
    content = read_json(path, ModelError)
    content = content if isinstance(content, dict) else {}
    sizes = {name: _size(content, published, path) for name, published in _SIZES.items()}
    sizes["layers"] = layers or sizes["layers"]
    epsilon = content.get(_EPSILON, TEXT_EPSILON)
    if not isinstance(epsilon, float) or not 0 < epsilon < 1:
        raise _wrong(path, _EPSILON, epsilon)
    if content.get("model_type") != "mpnet":
        return TextShape(**sizes, positions=positions, epsilon=epsilon)
    distances = content.get(_DISTANCES, _MPNET_DISTANCES)
    if distances != _MPNET_DISTANCES:  # transformers sorts distances into 32 whatever is said here
        raise _wrong(path, _DISTANCES, distances)
    return TextShape(**sizes, positions=positions, token_types=0, distances=distances, epsilon=epsilon)


def published_config(shape: TextShape) -> dict[str, Any]:
    """What `published_shape` reads of a tower of this ``shape``."""
    mpnet = {"model_type": "mpnet", _DISTANCES: shape.distances} if shape.distances else {}
    epsilon = {} if shape.epsilon == TEXT_EPSILON else {_EPSILON: shape.epsilon}
    return {**{published: getattr(shape, name) for name, published in _SIZES.items()}, **mpnet, **epsilon}


def published_vocabulary(folder: Path) -> list[str]:
    return read_text(folder / "vocab.txt", ModelError).splitlines()


def named_as_ours(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """``weights`` by BERT's names, positions from 0 on, if they are MPNet's; all others as they are."""
    renamed = {_MPNET_NAME.sub(_our_part, name): each for name, each in weights.items()}
    if renamed.keys() != weights.keys() and _POSITIONS in renamed:
        renamed[_POSITIONS] = renamed[_POSITIONS][_MPNET_FIRST_POSITION:]
    return renamed


def _our_part(found: re.Match[str]) -> str:
    return f".attention.{_MPNET_PARTS[found[1]] if found[1] else 'output.LayerNorm'}."


def _size(content: dict[str, Any], name: str, path: Path) -> int:
    size = content.get(name)
    if not isinstance(size, int) or not 0 < size < _LARGEST_SIZE:
        raise _wrong(path, name, size)
    return size


def _wrong(path: Path, name: str, value: object) -> ModelError:
    return ModelError(f"'{path}' has {name} = {reprlib.repr(value)}; fetch the file again")
