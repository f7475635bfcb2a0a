"""Files that lie beside a raster and are read with it: world files, overviews, masks, the sensor's metadata."""

from __future__ import annotations

import hashlib
import os
import re
from bisect import bisect_left
from pathlib import Path
from typing import NamedTuple

from evidex.data.discover import IMAGE_SUFFIXES
from evidex.data.remote import is_remote

# Of files whose names go on after the raster's without a dot, only these are read with it.
_METADATA = re.compile(r"_(rpc|rpb|imd|mtl|metadata)\.\w+", re.IGNORECASE)
_READ_WHOLE = 2**20
"""Bytes; of larger files, as overviews are, size and time speak for the content."""


class _Entry(NamedTuple):
    name: str
    size: int
    mtime_ns: int


class Beside:
    """What lies beside files, in folders that are listed once."""

    def __init__(self) -> None:
        self._folders: dict[str, list[_Entry]] = {}
        self._words: dict[str, str] = {}

    def of(self, path: str) -> str:
        """A word for the state of the files that are read with ``path``; "" where there are none.

        They have its name up to its ending and go on after it, as in ``scene.tfw``, ``scene.tif.ovr`` and
        ``scene_RPC.txt``. The word tells what they hold and not where they lie: it is the same after a move.
        """
        if is_remote(path):
            return ""
        if path not in self._words:
            folder, name = os.path.split(path)
            stem = os.path.splitext(name)[0]  # noqa: PTH122 (a path may hold bytes that are no UTF-8)
            if folder not in self._folders:
                self._folders[folder] = _listed(folder)
            mine = [_state(folder, entry, stem) for entry in _with_stem(self._folders[folder], stem)]
            told = hashlib.blake2b(repr(mine).encode(), digest_size=6).hexdigest()
            self._words[path] = f" beside {told}" if mine else ""
        return self._words[path]


def _with_stem(entries: list[_Entry], stem: str) -> list[_Entry]:
    found = []
    for joint in (".", "_"):
        place = bisect_left(entries, (stem + joint,))
        while place < len(entries) and entries[place].name.startswith(stem + joint):
            if joint == "." or _METADATA.fullmatch(entries[place].name, len(stem)):
                found.append(entries[place])
            place += 1
    return found


def _state(folder: str, entry: _Entry, stem: str) -> tuple[str, int, int | str]:
    held: int | str = entry.mtime_ns
    if entry.size <= _READ_WHOLE:
        try:
            with Path(folder, entry.name).open("rb") as stream:
                held = hashlib.blake2b(stream.read(_READ_WHOLE), digest_size=16).hexdigest()
        except OSError:
            pass  # then its content does not bear on how the raster is read now
    return entry.name[len(stem) :], entry.size, held


def _listed(folder: str) -> list[_Entry]:
    entries: list[_Entry] = []
    try:
        with os.scandir(folder) as listing:
            for entry in listing:
                if os.path.splitext(entry.name)[1].lower() in IMAGE_SUFFIXES or not entry.is_file():  # noqa: PTH122
                    continue
                status = entry.stat()
                entries.append(_Entry(entry.name, status.st_size, status.st_mtime_ns))
    except OSError:
        return []  # then nothing beside a file can be read with it either
    return sorted(entries)
