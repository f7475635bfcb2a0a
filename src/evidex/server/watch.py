"""Whether a gallery has changed on disk, told from names and times alone."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

State = tuple[tuple[str, int, int], ...]


def state_of(gallery: Path) -> State:
    """Names, sizes and times of what says which rows and calibrations there are; OSError if the gallery is gone.

    Every commit writes a file of its own under ``_versions``. Opening the table to learn of it takes memory in pieces
    that stay behind, and a server looks every few seconds.
    """
    status = (gallery / "gallery.json").stat()
    known = [("gallery.json", status.st_size, status.st_mtime_ns), *_entries(gallery / "rows.lance" / "_versions")]
    with suppress(FileNotFoundError):  # not calibrated
        known += _entries(gallery / "calibration")
    return tuple(sorted(known))


def _entries(folder: Path) -> list[tuple[str, int, int]]:
    found = []
    with os.scandir(folder) as listing:
        for entry in listing:
            with suppress(FileNotFoundError):  # a writer tidied up in between
                status = entry.stat()
                found.append((entry.path, status.st_size, status.st_mtime_ns))
    return found
