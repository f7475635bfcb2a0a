"""The files and texts of one gallery into another, for another model; every pixel is read once.

Files are read as they were for the first gallery, by the options and with the captions that its rows record; what they
are, and not what they were, is what the new gallery holds. The catalogs that named files are asked again for what they
tell of these.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from evidex.data.discover import FoundFile, printable
from evidex.data.reading_notes import carried_over
from evidex.data.records import Skip
from evidex.data.rendering import TileOptions
from evidex.data.stac.finding import Found, Source, find_again
from evidex.errors import InputError
from evidex.progress import Progress, silent
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions, IndexReport, index_found, index_texts

_SUMS = ("found", "added", "updated", "unchanged", "moved", "pruned", "encoded", "unplaced", "seconds")
_COLUMNS = ("path", "kind", "reading", "captions")
_OF_CATALOGS = ("catalog", "asset")
_LISTS = ("duplicates", "skipped", "remarks")

_Files = dict[Source | None, dict[str, None]]
"""By the catalog that named them; None: they were found by themselves."""


@dataclass
class _Recorded:
    """What a gallery holds: files by how they were read, captions by file, texts by their source."""

    files: dict[TileOptions | None, _Files] = field(default_factory=dict)
    captions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, gallery: Gallery) -> _Recorded:
        recorded = cls()
        readings: dict[str | None, TileOptions | None] = {None: None}
        told = [name for name in _OF_CATALOGS if name in gallery.dataset.schema.names]
        for row in gallery.records([*_COLUMNS, *told]):
            captions, reading = tuple(row["captions"] or ()), row["reading"]
            if row["kind"] == "text":
                recorded.texts.setdefault(row["path"], []).append(captions[0])
                continue
            if reading not in readings:
                readings[reading] = TileOptions.of_words(reading)
            source = None if row.get("catalog") is None else (row["catalog"], row["asset"])
            recorded.files.setdefault(readings[reading], {}).setdefault(source, {})[row["path"]] = None
            recorded.captions[row["path"]] = captions
        return recorded

    def groups(self) -> Iterator[tuple[TileOptions, _Files]]:
        """The files that are read in one way; pictures, on which no option bears, go with the first."""
        groups = {tiles: files for tiles, files in self.files.items() if tiles is not None} or {TileOptions(): {}}
        first = next(iter(groups.values()))
        for source, paths in self.files.get(None, {}).items():
            first.setdefault(source, {}).update(paths)
        yield from groups.items()


def reindex(old: Gallery, new: Gallery, options: IndexOptions, progress: Progress = silent) -> IndexReport:
    """Put what ``old`` holds into ``new``; what is there already and unchanged is left alone."""
    if str(old.place) == str(new.place):
        raise InputError(f"'{old.place}' is the gallery that is read; name another for the new one")
    recorded = _Recorded.of(old)
    _check_begun(new, recorded, old)
    for source, texts in recorded.texts.items():
        index_texts(new, texts, source)
    report: IndexReport | None = None
    for tiles, files in recorded.groups():
        read = replace(options, read=replace(options.read, tiles=tiles))
        part = index_found(new, lambda files=files: _found(files), read, progress, recorded.captions)  # type: ignore[misc]
        report = part if report is None else _joined(report, part)
    assert report is not None
    with new.writing():
        if notes := carried_over(new.notes, old.notes):
            new.note(notes)
        new.note_losses(new.checks.lost + old.checks.lost)
    return report


def _check_begun(new: Gallery, recorded: _Recorded, old: Gallery) -> None:
    """Refuse to pour one archive into another: what is there must have come, for the most part, from ``old``."""
    paths = {row["path"] for row in new.records(["path"])}
    strange = paths - recorded.captions.keys() - recorded.texts.keys()
    if 2 * len(strange) > len(paths):
        raise InputError(
            f"'{new.place}' holds {len(strange)} files that are not in '{old.place}'; name a new place, or one that "
            "was begun from it"
        )


def _found(files: _Files) -> Found:
    plain = _by_themselves(files.get(None, ()))
    told = find_again({source: paths for source, paths in files.items() if source is not None})
    return replace(told, files=(*plain.files, *told.files), skipped=(*plain.skipped, *told.skipped))


def _by_themselves(paths: Collection[str]) -> Found:
    files: list[FoundFile] = []
    skipped: list[Skip] = []
    for path in paths:
        try:
            files.append(FoundFile.at(path))
        except OSError as error:
            skipped.append(Skip(printable(path), f"cannot be read again ({os.strerror(error.errno or 0).lower()})"))
    return Found(tuple(files), tuple(skipped), ())


def _joined(first: IndexReport, last: IndexReport) -> IndexReport:
    sums = {name: getattr(first, name) + getattr(last, name) for name in (*_SUMS, *_LISTS)}
    return replace(last, **sums)
