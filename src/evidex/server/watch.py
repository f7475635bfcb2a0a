"""Whether a gallery has changed on disk, told from names and times alone."""

from __future__ import annotations

import os
from contextlib import suppress

from evidex.storage.objects import ObjectPlace, Place

State = tuple[tuple[str, int, int], ...]


def state_of(gallery: Place) -> State:
    """Names, sizes and times of what says which rows and calibrations there are; OSError if the gallery is gone.

    Every commit writes a file of its own under ``_versions``. Opening the table to learn of it takes memory in pieces
    that stay behind, and a server looks every few seconds.
    """
    status = (gallery / "gallery.json").stat()
    known = [("gallery.json", status.st_size, status.st_mtime_ns), *_entries(gallery / "rows.lance" / "_versions")]
    with suppress(FileNotFoundError):  # not calibrated
        known += _entries(gallery / "calibration")
    return tuple(sorted(known))


def _entries(folder: Place) -> list[tuple[str, int, int]]:
    if isinstance(folder, ObjectPlace):
        return [(name, status.st_size, status.st_mtime_ns) for name, status in folder.listed().items()]
    found = []
    with os.scandir(folder) as listing:
        for entry in listing:
            with suppress(FileNotFoundError):  # a writer tidied up in between
                status = entry.stat()
                found.append((entry.path, status.st_size, status.st_mtime_ns))
    return found
