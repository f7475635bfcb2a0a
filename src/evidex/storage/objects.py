"""A place in an object store, used as a folder or file of this machine is.

`ObjectPlace` has those methods of `pathlib.Path` that a gallery needs, so that what reads and writes galleries is the
same for both (`Place`). An object is written whole or not at all, and a folder is nothing but a common beginning of
names.
"""

from __future__ import annotations

import fnmatch
import io
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeAlias

from evidex.errors import InputError, StorageError
from evidex.storage import s3

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_READ_AHEAD = 1 << 24  # every read is a request
_READS = 5


@dataclass(frozen=True)
class ObjectStatus:
    """What a listing says of an object, under the names that `os.stat_result` has."""

    st_size: int
    st_mtime_ns: int

    @property
    def st_ctime_ns(self) -> int:
        return self.st_mtime_ns

    @property
    def st_ino(self) -> int:
        return 0


@dataclass(frozen=True, order=True)
class ObjectPlace:
    """An object, or all objects below a prefix."""

    bucket: str
    key: str
    """Without slashes at its ends; "" is the bucket itself."""

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}".rstrip("/")

    def __truediv__(self, name: str) -> ObjectPlace:
        return ObjectPlace(self.bucket, f"{self.key}/{name}".strip("/"))

    @property
    def name(self) -> str:
        return PurePosixPath(self.key).name

    @property
    def stem(self) -> str:
        return PurePosixPath(self.key).stem

    @property
    def parent(self) -> ObjectPlace:
        return ObjectPlace(self.bucket, self.key.rpartition("/")[0])

    def relative_to(self, other: object) -> PurePosixPath:
        return PurePosixPath(f"{self.bucket}/{self.key}").relative_to(str(other).removeprefix("s3://"))

    def exists(self) -> bool:
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        return bool(self.listed())

    def stat(self) -> ObjectStatus:
        with self._asking() as files:
            found = files.get_file_info(self._path)
        if not found.is_file:
            raise FileNotFoundError(str(self))
        return ObjectStatus(found.size, found.mtime_ns or 0)

    def listed(self) -> dict[str, ObjectStatus]:
        """Every object below, by its name from here on; none where there is no such prefix."""
        from pyarrow.fs import FileSelector, FileType

        with self._asking() as files:
            found = files.get_file_info(FileSelector(self._path, allow_not_found=True, recursive=True))
            if not found and files.get_file_info(self.bucket).type == FileType.NotFound:
                raise OSError("NO_SUCH_BUCKET")
        start = len(self._path) + 1
        return {each.path[start:]: ObjectStatus(each.size, each.mtime_ns or 0) for each in found if each.is_file}

    def iterdir(self) -> Iterator[ObjectPlace]:
        yield from (self / name for name in sorted({name.partition("/")[0] for name in self.listed()}))

    def glob(self, pattern: str) -> Iterator[ObjectPlace]:
        """The objects directly below whose name matches."""
        yield from (self / name for name in sorted(self.listed()) if "/" not in name and fnmatch.fnmatch(name, pattern))

    def open(self, mode: str = "rb", buffering: int = -1) -> Any:  # noqa: ARG002 (as of Path)
        """A stream of the object's bytes; FileNotFoundError where there is none."""
        with self._asking() as files:
            return files.open_input_stream(self._path, buffer_size=_READ_AHEAD)

    def read_bytes(self) -> bytes:
        """All of an object, also while others replace it: pyarrow asks for the size first and reads no more than it."""
        content = b""
        for _ in range(_READS):
            with self._asking(), self.open() as stream:
                content = bytes(stream.read())
            if len(content) == self.stat().st_size:
                break
        return content

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)

    def write_bytes(self, data: bytes) -> None:
        """Replace the object; others see the old one or the new one."""
        self._replace(io.BytesIO(data))

    def copy_to(self, target: Path) -> None:
        """Download into a new file."""
        with self._asking(), self.open() as stream, target.open("wb") as file:
            while piece := stream.read(_READ_AHEAD):
                file.write(piece)

    def copy_from(self, source: Path) -> None:
        """Upload a file; others see the old object or the new one."""
        with self._asking(), source.open("rb") as file:
            self._replace(file)

    def _replace(self, content: BinaryIO) -> None:
        """Write under a name of its own first: pyarrow's streams publish what they have also where they fail."""
        aside = self.parent / f".{self.name}.tmp-{uuid.uuid4().hex}"
        try:
            with self._asking() as files:
                with files.open_output_stream(aside._path) as stream:
                    while piece := content.read(_READ_AHEAD):
                        stream.write(piece)
                files.copy_file(aside._path, self._path)
        finally:
            with suppress(StorageError):  # what stays has a name that nobody reads
                aside.unlink(missing_ok=True)

    def mkdir(self, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: a name may hold slashes without more."""

    def unlink(self, missing_ok: bool = False) -> None:
        with self._asking() as files:
            try:
                files.delete_file(self._path)
            except FileNotFoundError:
                if not missing_ok:
                    raise

    def remove_all(self) -> None:
        """Every object below."""
        with self._asking() as files, suppress(FileNotFoundError):
            files.delete_dir(self._path)

    @property
    def _path(self) -> str:
        return f"{self.bucket}/{self.key}".rstrip("/")

    @contextmanager
    def _asking(self) -> Iterator[Any]:
        try:
            yield s3.filesystem()
        except (FileNotFoundError, StorageError):
            raise
        except OSError as error:
            line = " ".join(str(error).split())[:160]
            raise self.trouble(error) or StorageError(f"'{self}' cannot be read or written ({line})") from None

    def trouble(self, error: BaseException) -> StorageError | None:
        """A failure of the store in one line; None where ``error`` is something else."""
        return s3.told(self, self.bucket, error)


Place: TypeAlias = Path | ObjectPlace


def place_of(given: str | Path | ObjectPlace) -> Place:
    """Where a gallery is: a path, or the address of a prefix in an object store."""
    if isinstance(given, ObjectPlace):
        return given
    found = _SCHEME.match(str(given)) if isinstance(given, str) else None
    if found is None:
        return Path(given)
    scheme, rest = found[1].lower(), str(given)[found.end() :]
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not bucket or not key.strip("/"):
        raise InputError(f"'{given}' is no place for a gallery; give a folder, or s3://BUCKET/PREFIX")
    if "//" in key.strip("/") or any(part in (".", "..") for part in key.split("/")):
        raise InputError(f"'{given}' has an empty name or dots in it; give s3://BUCKET/PREFIX")
    return ObjectPlace(bucket, key.strip("/"))


def lance_place(place: Place) -> dict[str, Any]:
    """How Lance is told of a table: where it is, and for a store how to ask it."""
    if isinstance(place, ObjectPlace):
        s3.filesystem()  # says in one line what Lance says in many
        return {"uri": str(place), "storage_options": s3.lance_options()}
    return {"uri": str(place)}
