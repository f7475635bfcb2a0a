"""Files that lie beside a raster and are read with it: world files, overviews, masks, the sensor's metadata."""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_left

from evidex.data.discover import IMAGE_SUFFIXES

_Entry = tuple[str, int, int, int]


class Beside:
    """What lies beside files, in folders that are listed once."""

    def __init__(self) -> None:
        self._folders: dict[str, list[_Entry]] = {}

    def of(self, path: str) -> str:
        """A word for the state of the files that share the name of ``path`` up to its ending; "" where there are none.

        Their own names may go on after it, as in ``scene.tfw``, ``scene.tif.ovr`` and ``scene_RPC.txt``.
        """
        folder, name = os.path.split(path)
        stem = os.path.splitext(name)[0]  # noqa: PTH122 (a path may hold bytes that are no UTF-8)
        if folder not in self._folders:
            self._folders[folder] = _listed(folder)
        entries = self._folders[folder]
        first = last = bisect_left(entries, (stem, 0, 0, 0))
        while last < len(entries) and entries[last][0].startswith(stem):
            last += 1
        mine = entries[first:last]
        if not mine:
            return ""
        return " beside " + hashlib.blake2b(repr(mine).encode(), digest_size=6).hexdigest()


def _listed(folder: str) -> list[_Entry]:
    entries: list[_Entry] = []
    try:
        with os.scandir(folder) as listing:
            for entry in listing:
                if os.path.splitext(entry.name)[1].lower() in IMAGE_SUFFIXES or not entry.is_file():  # noqa: PTH122
                    continue
                status = entry.stat()
                entries.append((entry.name, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    except OSError:
        return []  # then nothing beside a file can be read with it either
    return sorted(entries)
