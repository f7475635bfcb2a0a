"""The model that a gallery was made with: where it is, and whether it is the one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from evidex.documents import parse_json
from evidex.errors import GalleryError, ModelError
from evidex.retrieval.gallery_info import GalleryInfo
from evidex.retrieval.soundness.checks import FileChecks
from evidex.retrieval.soundness.sealing import MODEL

if TYPE_CHECKING:
    from evidex.encoders.model import Model

OWN_MODEL = "(in the gallery)"


def load_model_of(folder: Path, info: GalleryInfo, checks: FileChecks) -> Model:
    """The gallery's model; GalleryError where it cannot be loaded or is another by now."""
    from evidex.encoders.model import load_model

    own = info.model == OWN_MODEL
    if own:
        checks.check([MODEL])
        checks.keep()
    try:
        model = load_model(folder / MODEL if own else info.model)
    except ModelError as error:
        raise GalleryError(
            f"'{folder}' was made with model '{info.model}', which cannot be loaded ({error}); name it with --model"
        ) from None
    check_model(folder, info, model)
    return model


def check_model(folder: Path, info: GalleryInfo, model: Model) -> None:
    if model.fingerprint != info.model_fingerprint:
        raise GalleryError(
            f"'{folder}' was made with another model ({info.model_fingerprint[:12]}, not {model.fingerprint[:12]}); "
            "use that one, or index into a new gallery"
        )


def known_source(model: Model, source: str | Path | None) -> str:
    """What a gallery notes of where its model is."""
    from evidex.encoders.model import SHIPPED

    if source is None:
        return "compact" if _shipped_fingerprint(SHIPPED) == model.fingerprint else OWN_MODEL
    return str(Path(source).resolve()) if Path(source).exists() else str(source)


def _shipped_fingerprint(path: Path) -> str | None:
    if not path.is_file():
        return None
    from safetensors import safe_open

    with safe_open(path, framework="np") as stream:
        description: dict[str, Any] = parse_json((stream.metadata() or {}).get("evidex", "{}"))
    return description.get("fingerprint")
