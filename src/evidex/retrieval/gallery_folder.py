"""The folder of a gallery: where one can be made, and who may write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evidex.errors import DamagedError, GalleryError
from evidex.retrieval.gallery_info import INFO
from evidex.retrieval.sealing import MODEL
from evidex.retrieval.soundness.seal import SEAL, read_seal
from evidex.retrieval.table import ROWS
from evidex.storage.objects import ObjectPlace, Place

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_WRITER = ".writer"
_DATA = f"{ROWS}/data"


@contextmanager
def held(folder: Place, *, wait: bool = False) -> Iterator[None]:
    """Hold ``folder`` against other writers; the hold ends with the process, however it ends."""
    if isinstance(folder, ObjectPlace):
        from evidex.storage.lease import lease

        with lease(folder, wait=wait):
            yield
        return
    import fcntl

    with (folder / _WRITER).open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            raise GalleryError(
                f"'{folder}' is being indexed by another process; wait for it to end, then run this again"
            ) from None
        yield


def check_held(folder: Place) -> None:
    """GalleryError where another process has taken over what this one held; a folder of this machine cannot be."""
    if isinstance(folder, ObjectPlace):
        from evidex.storage.lease import check_hold

        check_hold(folder)


def folder_of(place: Place) -> Path:
    """The folder of a gallery that lies on this machine."""
    if isinstance(place, ObjectPlace):
        raise GalleryError(f"'{place}' is no folder of this machine")
    return place


def check_free(folder: Place) -> None:
    """Raise GalleryError where no gallery can be made; where the making of one was cut short, one can."""
    if _CONTROL.search(str(folder)):
        raise GalleryError(f"'{folder}' holds control characters, under which rows cannot be kept; name another place")
    if (folder / INFO).exists():
        raise GalleryError(f"'{folder}' is a gallery already; open it with Gallery.open, or choose another folder")
    if not folder.exists():
        return
    seal = read_seal(folder) if folder.is_dir() else None
    rows = any((folder / _DATA).glob("*")) or any(name.startswith(_DATA) for name in (seal.files if seal else ()))
    if seal is not None and rows:
        raise DamagedError(
            f"'{folder}' is a gallery without its {INFO}; 'evidex verify --gallery {folder} --repair' writes it again"
        )
    names = {entry.name for entry in folder.iterdir()} if folder.is_dir() else {""}
    begun = any(name.startswith(_WRITER) for name in names) and all(
        name in (MODEL, ROWS, SEAL) or name.startswith(".") for name in names
    )
    if names and (rows or not begun):
        raise GalleryError(f"'{folder}' exists and is no gallery; choose a new folder")
