"""Features of frozen mentors, computed once for the same content and kept on disk.

Items are cut into chunks. A chunk's file is named by what it holds: the mentor, the contents of its items in their
order, and the number format. So a run that was killed goes on where it stopped, new items at the end of a dataset
cost only themselves, and nothing has to be invalidated.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np

from evidex.errors import InputError, ModelError
from evidex.files import cache_directory, write_atomic
from evidex.progress import Progress, silent

Precision = Literal["float32", "float16"]

_FORMAT = "evidex-features-1"
_TENSOR = "features"


def content_digest(content: bytes | str) -> str:
    """Return the digest that stands for one item: the bytes of an image file, or a text."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def cached_features(
    mentor_fingerprint: str,
    digests: Sequence[str],
    compute: Callable[[list[int]], np.ndarray],
    *,
    directory: Path | None = None,
    progress: Progress = silent,
    precision: Precision = "float32",
    chunk_size: int = 256,
) -> np.ndarray:
    """Return one float32 row for each item, from the cache where it is there.

    ``compute`` gets positions in ``digests`` and returns their rows; equal digests are computed once. Values are
    rounded to ``precision`` even when they have just been computed, so that the first run equals the later ones.
    ``progress`` counts distinct items. Several processes may call this at once: each chunk is computed by one of them.
    """
    if chunk_size < 1:
        raise InputError(f"chunk_size {chunk_size} is too small; give at least 1")
    if not digests:
        raise InputError("there are no items to compute features of; give at least one")
    folder = cache_directory(directory) / "features"
    first_place: dict[str, int] = {}
    for place, digest in enumerate(digests):
        first_place.setdefault(digest, place)
    distinct = list(first_place)
    chunks = []
    for start in range(0, len(distinct), chunk_size):
        part = distinct[start : start + chunk_size]
        places = [first_place[digest] for digest in part]
        chunks.append(_chunk(folder, _key(mentor_fingerprint, part, precision), places, compute, precision))
        progress(start + len(part), len(distinct))
    if len({chunk.shape[1] for chunk in chunks}) > 1:
        raise ModelError("the mentor gave rows of different length for different items; use a mentor of one dimension")
    rows = np.concatenate(chunks).astype(np.float32)
    row_of = {digest: row for row, digest in enumerate(distinct)}
    result: np.ndarray = rows[[row_of[digest] for digest in digests]]
    return result


def _key(mentor_fingerprint: str, digests: Sequence[str], precision: Precision) -> str:
    lines = [_FORMAT, precision, mentor_fingerprint, *digests]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _chunk(
    folder: Path, key: str, places: list[int], compute: Callable[[list[int]], np.ndarray], precision: Precision
) -> np.ndarray:
    path = folder / key[:2] / f"{key}.safetensors"
    stored = _load(path, len(places), precision)
    if stored is not None:
        return stored
    with _lock(folder, key):
        # Another process may have computed it while this one waited.
        stored = _load(path, len(places), precision)
        if stored is not None:
            return stored
        rows = _checked(compute(places), len(places), precision)
        try:
            write_atomic(path, _serialise(rows))
        except OSError as error:
            raise _unwritable(folder, error) from error
        return rows


def _checked(rows: np.ndarray, count: int, precision: Precision) -> np.ndarray:
    if rows.ndim != 2 or rows.shape[0] != count or rows.shape[1] < 1:
        raise ModelError(f"the mentor returned shape {rows.shape} for {count} items; it has to return a row for each")
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(rows, dtype=np.dtype(precision))
    if not np.isfinite(rounded).all():
        raise ModelError(f"the mentor returned values that are not finite in {precision}; use another mentor")
    return rounded


def _serialise(rows: np.ndarray) -> bytes:
    from safetensors.numpy import save

    return save({_TENSOR: rows}, metadata={"format": _FORMAT, "sha256": hashlib.sha256(rows.data).hexdigest()})


def _load(path: Path, count: int, precision: Precision) -> np.ndarray | None:
    """Return the chunk, or None where there is none or its content is damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            recorded = (file.metadata() or {}).get("sha256")
            rows = np.array(file.get_tensor(_TENSOR)) if _TENSOR in file.keys() else None  # noqa: SIM118
    except FileNotFoundError:
        return None
    except (SafetensorError, OSError, ValueError):
        return None
    if rows is None or rows.ndim != 2 or rows.shape[0] != count or rows.dtype != np.dtype(precision):
        return None
    return rows if hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest() == recorded else None


@contextmanager
def _lock(folder: Path, key: str) -> Iterator[None]:
    """Hold the lock of ``key`` between processes; the system lets go of it when a process dies.

    Keys share 256 lock files, so that locks do not pile up beside the features.
    """
    path = folder / "locks" / key[:2]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("ab")
    except OSError as error:
        raise _unwritable(folder, error) from error
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _unwritable(folder: Path, error: OSError) -> InputError:
    cause = error.strerror or type(error).__name__
    return InputError(f"the feature cache '{folder}' cannot be written ({cause}); set EVIDEX_CACHE to another folder")
