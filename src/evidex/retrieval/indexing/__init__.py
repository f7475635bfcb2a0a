"""Put files or texts into a gallery."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evidex.data.reading_notes import noted
from evidex.data.stac.finding import Found, find
from evidex.errors import InputError
from evidex.progress import Progress, silent
from evidex.retrieval.indexing.options import IndexOptions
from evidex.retrieval.indexing.report import Duplicate, IndexReport, NotPrunedError
from evidex.retrieval.indexing.run import IndexRun
from evidex.retrieval.rows import Row, text_id

if TYPE_CHECKING:
    from evidex.retrieval.indexing.target import IndexTarget

__all__ = ["Duplicate", "IndexOptions", "IndexReport", "NotPrunedError", "index_found", "index_paths", "index_texts"]

_TEXTS_A_COMMIT = 4096


def index_paths(
    gallery: IndexTarget, places: Sequence[str | Path], options: IndexOptions, progress: Progress = silent
) -> IndexReport:
    """Index what lies under ``places``; a file that cannot be indexed is in the report with its reason."""
    return index_found(gallery, lambda: find(places, options.asset, gone=options.prune), options, progress)


def index_found(
    gallery: IndexTarget,
    look: Callable[[], Found],
    options: IndexOptions,
    progress: Progress = silent,
    captions: Mapping[str, tuple[str, ...]] | None = None,
) -> IndexReport:
    """Index what ``look`` finds once the gallery is held; ``captions`` by path, else those beside the files."""
    started = time.monotonic()
    with gallery.writing():
        found = look()
        run = IndexRun(gallery, found, options, progress, captions)
        run.work()
        told = {asset.told.sensor for assets in found.assets.values() for asset in assets}
        if notes := noted(gallery.notes, options.read.tiles, told):
            gallery.note(notes)
        gallery.vectors  # noqa: B018 (mapped now, so that the first search need not)
        report = run.report(time.monotonic() - started)
    if run.refusal is not None:
        raise NotPrunedError(str(run.refusal), report)
    return report


def index_texts(gallery: IndexTarget, texts: Sequence[str], source: str, progress: Progress = silent) -> int:
    """Put texts into the gallery; returns how many are new."""
    empty = [number for number, text in enumerate(texts) if not text.strip()]
    if empty:
        raise InputError(f"text {empty[0]} is empty; leave it out")
    with gallery.writing():
        known = {record["id"] for record in gallery.records(["id", "kind"]) if record["kind"] == "text"}
        fresh = {text_id(text, source): text for text in texts}
        rows = [
            Row(row_id, source, "text", hashlib.sha256(text.encode()).hexdigest(), captions=(text,))
            for row_id, text in fresh.items()
            if row_id not in known
        ]
        for start in range(0, len(rows), _TEXTS_A_COMMIT):
            part = rows[start : start + _TEXTS_A_COMMIT]
            gallery.append(part, gallery.model.encode_texts([row.captions[0] for row in part]))
            progress(start + len(part), len(rows))
        return len(rows)
