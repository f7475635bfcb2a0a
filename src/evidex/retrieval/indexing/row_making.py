"""From a decoded picture, or from the row of the same content, to the row of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.indexing.beside import Beside
from evidex.retrieval.indexing.decode_worker import Picture, Same
from evidex.retrieval.indexing.known_files import Encoded
from evidex.retrieval.rows import Row, item_id


class RowMaker:
    """Knows what bears on a row besides the picture: captions, options, and the files beside a raster."""

    def __init__(self, captions: Mapping[str, tuple[str, ...]], reading: str) -> None:
        self._captions = captions
        self._reading = reading
        self._beside = Beside()

    def captions(self, path: str) -> tuple[str, ...]:
        return self._captions.get(path, ())

    def reading(self, path: str, raster: bool = True) -> str | None:
        """What bears on the rows of a file besides its content."""
        return self._reading + self._beside.of(path) if raster else None

    def row(self, picture: Picture) -> Row:
        file, item = picture.file, picture.item
        return Row(
            id=item_id(picture.path, item.window),
            path=picture.path,
            kind="image" if item.window is None else "tile",
            sha256=picture.sha256,
            size=file.size,
            mtime_ns=file.mtime_ns,
            ctime_ns=file.ctime_ns,
            width=item.width,
            height=item.height,
            window=item.window,
            footprint=item.footprint,
            crs=item.crs,
            acquired=item.acquired,
            captions=self.captions(picture.path),
            rendering=item.rendering,
            phash=picture.phash,
            reading=self.reading(picture.path, picture.raster),
            complete=picture.last,
        )

    def copied(self, copy: Same, row: Row, vector: NDArray[np.float32]) -> Encoded:
        """The row of another file with the same content, as the row of this one."""
        file = copy.file
        row = replace(row, id=item_id(file.path, row.window), path=file.path, captions=self.captions(file.path))
        return replace(row, size=file.size, mtime_ns=file.mtime_ns, ctime_ns=file.ctime_ns), vector
