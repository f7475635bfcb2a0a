"""The models that have a name: those that come with evidex, whole or as a difference to published weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidex.documents import parse_json
from evidex.encoders.unpacking import how_to_bring, is_here, missing
from evidex.errors import ModelError
from evidex.weights.bases import ways_to
from evidex.weights.packing import read_packed

MODELS = Path(__file__).parent.parent / "models"
NAMES = ("compact", "large")
DEFAULT = "compact"


@dataclass(frozen=True)
class KnownModel:
    """What there is to know about a named model without loading it."""

    name: str
    included: bool
    """Whether its file comes with this build."""
    here: bool
    """Whether it can be used now, without a network."""
    dim: int | None
    carried_bytes: int
    """Size of its file in the package."""
    fetched_bytes: int
    """What is fetched the first time it is used, if it is not here."""
    clean_rsum: float | None
    noisy_rsum: float | None
    """On RSICD val, as its file says."""
    remedy: str
    """What to do to have it; empty where nothing is to be done."""


def shipped_path(name: str) -> Path:
    """Return the file of a named model; ModelError where this build has none."""
    path = MODELS / f"{name}.safetensors"
    if not path.is_file():
        raise ModelError(f"the model '{name}' does not come with this build of evidex; give the path of one instead")
    return path


def shipped_name(fingerprint: str) -> str | None:
    """Return the name of the model with this fingerprint; None where it has none."""
    return next((name for name in NAMES if _header(name).get("fingerprint") == fingerprint), None)


def known_models() -> list[KnownModel]:
    """Return every named model, the default first."""
    return [_known(name) for name in NAMES]


def _known(name: str) -> KnownModel:
    path, header = MODELS / f"{name}.safetensors", _header(name)
    if not header:
        return KnownModel(name, False, False, None, 0, 0, None, None, "comes with a later build; update evidex")
    packed = read_packed(path)
    val = header.get("card", {}).get("val", {})
    here = packed is None or is_here(packed)
    fetched = 0 if packed is None else sum(ways_to(*base)[0].source.size for base in packed.bases.values())
    remedy = "" if here or packed is None else f"--model {name} fetches it; {how_to_bring(missing(packed)[0])}"
    return KnownModel(
        name=name,
        included=True,
        here=here,
        dim=header["spec"].get("dim"),
        carried_bytes=path.stat().st_size,
        fetched_bytes=fetched,
        clean_rsum=val.get("clean", {}).get("rsum"),
        noisy_rsum=val.get("noisy", {}).get("rsum"),
        remedy=remedy,
    )


def _header(name: str) -> dict[str, Any]:
    """What a model's file says of itself; nothing where there is no such file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(MODELS / f"{name}.safetensors", framework="np") as stream:
            description: dict[str, Any] = parse_json((stream.metadata() or {}).get("evidex", "{}"))
    except (SafetensorError, OSError, ValueError):
        return {}
    return description
