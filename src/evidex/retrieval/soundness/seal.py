"""What a gallery's files must be: size and checksum of each, in one small file that carries a checksum of its own.

seal.json holds a copy of gallery.json, the newest version of the table, and every file that was written for good: those
of the table, the calibrations, the model. It is written after each commit, so a file that it does not name is younger
than it. A file that is about to be replaced is named with both contents first (`Seal.replacing`): a crash in between
leaves one of the two.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from evidex.data.discover import printable
from evidex.documents import parse_json
from evidex.errors import DamagedError, GalleryError
from evidex.files import write_atomic
from evidex.storage.objects import ObjectPlace, Place

SEAL = "seal.json"
INDEX_AGAIN = "run 'evidex index' on your folders and catalogs, which encodes only what is missing"
_FORMAT = 1
_CHUNK = 1 << 20
_SHOWN = 3

Digest = tuple[int, int]
"""Size and CRC-32."""


@dataclass(frozen=True)
class Losses:
    """Which rows repairs had to give up and that are not back yet."""

    words: str = ""
    """Of those whose files are not known by name, what happened; only people can tell when they are back."""
    files: tuple[str, ...] = ()
    """Those of which rows were given up, until they are whole again or found to be gone."""

    def __bool__(self) -> bool:
        return bool(self.words or self.files)

    def __str__(self) -> str:
        shown = ", ".join(f"'{printable(path)}'" for path in self.files[:_SHOWN])
        more, files = ", …" * (len(self.files) > _SHOWN), f"{len(self.files)} file{'s' * (len(self.files) != 1)}"
        named = f"a repair dropped damaged ones of {files}: {shown}{more}" if self.files else ""
        return ", and ".join(filter(None, (self.words, named)))

    def __add__(self, other: Losses) -> Losses:
        words = dict.fromkeys(filter(None, (self.words, other.words)))
        return Losses(", and ".join(words), tuple(sorted({*self.files, *other.files})))


@dataclass(frozen=True)
class Seal:
    """What seal.json says."""

    gallery: Mapping[str, Any]
    """A copy of gallery.json."""
    version: int
    """The newest version of the table that there was."""
    files: Mapping[str, tuple[Digest | None, ...]]
    """By name inside the gallery, what the file may be; None: it may be missing."""
    lost: Losses = Losses()

    def replacing(self, name: str, then: Digest | None) -> Seal:
        """``name`` may be as it was sealed or as it will be ``then``."""
        return replace(self, files={**self.files, name: (*self.files.get(name, (None,)), then)})

    def settled(self, name: str, digest: Digest | None) -> Seal:
        """``name`` is ``digest`` and nothing else; None: it is of no concern any more."""
        others = {other: digests for other, digests in self.files.items() if other != name}
        return replace(self, files=others if digest is None else {**others, name: (digest,)})


def read_seal(folder: Place) -> Seal | None:
    """The seal of a gallery; None where there is none, DamagedError where it is not what was written."""
    try:
        content = parse_json((folder / SEAL).read_bytes())
        if content.pop("check") != checksum_of(content):
            raise ValueError("its checksum is wrong")
        if content["format"] > _FORMAT:
            raise GalleryError(f"'{folder}' was sealed by a newer version; update evidex")
        files = {
            str(name): tuple(None if entry is None else (int(entry[0]), int(entry[1])) for entry in entries)
            for name, entries in content["files"].items()
        }
        lost = Losses(str(content.get("lost", "")), tuple(map(str, content.get("lost_files", ()))))
        return Seal(dict(content["gallery"]), int(content["version"]), files, lost)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(folder, f"{SEAL}, which holds the checksums, cannot be read ({_line(error)})") from None


def write_seal(folder: Place, seal: Seal) -> None:
    content = {
        "format": _FORMAT, "gallery": dict(seal.gallery), "version": seal.version, "files": dict(seal.files),
        "lost": seal.lost.words, "lost_files": seal.lost.files,
    }  # fmt: skip
    body = _canonical(content)
    write_atomic(folder / SEAL, b'%s,"check":%d}\n' % (body[:-1], zlib.crc32(body)))


@contextmanager
def changing(folder: Place) -> Iterator[Callable[[Callable[[Seal], Seal]], None]]:
    """Hold the seal against other writers and yield a function that replaces it; does nothing where there is none."""

    def change(how: Callable[[Seal], Seal]) -> None:
        seal = read_seal(folder)
        if seal is not None:
            write_seal(folder, how(seal))

    with _held(folder):
        yield change


@contextmanager
def _held(folder: Place) -> Iterator[None]:
    if isinstance(folder, ObjectPlace):
        from evidex.storage.lease import lease

        with lease(folder, wait=True):  # who changes the seal there holds all of the gallery
            yield
        return
    import fcntl

    with (folder / ".seal").open("a+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def store(folder: Place, name: str, write: Callable[[Place], object], content: Digest) -> None:
    """Let ``write`` replace the file ``name``, whose new content is known, without a moment in which it is unsound."""
    with changing(folder) as change:
        change(lambda seal: seal.replacing(name, content))
        write(folder / name)
        change(lambda seal: seal.settled(name, content))


def drop(folder: Place, names: Iterable[str]) -> None:
    """Remove files for good."""
    with changing(folder) as change:
        for name in names:
            change(lambda seal, name=name: seal.replacing(name, None))  # type: ignore[misc]
            _remove(folder / name)
            change(lambda seal, name=name: seal.settled(name, None))  # type: ignore[misc]


def _remove(path: Place) -> None:
    """Whatever lies there, also a folder in the place of a file."""
    if isinstance(path, ObjectPlace):
        path.unlink(missing_ok=True)
        path.remove_all()
    elif path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def digest_of(path: Place, progress: Callable[[int], object] = lambda _: None) -> Digest | None:
    """Of a file's content; None where there is none. ``progress`` hears of every piece that was read."""
    size = check = 0
    try:
        with path.open("rb", buffering=0) as stream:
            while piece := stream.read(_CHUNK):
                size, check = size + len(piece), zlib.crc32(piece, check)
                progress(len(piece))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if isinstance(path, ObjectPlace) and (trouble := path.trouble(error)) is not None:
            raise trouble from None
        raise DamagedError(
            f"'{path}' cannot be read ({(error.strerror or str(error)).lower()}); check the disk"
        ) from None
    return size, check


def digest_of_bytes(content: bytes) -> Digest:
    return len(content), zlib.crc32(content)


def checksum_of(content: Mapping[str, Any]) -> int:
    """Of JSON content, however it is laid out."""
    return zlib.crc32(_canonical(content))


def _canonical(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def files_under(folder: Place, part: str) -> list[str]:
    """Names, inside ``folder``, of all files below its ``part``."""
    if isinstance(folder, ObjectPlace):
        return sorted(f"{part}/{name}" for name in (folder / part).listed())
    start = len(os.fspath(folder)) + 1
    return sorted(f"{place}/{name}"[start:] for place, _, names in os.walk(folder / part) for name in names)


def damaged(folder: Place, what: str) -> DamagedError:
    """One line: what is damaged and what to do."""
    return DamagedError(f"'{folder}' is damaged: {what}; 'evidex verify --gallery {folder} --repair' mends what it can")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__
