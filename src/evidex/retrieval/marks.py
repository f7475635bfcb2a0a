"""What people said of hits: right or wrong, for one question each; kept in the gallery's folder.

`marks.jsonl` has a line for every mark, in the order in which they were made, with a checksum before it; the last one
for a question and a row holds, and "none" takes it back. Lines are only ever appended, under a lock and to the disk
before anybody is told, so a process that is killed leaves whole lines and perhaps a torn last one, which is passed
over. The file is no part of the table: indexing leaves it alone. A mark names the content it was made of, and counts
only while the gallery has that at that place.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from evidex.documents import parse_json
from evidex.errors import DataError, GalleryError, InputError
from evidex.files import sync_directory, telling_full_disk, write_json_atomic
from evidex.retrieval.composing import asked
from evidex.retrieval.queries import check_query
from evidex.storage.objects import ObjectPlace, Place

Says = Literal["right", "wrong"]
FILE = "marks.jsonl"
_LOCK = ".marks"
_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Asked:
    """A question that hits can be marked for: words, the id of an item whose like was looked for, or both."""

    text: str | None = None
    item: str | None = None

    def __post_init__(self) -> None:
        if self.text is None and self.item is None:
            raise InputError("the question is missing; give its text or its item")
        if self.text is not None:
            check_query(self.text, "text")
            object.__setattr__(self, "text", " ".join(self.text.split()))

    @property
    def is_plain(self) -> bool:
        """Whether it is a text without anything else, also no minus."""
        return self.item is None and self.text is not None and asked(self.text)[0] == "text"


@dataclass(frozen=True)
class Mark:
    """What was said of one row as a hit for one question."""

    asked: Asked
    id: str
    sha256: str
    """Of the content that was looked at."""
    says: Says | None
    """None takes back what was said before."""
    time: str = ""
    """When, in UTC."""


class Marks:
    """The marks of one gallery."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / FILE

    @classmethod
    def at(cls, gallery: Place) -> Marks:
        """Those of the gallery at this place; GalleryError where none can be kept there."""
        if isinstance(gallery, ObjectPlace):
            raise GalleryError(f"'{gallery}' keeps no marks; they lie in the folder of a gallery on this machine")
        return cls(gallery)

    def add(self, mark: Mark) -> None:
        """Keep a mark; when this returns it is there to stay."""
        stamped = {**asdict(mark), "time": datetime.now(UTC).isoformat(timespec="seconds")}
        with self._held():
            size = self._file.stat().st_size if self._file.exists() else 0
            if size > _MOST_BYTES:
                raise InputError(f"'{self._file}' has grown to {size} bytes; export the marks and delete them")
            torn = size > 0 and not _ends_whole(self._file)
            _append(self._file, b"\n" * torn + _line(stamped))
            if not size:
                sync_directory(self._folder)

    def all(self) -> list[Mark]:
        """Those that hold, in the order in which they were made."""
        last: dict[tuple[Asked, str], Mark] = {}
        for mark in self._read()[0]:
            last.pop((mark.asked, mark.id), None)
            if mark.says is not None:
                last[mark.asked, mark.id] = mark
        return list(last.values())

    def of(self, asked: Asked) -> list[Mark]:
        """Those that hold for one question."""
        return [mark for mark in self.all() if mark.asked == asked]

    @property
    def damaged(self) -> int:
        """Lines that cannot be read, or are not what was written."""
        return self._read()[1]

    def export(self, target: Path) -> int:
        """Write those that hold as JSON; how many they are."""
        marks = self.all()
        write_json_atomic(target, [asdict(mark) for mark in marks])
        return len(marks)

    def delete(self) -> int:
        """Forget all; how many held."""
        with self._held():
            count = len(self.all())
            self._file.unlink(missing_ok=True)
            sync_directory(self._folder)
        return count

    def _read(self) -> tuple[list[Mark], int]:
        """All that were made, and how many lines are damaged."""
        try:
            lines = self._file.read_bytes().splitlines()
        except FileNotFoundError:
            return [], 0
        except OSError as error:
            raise GalleryError(f"'{self._file}' cannot be read ({(error.strerror or '').lower()}); check it") from None
        read = [_mark(line) for line in lines if line]
        return [mark for mark in read if mark is not None], sum(mark is None for mark in read)

    @contextmanager
    def _held(self) -> Iterator[None]:
        import fcntl

        try:
            with telling_full_disk(self._file), (self._folder / _LOCK).open("a+") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)
                yield
        except PermissionError:
            raise GalleryError(f"'{self._folder}' lets nobody write, so marks cannot be kept there") from None
        except OSError as error:
            if isinstance(error, GalleryError | InputError):
                raise
            reason = (error.strerror or str(error)).lower()
            raise GalleryError(f"'{self._file}' cannot be written ({reason}); check the disk") from None


def current(marks: Iterable[Mark], content: dict[str, str]) -> list[Mark]:
    """Those of ``marks`` whose row is still what was looked at; ``content`` gives the digests of rows by their ids."""
    return [mark for mark in marks if content.get(mark.id) == mark.sha256]


def _line(content: dict[str, Any]) -> bytes:
    body = json.dumps(content, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _mark(line: bytes) -> Mark | None:
    check, _, body = line.partition(b" ")
    try:
        if int(check, 16) != zlib.crc32(body):
            return None
        content = parse_json(body)
        says = content["says"]
        if says not in (*get_args(Says), None):
            return None
        asked = Asked(**content["asked"])
        return Mark(asked, str(content["id"]), str(content["sha256"]), says, str(content["time"]))
    except (ValueError, KeyError, TypeError, InputError, DataError):
        return None


def _append(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        while content:
            content = content[os.write(descriptor, content) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"
