"""The folder of a gallery: what lies in it, where one can be made, and who may write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evidex.errors import GalleryError

if TYPE_CHECKING:
    from evidex.encoders.model import Model

INFO = "gallery.json"
ROWS = "rows.lance"
MODEL = "model.safetensors"
WRITER = ".writer"
OWN_MODEL = "(in the gallery)"


@contextmanager
def held(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold ``folder`` against other writers; the hold ends with the process, however it ends."""
    import fcntl

    with (folder / WRITER).open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            raise GalleryError(
                f"'{folder}' is being indexed by another process; wait for it to end, then run this again"
            ) from None
        yield


def check_free(folder: Path) -> None:
    """Raise GalleryError where no gallery can be made; where the making of one was cut short, one can."""
    if (folder / INFO).exists():
        raise GalleryError(f"'{folder}' is a gallery already; open it with Gallery.open, or choose another folder")
    if not folder.exists():
        return
    names = {entry.name for entry in folder.iterdir()} if folder.is_dir() else {""}
    begun = WRITER in names and all(name in (MODEL, ROWS) or name.startswith(".") for name in names)
    if names and not (begun and not any((folder / ROWS / "data").glob("*"))):
        raise GalleryError(f"'{folder}' exists and is no gallery; choose a new folder")


def known_source(model: Model, source: str | Path | None) -> str:
    from evidex.encoders.model import SHIPPED

    if source is None:
        return "compact" if _shipped_fingerprint(SHIPPED) == model.fingerprint else OWN_MODEL
    return str(Path(source).resolve()) if Path(source).exists() else str(source)


def _shipped_fingerprint(path: Path) -> str | None:
    if not path.is_file():
        return None
    from safetensors import safe_open

    with safe_open(path, framework="np") as stream:
        description: Mapping[str, Any] = json.loads((stream.metadata() or {}).get("evidex", "{}"))
    return description.get("fingerprint")
