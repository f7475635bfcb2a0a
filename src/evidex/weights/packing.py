"""A model file as differences to the published towers it was trained from: small enough to come with the package.

Matrices of the towers become differences; vectors, heads and whatever has no counterpart are kept in float16. The
packed file names the digest of each base, and the fingerprint of the model that comes out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evidex.documents import parse_json
from evidex.errors import ModelError
from evidex.files import write_atomic
from evidex.weights.bases import digest_of
from evidex.weights.differences import Difference, Directions, applied, difference, directions

FORMAT = "packed 1"
"""Of packed model files; a whole model's is a number."""

Tensors = dict[str, np.ndarray]


@dataclass(frozen=True)
class Base:
    """A published tower, and before which of the model's names its own stand."""

    prefix: str
    name: str
    tensors: Mapping[str, np.ndarray]

    def counterpart(self, name: str, shape: tuple[int, ...]) -> np.ndarray | None:
        """The base of the model's matrix ``name``: as many of its first rows as the model kept; None without one."""
        found = self.tensors.get(name.removeprefix(self.prefix)) if name.startswith(self.prefix) else None
        if found is None or len(shape) < 2 or found.shape[1:] != shape[1:] or len(found) < shape[0]:
            return None
        return found[: shape[0]]


@dataclass(frozen=True)
class Packed:
    """A packed file's header."""

    path: Path
    description: dict[str, Any]

    @property
    def bases(self) -> dict[str, tuple[str, str]]:
        """Prefix → name and digest of each base."""
        return {prefix: (base["name"], base["digest"]) for prefix, base in self.description["bases"].items()}

    @property
    def fingerprint(self) -> str:
        return str(self.description["fingerprint"])


def taken_apart(tensors: Mapping[str, np.ndarray], bases: list[Base]) -> dict[str, Directions]:
    """Return what changed in every matrix that has a counterpart; the slow part of packing."""
    found = {}
    for name, value in sorted(tensors.items()):
        base = next((c for base in bases if (c := base.counterpart(name, value.shape)) is not None), None)
        if base is not None:
            found[name] = directions(value, base)
    return found


def packed_tensors(
    tensors: Mapping[str, np.ndarray], changed: Mapping[str, Directions], bases: list[Base], share: float
) -> tuple[Tensors, dict[str, Any]]:
    """Return what a packed file holds for ``tensors``, and what its header says of it.

    ``share`` is how fine the differences are (see `difference`). Integers are kept as they are, and float32 where the
    name says that it is no weight (``…/…``).
    """
    kept: Tensors = {}
    said = {}
    for name, value in sorted(tensors.items()):
        if name in changed:
            coded = difference(changed[name], share)
            said[name] = {"factor": coded.factor, "scale": coded.scale, "shape": list(value.shape)}
            kept[name] = np.frombuffer(coded.coded, np.uint8)
        else:
            weight = value.dtype.kind == "f" and "/" not in name
            kept[name] = value.astype(np.float16) if weight else value
    origin = {base.prefix: {"name": base.name, "digest": digest_of(base.tensors)} for base in bases}
    return kept, {"bases": origin, "changed": said}


def write_packed(path: Path, kept: Tensors, description: dict[str, Any]) -> None:
    """Write the packed file; the same content gives the same bytes."""
    from safetensors.numpy import save

    header = {"evidex": json.dumps({**description, "format": FORMAT}, allow_nan=False, sort_keys=True)}
    write_atomic(path, save(dict(sorted(kept.items())), header))


def read_packed(path: Path) -> Packed | None:
    """Return the header of a packed file; None where ``path`` holds something else, a whole model for example."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as stream:
            description = parse_json((stream.metadata() or {}).get("evidex", "{}"))
    except (SafetensorError, OSError, ValueError):
        return None
    if not (isinstance(description, dict) and description.get("format") == FORMAT and "bases" in description):
        return None
    if not _is_complete(description):
        raise ModelError(f"'{path}' is no readable packed model; fetch it again")
    return Packed(path, description)


def _is_complete(description: dict[str, Any]) -> bool:
    bases, changed = description["bases"], description.get("changed")
    parts = [*bases.values(), *changed.values()] if isinstance(bases, dict) and isinstance(changed, dict) else [None]
    named = all(isinstance(part, dict) for part in parts) and all({"name", "digest"} <= set(b) for b in bases.values())
    return named and isinstance(description.get("fingerprint"), str)


def unpacked_tensors(packed: Packed, read_base: Callable[[str, str], Mapping[str, np.ndarray]]) -> Tensors:
    """Return the model's tensors, weights in float16.

    ``read_base`` gives the tensors of a base by name and digest; they are checked against the digest here.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    changed = packed.description["changed"]
    bases = [Base(prefix, name, _checked(name, digest, read_base(name, digest), packed.path))
             for prefix, (name, digest) in packed.bases.items()]  # fmt: skip
    tensors: Tensors = {}
    try:
        for name, value in load_file(packed.path).items():
            if name not in changed:
                tensors[name] = value
                continue
            how = changed[name]
            found = next(c for base in bases if (c := base.counterpart(name, tuple(how["shape"]))) is not None)
            coded = Difference(how["factor"], how["scale"], value.tobytes())
            tensors[name] = applied(coded, found).astype(np.float16)
    except (SafetensorError, OSError, ValueError, LookupError, TypeError, StopIteration) as error:
        raise ModelError(f"'{packed.path}' is no readable packed model ({error}); install evidex again") from None
    return tensors


def _checked(name: str, digest: str, tensors: Mapping[str, np.ndarray], path: Path) -> Mapping[str, np.ndarray]:
    found = digest_of(tensors)
    if found != digest:
        raise ModelError(
            f"'{path}' is a difference to {name} {digest[:12]}, not to {found[:12]}; fetch the base it was made with"
        )
    return tensors
