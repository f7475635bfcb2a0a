"""The files and texts of one gallery into another, for another model; every pixel is read once.

Files are read as they were for the first gallery, by the options and with the captions that its rows record; what they
are, and not what they were, is what the new gallery holds. Files that a catalog named are told of and left to it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from evidex.data.discover import FoundFile, printable
from evidex.data.records import Skip
from evidex.data.rendering import TileOptions
from evidex.data.stac.finding import Found
from evidex.errors import InputError
from evidex.progress import Progress, silent
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions, IndexReport, index_found, index_texts

_READING = re.compile(r"tile (\d+) overlap (\d+) bands (rgb|[\d,]+) stretch ([^ ,]+),([^ ,]+)(?: sensor (\S+))?")
_SUMS = ("found", "added", "updated", "unchanged", "moved", "pruned", "encoded", "unplaced", "seconds")
_COLUMNS = ("path", "kind", "reading", "captions")
_LISTS = ("duplicates", "skipped", "remarks")


@dataclass
class _Recorded:
    """What a gallery holds: files by how they were read, captions by file, texts by their source."""

    files: dict[TileOptions | None, dict[str, None]] = field(default_factory=dict)
    captions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    catalogued: dict[str, None] = field(default_factory=dict)
    """Files that a catalog named: rows do not record all that it told of them."""

    @classmethod
    def of(cls, gallery: Gallery) -> _Recorded:
        recorded = cls()
        for row in gallery.records([*_COLUMNS, *(["item"] if "item" in gallery.dataset.schema.names else [])]):
            captions = tuple(row["captions"] or ())
            if row["kind"] == "text":
                recorded.texts.setdefault(row["path"], []).append(captions[0])
                continue
            if row.get("item") is not None:
                recorded.catalogued[row["path"]] = None
                continue
            recorded.files.setdefault(_tiles(row["reading"]), {})[row["path"]] = None
            recorded.captions[row["path"]] = captions
        return recorded

    def groups(self) -> Iterator[tuple[TileOptions, list[str]]]:
        """The files that are read in one way; pictures, on which no option bears, go with the first."""
        pictures = list(self.files.get(None, ()))
        groups = {tiles: list(paths) for tiles, paths in self.files.items() if tiles is not None}
        for tiles, paths in (groups or {TileOptions(): []}).items():
            yield tiles, pictures + paths
            pictures = []


def reindex(old: Gallery, new: Gallery, options: IndexOptions, progress: Progress = silent) -> IndexReport:
    """Put what ``old`` holds into ``new``; what is there already and unchanged is left alone."""
    if str(old.place) == str(new.place):
        raise InputError(f"'{old.place}' is the gallery that is read; name another for the new one")
    recorded = _Recorded.of(old)
    for source, texts in recorded.texts.items():
        index_texts(new, texts, source)
    report: IndexReport | None = None
    for tiles, paths in recorded.groups():
        read = replace(options, read=replace(options.read, tiles=tiles))
        part = index_found(new, lambda paths=paths: _found(paths), read, progress, recorded.captions)  # type: ignore[misc]
        report = part if report is None else _joined(report, part)
    assert report is not None
    reason = "was found by a catalog; index that into the new gallery"
    skipped = tuple(Skip(printable(path), reason) for path in recorded.catalogued)
    return replace(report, found=report.found + len(skipped), skipped=(*report.skipped, *skipped))


def _found(paths: list[str]) -> Found:
    files: list[FoundFile] = []
    skipped: list[Skip] = []
    for path in paths:
        try:
            files.append(FoundFile.at(path))
        except OSError as error:
            skipped.append(Skip(printable(path), f"cannot be read again ({os.strerror(error.errno or 0).lower()})"))
    return Found(tuple(files), tuple(skipped), ())


def _tiles(reading: str | None) -> TileOptions | None:
    found = None if reading is None else _READING.match(reading)
    if found is None:
        return None
    bands = None if found[3] == "rgb" else tuple(int(number) for number in found[3].split(","))
    return TileOptions(int(found[1]), int(found[2]), bands, (float(found[4]), float(found[5])), found[6])


def _joined(first: IndexReport, last: IndexReport) -> IndexReport:
    sums = {name: getattr(first, name) + getattr(last, name) for name in (*_SUMS, *_LISTS)}
    return replace(last, **sums)
