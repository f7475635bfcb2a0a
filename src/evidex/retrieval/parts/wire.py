"""What travels between the server that is asked and those that hold parts: vectors there, a scan's result back.

The result is an Arrow stream of the rows that were found, and the numbers of the scan as JSON in its head. Both are
data: nothing that arrives is executed.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.documents import parse_json
from evidex.errors import InputError
from evidex.retrieval.rows import Row, from_table, to_table
from evidex.retrieval.scan.partial import ScanResult

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
MOST_QUERIES = 1024
"""In one request."""
_HEAD = b"evidex-part"


@dataclass(frozen=True, eq=False)
class PartFound:
    """A batch of queries against one part."""

    result: ScanResult
    """Ids are places in the part's gallery, as it was."""
    places: NDArray[np.int64]
    """(rows,) sorted, all that ``result`` names."""
    rows: tuple[Row, ...]
    version: int
    """Of the part's gallery: places of one version mean nothing in another."""


def vectors_text(vectors: NDArray[np.float32]) -> str:
    return base64.b64encode(np.ascontiguousarray(vectors, "<f4").tobytes()).decode("ascii")


def vectors_from_text(text: str, dim: int) -> NDArray[np.float32]:
    """Finite rows of ``dim`` numbers, one at least."""
    try:
        flat = np.frombuffer(base64.b64decode(text, validate=True), "<f4")
    except (binascii.Error, ValueError):
        raise InputError("the vectors are no base64 of little-endian 32-bit floats") from None
    if not len(flat) or len(flat) % dim:
        raise InputError(f"{len(flat)} numbers are no vectors of {dim}; this part's model gives those")
    if not np.isfinite(flat).all():
        raise InputError("the vectors hold what is no number")
    return flat.reshape(-1, dim).astype(np.float32)


def pack(found: PartFound) -> bytes:
    import pyarrow as pa

    result = found.result
    head = {
        "count": result.count,
        "temperature": result.temperature,
        "ids": result.ids.tolist(),
        "scores": result.scores.tolist(),
        "log_sum_exp": result.log_sum_exp.tolist() if result.count else [None] * len(result),
        "places": found.places.tolist(),
        "version": found.version,
    }
    table = to_table(found.rows, np.zeros((len(found.rows), 1), np.float32)).drop_columns(["vector"])
    table = table.replace_schema_metadata({_HEAD: json.dumps(head).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def unpack(content: bytes, queries: int, top: int) -> PartFound:
    """The inverse of `pack`; ValueError for anything else, and for another number of queries or of best rows."""
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(content) as stream:
            table = stream.read_all()
        head: dict[str, Any] = parse_json((table.schema.metadata or {})[_HEAD])
        count = int(head["count"])
        ids = np.array(head["ids"], np.int64).reshape(queries, -1)
        scores = np.array(head["scores"], np.float64).reshape(queries, -1)
        lost = [-np.inf if value is None else float(value) for value in head["log_sum_exp"]]
        places = np.array(head["places"], np.int64)
        rows, version = tuple(from_table(table)), int(head["version"])
        result = ScanResult(ids, scores, np.array(lost), count, float(head["temperature"]))
    except (KeyError, TypeError, OSError, pa.ArrowException) as error:
        raise ValueError(f"the part's answer lacks or garbles {error}") from None
    fits = ids.shape == scores.shape and len(lost) == queries and ids.shape[1] == min(top, count)
    known = np.array_equal(places, np.unique(ids)) and len(rows) == len(places)
    finite = np.isfinite(scores).all() and (np.isfinite(lost).all() or count == 0)
    if not (fits and known and finite and (places >= 0).all()):
        raise ValueError("the part's answer does not fit together")
    return PartFound(result, places, rows, version)
