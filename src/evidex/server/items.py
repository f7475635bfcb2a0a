"""Rows by their id: the only way from a request to a file."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from evidex.data.reading_notes import readings_of
from evidex.data.rendering import TileOptions
from evidex.errors import DamagedError, NotFoundError
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.rows import Row
from evidex.storage.objects import Place

if TYPE_CHECKING:
    from PIL.Image import Image

_ROWS_KEPT = 8192


class Items:
    """Looks up rows with a handle of its own; safe to use from several threads."""

    def __init__(self, gallery: Place) -> None:
        self._gallery = Gallery.open(gallery)
        self._lock = threading.Lock()
        self._rows: OrderedDict[str, Row] = OrderedDict()

    def refresh(self) -> None:
        with self._lock:
            if self._gallery.refresh():
                self._rows.clear()

    def ways(self) -> tuple[TileOptions, ...]:
        """Those in which an example may be read: as the gallery's scenes were."""
        return readings_of(self._gallery.notes)

    def row(self, row_id: str) -> Row:
        with self._lock:
            if row_id in self._rows:
                self._rows.move_to_end(row_id)
                return self._rows[row_id]
            try:
                row = self._find(row_id)
            except DamagedError:
                # Or a writer has joined the table's pieces since, and removed those of the version that is open here.
                if not self._gallery.refresh():
                    raise
                row = self._find(row_id)
            self._rows[row_id] = row
            if len(self._rows) > _ROWS_KEPT:
                self._rows.popitem(last=False)
            return row

    def _find(self, row_id: str) -> Row:
        import pyarrow.compute as pc

        place = pc.index(self._gallery.column("id"), row_id).as_py()
        if place < 0:
            raise NotFoundError(f"'{row_id[:80]}' is not in the gallery; ids come with the hits of a search")
        return self._gallery.rows([place])[0]

    def picture(self, row: Row, longest: int) -> Image:
        """The row's picture, if it has one and its file is still the one that was indexed."""
        return self._gallery.open_image(row, longest=longest)
