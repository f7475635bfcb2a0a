"""From a decoded picture, or from the row of the same content, to the row of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from evidex.data.footprints import Window
from evidex.data.items import Piece
from evidex.data.sensors import NOTHING_TOLD, Told
from evidex.data.stac.item import FoundAsset
from evidex.retrieval.indexing.beside import Beside
from evidex.retrieval.indexing.decode_worker import Picture, Same
from evidex.retrieval.indexing.known_files import Encoded
from evidex.retrieval.rows import Row, item_id

Assets = Mapping[str, tuple[FoundAsset, ...]]
NO_ASSETS: Assets = MappingProxyType({})
_TOLD = re.compile(r" told \S+")
PIECES = " told pieces"


class RowMaker:
    """Knows what bears on a row besides the picture: captions, options, a catalog, and the files beside a raster."""

    def __init__(self, captions: Mapping[str, tuple[str, ...]], reading: str, assets: Assets = NO_ASSETS) -> None:
        self._captions = captions
        self._reading = reading
        self._assets = assets
        self._beside = Beside()

    def captions(self, path: str) -> tuple[str, ...]:
        return self._captions.get(path, ())

    def is_catalogued(self, path: str) -> bool:
        """Whether a catalog of this run names the file."""
        return path in self._assets

    def tells_news(self, path: str) -> bool:
        """Whether a catalog may say what rows do not know that are there: one of evidex's own was made from such."""
        return any(not asset.written for asset in self._assets.get(path, ()))

    def pieces(self, path: str) -> tuple[Piece, ...]:
        """The parts of the file that are wanted; none: all of it."""
        return tuple(asset.piece for asset in self._assets.get(path, ()) if asset.piece is not None)

    def told(self, path: str) -> Told:
        assets = self._assets.get(path)
        return assets[0].told if assets else NOTHING_TOLD

    def reading(self, path: str, raster: bool = True) -> str | None:
        """What bears on the rows of a file besides its content."""
        if not raster:
            return None
        told = self.told(path)
        words = PIECES if self.pieces(path) else f" told {told.words}" if told != NOTHING_TOLD else ""
        return self._reading + words + self._beside.of(path)

    def reads_alike(self, path: str, before: str) -> bool:
        """Whether rows of a raster that was read in this way are what would be made of it now.

        What a catalog told of a file holds as long as no other tells of it; but a file of which only pieces were wanted
        is wanted whole when it is found by itself.
        """
        if self.pieces(path):
            return True
        if PIECES in before:
            return False
        now = self.reading(path)
        return before == now if self.is_catalogued(path) else _TOLD.sub("", before) == now

    def row(self, picture: Picture) -> Row:
        file, item = picture.file, picture.item
        row = Row(
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
            thumbnail=picture.thumbnail,
        )
        return self.labelled(row)

    def copied(self, copy: Same, row: Row, vector: NDArray[np.float32]) -> Encoded:
        """The row of another file with the same content, as the row of this one."""
        file = copy.file
        row = replace(row, id=item_id(file.path, row.window), path=file.path, captions=self.captions(file.path))
        row = replace(row, size=file.size, mtime_ns=file.mtime_ns, ctime_ns=file.ctime_ns)
        return self.labelled(row), vector

    def labelled(self, row: Row) -> Row:
        """``row`` with what a catalog tells of it: the file's own place comes first, the item's own time."""
        asset = self._asset(row.path, row.window)
        if asset is None:
            return row
        own = row.crs is not None and row.footprint is not None
        whole = row.window is None or (asset.piece is not None and asset.piece.window == row.window)
        footprint = asset.footprint if whole and not own else row.footprint
        return replace(row, item=asset.item, footprint=footprint, acquired=asset.acquired or row.acquired)

    def _asset(self, path: str, window: Window | None) -> FoundAsset | None:
        """Of items that mean parts of the file the one that means this."""
        assets = self._assets.get(path, ())
        fitting = (asset for asset in assets if asset.piece is None or asset.piece.window in (None, window))
        return next(fitting, None)
