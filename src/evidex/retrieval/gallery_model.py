"""The model that a gallery was made with: where it is, and whether it is the one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from evidex.errors import GalleryError, ModelError
from evidex.files import derived_folder, replacing
from evidex.retrieval.gallery_info import GalleryInfo
from evidex.retrieval.sealing import MODEL
from evidex.retrieval.soundness.checks import FileChecks
from evidex.storage.objects import ObjectPlace, Place

if TYPE_CHECKING:
    from evidex.encoders.model import Model

OWN_MODEL = "(in the gallery)"


def load_model_of(folder: Place, info: GalleryInfo, checks: FileChecks) -> Model:
    """The gallery's model; GalleryError where it cannot be loaded or is another by now."""
    from evidex.encoders.model import load_model

    own = info.model == OWN_MODEL
    if own:
        checks.check([MODEL])
        checks.keep()
    try:
        model = load_model(_file_of(folder / MODEL, info) if own else info.model)
    except ModelError as error:
        raise GalleryError(
            f"'{folder}' was made with model '{info.model}', which cannot be loaded ({error}); name it with --model"
        ) from None
    check_model(folder, info, model)
    return model


def put_model(folder: Place, model: Model) -> None:
    """Put a copy of the model into the gallery."""
    if not isinstance(folder, ObjectPlace):
        model.save(folder / MODEL)
        return
    with tempfile.TemporaryDirectory(prefix="evidex-") as scratch:
        model.save(Path(scratch) / MODEL)
        (folder / MODEL).copy_from(Path(scratch) / MODEL)


def _file_of(place: Place, info: GalleryInfo) -> Path:
    """The model's file on this machine: a model is mapped, so that of a store is fetched once."""
    if not isinstance(place, ObjectPlace):
        return place
    target = derived_folder(place.parent) / f"model-{info.model_fingerprint[:16]}.safetensors"
    if not target.exists():
        with replacing(target, durable=False) as scratch:
            place.copy_to(scratch)
    return target


def check_model(folder: Place, info: GalleryInfo, model: Model) -> None:
    if model.fingerprint != info.model_fingerprint:
        raise GalleryError(
            f"'{folder}' was made with another model ({info.model_fingerprint[:12]}, not {model.fingerprint[:12]}); "
            f"name that one's file, or make a gallery for this one: evidex reindex --gallery {folder} --to NEW_GALLERY"
        )


def known_source(model: Model, source: str | Path | None) -> str:
    """What a gallery notes of where its model is."""
    from evidex.encoders.shipped import NAMES, shipped_name

    if source is None:
        return shipped_name(model.fingerprint) or OWN_MODEL
    named = str(source) in NAMES or not Path(source).exists()
    return str(source) if named else str(Path(source).resolve())
