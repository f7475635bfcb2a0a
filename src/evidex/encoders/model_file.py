"""The one file of a model: weights as tensors, and in its header what they mean."""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.documents import parse_json
from evidex.encoders.domain import Domain
from evidex.encoders.nearness import Nearness
from evidex.encoders.rounding import RoundedTensor
from evidex.encoders.tensor_file import TensorFile
from evidex.errors import ModelError
from evidex.files import write_atomic
from evidex.old_names import tensor_name

FORMAT, _FORMAT_WITH_BYTES = 2, 3
_READABLE = (1, 2, 3)
_DOMAIN = "domain/"  # before the names of tensors that are no weights
_SCALES = ".scales"  # after the name of the weights in bytes that they belong to
_MOST_LAYERS = 1024
_KINDS = ("towers", "clip", "committee", "method")


@dataclass(frozen=True, eq=False)
class StoredModel:
    """What a model file holds."""

    spec: dict[str, Any]
    temperature: float
    fingerprint: str
    card: dict[str, Any]
    weights: Mapping[str, Any]
    """Arrays, or tensors of the file that become arrays where they are used; some may be rounded to bytes."""
    domain: Domain | None
    checked: bool = True
    """Whether the file's own checksum says that this is what was saved; files of older versions have none."""


def read_model_file(path: Path) -> StoredModel:
    """Open a model; SafetensorError, OSError, ValueError and the like where it is none, ModelError in words."""
    tensors = TensorFile(path)
    metadata = tensors.metadata.get("evidex")
    if metadata is None:
        raise ModelError(f"'{path}' holds weights but no evidex model; train one with 'evidex train'")
    description = _checked(parse_json(metadata), path)
    said = description.pop("checksum", None)
    if said is not None and said != _checksum(description, {name: each.checksum for name, each in tensors.items()}):
        raise ModelError(f"'{path}': the weights are not those that were saved; fetch or train it again")
    named = {tensor_name(name): tensor for name, tensor in tensors.items()}
    beside = {name for name in named if name.startswith(_DOMAIN)}
    return StoredModel(
        description["spec"],
        description["temperature"],
        description["fingerprint"],
        description.get("card", {}),
        _with_bytes({name: tensor for name, tensor in named.items() if name not in beside}),
        _domain({name: np.asarray(named[name]) for name in beside}),
        checked=said is not None,
    )


def write_model_file(path: Path, model: StoredModel) -> None:
    """Write ``model`` as one file."""
    tensors: dict[str, NDArray[Any]] = {}
    for name, value in model.weights.items():
        if isinstance(value, RoundedTensor):
            tensors |= {name: np.asarray(value.whole), f"{name}{_SCALES}": np.asarray(value.scales)}
        else:
            tensors[name] = np.asarray(value, order="C")
    if model.domain is not None:
        tensors |= _domain_tensors(model.domain)
    described = {
        "spec": model.spec,
        "temperature": model.temperature,
        "fingerprint": model.fingerprint,
        "card": model.card,
    }
    write_described(path, described, tensors)


