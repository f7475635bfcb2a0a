"""A gallery's rows, and the table they are stored in."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evidex.data.discover import printable
from evidex.data.footprints import Footprint, Window
from evidex.data.rendering import Rendering
from evidex.data.stac.item import COLUMNS, StacItem

Kind = Literal["image", "tile", "text"]


@dataclass(frozen=True)
class Row:
    """One thing that can be found: an image, a tile of a scene, or a text."""

    id: str
    path: str
    """The file as the system names it; may hold surrogates where the name is no UTF-8. Texts may have none ("")."""
    kind: Kind
    sha256: str
    """Of the whole file, or of the text."""
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int | None = None
    """When the system last changed the file; None in rows of versions that did not note it."""
    width: int | None = None
    height: int | None = None
    window: Window | None = None
    footprint: Footprint | None = None
    crs: str | None = None
    acquired: datetime | None = None
    captions: tuple[str, ...] = ()
    rendering: Rendering | None = None
    reading: str | None = None
    """The options a raster was read with, and the state of files read along with it; others make other rows."""
    complete: bool = True
    """Set on the last row of a file: without it the file's rows are only begun."""
    item: StacItem | None = None
    """The item of a catalog that names the file; None where it was found by itself."""
    thumbnail: bytes | None = None
    """A small JPEG, of files on other machines; not among what is read for a hit."""

    @property
    def caption(self) -> str | None:
        return self.captions[0] if self.captions else None

    @property
    def name(self) -> str:
        """The path in a form that can be printed."""
        return printable(self.path)

    @property
    def file(self) -> Path:
        return Path(self.path)


@dataclass(frozen=True)
class WrittenRows:
    """Rows that lie beside a table and are no part of it until they are committed."""

    rows: tuple[Row, ...]
    fragments: tuple[str, ...]
    """What Lance says of each piece, as JSON."""
    digests: Mapping[str, tuple[int, int]]
    """Size and CRC-32 of the files, by name inside the gallery, read back after they were written."""


def item_id(path: str, window: Window | None = None) -> str:
    """An address: the same path and window have the same id in every gallery and after every run."""
    place = "" if window is None else f"#{window.x},{window.y},{window.width},{window.height}"
    return hashlib.blake2b(os.fsencode(path) + b"\0" + place.encode(), digest_size=12).hexdigest()


def text_id(text: str, source: str) -> str:
    return hashlib.blake2b(f"text\0{source}\0{text}".encode(), digest_size=12).hexdigest()


LATER_COLUMNS = frozenset({"ctime_ns", "thumbnail", *COLUMNS})
"""Tables of earlier versions lack these until something is next written to them."""


NOT_FOR_HITS = frozenset({"vector", "thumbnail"})
"""Columns that are left where they are when rows are looked up by the thousand."""


def row_schema(dim: int) -> Any:
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("path", pa.string(), nullable=False),
            pa.field("raw_path", pa.binary()),
            pa.field("kind", pa.string(), nullable=False),
            pa.field("sha256", pa.string(), nullable=False),
            pa.field("size", pa.int64(), nullable=False),
            pa.field("mtime_ns", pa.int64(), nullable=False),
            pa.field("ctime_ns", pa.int64()),
            pa.field("width", pa.int32()),
            pa.field("height", pa.int32()),
            pa.field("window_x", pa.int32()),
            pa.field("window_y", pa.int32()),
            pa.field("footprint", pa.list_(pa.float64())),
            pa.field("crs", pa.string()),
            pa.field("acquired", pa.timestamp("us", tz="UTC")),
            pa.field("captions", pa.list_(pa.string())),
            pa.field("rendering", pa.string()),
            pa.field("reading", pa.string()),
            pa.field("complete", pa.bool_(), nullable=False),
            *(pa.field(name, pa.float64() if name == "cloud_cover" else pa.string()) for name in COLUMNS),
            pa.field("thumbnail", pa.binary()),
            pa.field("vector", pa.list_(pa.float32(), dim), nullable=False),
        ]
    )


def to_table(rows: Sequence[Row], vectors: NDArray[np.float32]) -> Any:
    """Rows and their vectors (n, dim) as one Arrow table."""
    import pyarrow as pa

    schema = row_schema(vectors.shape[1])
    columns: dict[str, list[Any]] = {name: [] for name in schema.names if name != "vector"}
    for row in rows:
        for name, value in _stored(row).items():
            columns[name].append(value)
    arrays = [pa.array(values, schema.field(name).type) for name, values in columns.items()]
    flat = pa.array(np.ascontiguousarray(vectors, np.float32).reshape(-1))
    arrays.append(pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]))
    return pa.table(arrays, schema=schema)


def from_table(table: Any) -> list[Row]:
    """The rows of a table that holds all columns but, perhaps, the vector."""
    names = [name for name in table.schema.names if name != "vector"]
    return [_loaded(record) for record in table.select(names).to_pylist()]


def vectors_in(table: Any) -> NDArray[np.float32]:
    """The vectors of a table or record batch, (n, dim)."""
    import pyarrow as pa

    column = table.column("vector")
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    flat = array.flatten().to_numpy(zero_copy_only=True)
    return np.asarray(flat, dtype=np.float32).reshape(len(array), array.type.list_size)


def records_in(batch: Any) -> Iterator[dict[str, Any]]:
    """The rows of an Arrow batch as far as it has columns; paths come as the system names them."""
    for record in batch.to_pylist():
        if "path" in record:
            record["path"] = stored_path(record["path"], record.pop("raw_path"))
        yield record


def stored_path(path: str, raw: bytes | None) -> str:
    return path if raw is None else os.fsdecode(raw)


def _stored(row: Row) -> dict[str, Any]:
    shown = printable(row.path)
    return {
        "id": row.id,
        "path": shown,
        "raw_path": None if shown == row.path else os.fsencode(row.path),
        "kind": row.kind,
        "sha256": row.sha256,
        "size": row.size,
        "mtime_ns": row.mtime_ns,
        "ctime_ns": row.ctime_ns,
        "width": row.width,
        "height": row.height,
        "window_x": row.window.x if row.window else None,
        "window_y": row.window.y if row.window else None,
        "footprint": row.footprint.flat() if row.footprint else None,
        "crs": row.crs,
        "acquired": row.acquired,
        "captions": list(row.captions) or None,
        "rendering": row.rendering.dumps() if row.rendering else None,
        "reading": row.reading,
        "complete": row.complete,
        **(row.item.columns() if row.item else dict.fromkeys(COLUMNS)),
        "thumbnail": row.thumbnail,
    }


def _loaded(record: dict[str, Any]) -> Row:
    window = None
    if record["window_x"] is not None:
        window = Window(record["window_x"], record["window_y"], record["width"], record["height"])
    return Row(
        id=record["id"],
        path=stored_path(record["path"], record["raw_path"]),
        kind=record["kind"],
        sha256=record["sha256"],
        size=record["size"],
        mtime_ns=record["mtime_ns"],
        ctime_ns=record.get("ctime_ns"),
        width=record["width"],
        height=record["height"],
        window=window,
        footprint=Footprint.from_flat(record["footprint"]) if record["footprint"] else None,
        crs=record["crs"],
        acquired=record["acquired"],
        captions=tuple(record["captions"] or ()),
        rendering=Rendering.loads(record["rendering"]) if record["rendering"] else None,
        reading=record["reading"],
        complete=record["complete"],
        item=StacItem.of_columns(record),
        thumbnail=record.get("thumbnail"),
    )