def write_described(path: Path, described: dict[str, Any], tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write the tensors of a model, those that are no weights too, under the description of it."""
    from safetensors.numpy import save

    # Files without bytes are those that earlier versions read, too.
    written = _FORMAT_WITH_BYTES if any(name.endswith(_SCALES) for name in tensors) else FORMAT
    description = parse_json(json.dumps({"format": written, **described}, allow_nan=False))  # as it will be read
    sums = {name: zlib.crc32(values.tobytes()) for name, values in tensors.items()}
    description["checksum"] = _checksum(description, sums)
    write_atomic(path, save(dict(tensors), {"evidex": json.dumps(description)}))


def fingerprint_of(spec: dict[str, Any], temperature: float, weights: Mapping[str, Any]) -> str:
    """A digest of everything that shapes an embedding or its evidence, the same however its numbers are stored."""
    digest = hashlib.sha256(json.dumps([spec, temperature], sort_keys=True).encode())
    for name, value in sorted(weights.items()):
        values = np.asarray(value)
        digest.update(name.encode())
        digest.update((values.astype(np.float32) if values.dtype == np.float16 else values).tobytes())
    return digest.hexdigest()


_LARGEST_HALF = float(np.finfo(np.float16).max)


def halved(weights: Mapping[str, Any]) -> dict[str, Any]:
    """The weights as half precision keeps them, in float16; ModelError where one is too large for that.

    Those in bytes stay as they are.
    """
    kept = {name: value for name, value in weights.items() if isinstance(value, RoundedTensor)}
    arrays = {name: np.asarray(value) for name, value in weights.items() if name not in kept}
    for name, each in arrays.items():
        if each.dtype.kind == "f" and (np.abs(each[np.isfinite(each)]) > _LARGEST_HALF).any():
            raise ModelError(f"'{name}' holds numbers that half precision cannot; save the model in full precision")
    return kept | {name: each.astype(np.float16) if each.dtype.kind == "f" else each for name, each in arrays.items()}


def holds_model(path: Path) -> bool:
    """Tell whether ``path`` is a whole evidex model, and not the weights of a tower or a mentor's features."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as stream:
            description = parse_json((stream.metadata() or {}).get("evidex", "{}"))
    except (SafetensorError, OSError, ValueError):
        return False
    return isinstance(description, dict) and "spec" in description


def _checksum(description: dict[str, Any], sums: dict[str, int]) -> str:
    return hashlib.sha256(json.dumps([description, sums], sort_keys=True).encode()).hexdigest()


def _with_bytes(tensors: dict[str, Any]) -> dict[str, Any]:
    """The weights of a file, those in bytes with their scales; ValueError where the two do not fit."""
    scaled = {name for name in tensors if f"{name}{_SCALES}" in tensors}
    return {
        name: RoundedTensor(tensor, tensors[f"{name}{_SCALES}"]) if name in scaled else tensor
        for name, tensor in tensors.items()
        if name.removesuffix(_SCALES) not in scaled or name in scaled
    }


def _domain_tensors(known: Domain) -> dict[str, NDArray[Any]]:
    words = np.frombuffer("\n".join(sorted(known.words)).encode(), np.uint8)
    parts = {"words": words, "mean": known.mean, "directions": known.directions, "lengths": known.lengths}
    if known.matches is not None:
        parts["matches"] = known.matches
    if known.nearness is not None:
        parts["common_words"] = np.frombuffer("\n".join(known.nearness.words).encode(), np.uint8)
        parts["nearness"] = known.nearness.ranks
    if known.counts is not None:
        parts["counts"] = np.array([known.counts[word] for word in sorted(known.words)], np.int32)
    return {f"{_DOMAIN}{name}": np.ascontiguousarray(value) for name, value in parts.items()}


def _domain(parts: dict[str, NDArray[Any]]) -> Domain | None:
    """What the model was taught; ValueError, KeyError or TypeError if it is not whole."""
    if not parts:
        return None
    words, mean, directions, lengths = (
        parts[f"{_DOMAIN}{name}"] for name in ("words", "mean", "directions", "lengths")
    )
    matches, ranks, counts = (parts.get(f"{_DOMAIN}{name}") for name in ("matches", "nearness", "counts"))
    nearness = None
    if ranks is not None:
        nearness = Nearness(tuple(parts[f"{_DOMAIN}common_words"].tobytes().decode().split("\n")), ranks)
    taught = words.tobytes().decode().split("\n")
    often = None if counts is None else dict(zip(taught, counts.tolist(), strict=True))
    return Domain(frozenset(taught), mean, directions, lengths, matches, nearness, often)


def _checked(description: Any, path: Path) -> dict[str, Any]:
    """Return the header's description if it is whole."""
    if not isinstance(description, dict) or description.get("format") not in _READABLE:
        found = description.get("format") if isinstance(description, dict) else None
        raise ModelError(f"'{path}' has model format {found}, this version reads {_READABLE[-1]}; update evidex")
    temperature = description.get("temperature")
    if not isinstance(temperature, float) or not (math.isfinite(temperature) and temperature > 0):
        raise ModelError(f"'{path}' has temperature {temperature!r}, no positive number; the file is damaged")
    if not isinstance(description.get("spec"), dict) or not isinstance(description.get("fingerprint"), str):
        raise ModelError(f"'{path}' lacks its architecture or fingerprint; the file is damaged")
    if not isinstance(description.get("card", {}), dict):
        raise ModelError(f"'{path}' has a card that is none; the file is damaged")
    if (kind := description["spec"].get("kind")) not in _KINDS:
        raise ModelError(f"'{path}' has an encoder of kind '{kind}', unknown to this version; update evidex")
    _check_layers(description["spec"], path)
    return description


def _check_layers(part: dict[str, Any], path: Path) -> None:
    """Refuse more layers than any model has: even without weights they take their time."""
    for key, value in part.items():
        if isinstance(value, dict):
            _check_layers(value, path)
        elif key.endswith("layers") and isinstance(value, (int, float)) and not value <= _MOST_LAYERS:
            raise ModelError(f"'{path}' has {value} {key}, more than any model; the file is damaged")
