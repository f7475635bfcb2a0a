"""Find the files to index: folders, globs and single files, each file once."""

from __future__ import annotations

import glob
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evidex.data.records import Skip
from evidex.data.remote import is_remote
from evidex.documents import is_folder
from evidex.errors import InputError
from evidex.files import at_home

RASTER_SUFFIXES = frozenset({".tif", ".tiff", ".jp2", ".j2k"})
IMAGE_SUFFIXES = RASTER_SUFFIXES | {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp"}
# Pictures and scenes too, which nothing here reads: whoever has some of them should be told that they are not found.
OTHER_PICTURES = frozenset(
    {".avif", ".heic", ".heif", ".jxl", ".j2c", ".jpf", ".jpx", ".pgm", ".ppm", ".psd", ".tga"}
) | {*(".cr2", ".dng", ".nef", ".raw", ".ecw", ".sid", ".img", ".vrt", ".nitf", ".ntf", ".h5", ".hdf", ".hdf5", ".nc")}
HIDDEN = "hidden"
CATALOG_SUFFIXES = frozenset({".json", ".geojson"})


@dataclass(frozen=True)
class FoundFile:
    """A file as it was when it was found; ``path`` is absolute."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int = 0
    """When the system last changed it; unlike the other two nobody can set it back, and a rename moves it on too."""

    @classmethod
    def at(cls, path: str) -> FoundFile:
        return cls.of(path, os.stat(path))  # noqa: PTH116 (a path may hold bytes that are no UTF-8)

    @classmethod
    def of(cls, path: str, status: os.stat_result) -> FoundFile:
        return cls(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@dataclass(frozen=True)
class Findings:
    """The files under the given places, and what could not be looked into."""

    files: tuple[FoundFile, ...]
    skipped: tuple[Skip, ...]
    roots: tuple[str, ...]
    """The given folders and files, absolute; a file known from before that lies in a root and is not found is gone."""
    passed_over: Mapping[str, int] = field(default_factory=dict)
    """Pictures in folders that were not looked at: how many by their suffix, and `HIDDEN` ones."""


def printable(path: str) -> str:
    """``path`` with bytes that are no UTF-8 written as \\xNN, so that it can be printed and stored."""
    try:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # half a character, which no path has, but a document may
        return path.encode("utf-8", "backslashreplace").decode()


def discover(places: Iterable[str | Path], *, gone: bool = False) -> Findings:
    """Walk ``places``. In folders only the suffixes of images count, and other pictures are counted; a file named
    itself is always taken.

    Links are followed; a folder that is reached twice is walked once. Order: by name, so that runs repeat. A place that
    does not exist is refused, or with ``gone`` a root without files.
    """
    files: dict[str, FoundFile] = {}
    skipped: list[Skip] = []
    roots: list[str] = []
    walker = _Walker(skipped)
    for place in places:
        for root in expanded(os.fspath(place), gone=gone):
            path = os.path.normpath(Path(root).absolute())
            roots.append(path)
            if gone and not _lies_there(path):
                continue
            for found in walker.walk(path) if is_folder(path) else _one(path, skipped):
                files.setdefault(found.path, found)
    return Findings(tuple(files.values()), tuple(skipped), tuple(roots), dict(sorted(walker.passed_over.items())))


def check_places(places: Iterable[str | Path], *, gone: bool = False) -> None:
    """Raise InputError for a place that does not exist, before anything is made for the others."""
    for place in places:
        if not is_remote(os.fspath(place)):
            expanded(os.fspath(place), gone=gone and not is_catalog(place))


def is_catalog(place: str | Path) -> bool:
    """Whether a given place is a STAC document, here or on another machine, and not a picture or a folder of some."""
    name = os.fspath(place)
    return is_remote(name) or (Path(name).suffix.lower() in CATALOG_SUFFIXES and not is_folder(name))


def find_file(path: str) -> FoundFile | Skip:
    """One file as it lies there, or why it cannot be indexed."""
    if not os.path.lexists(path):
        return Skip(printable(path), "does not exist")
    skipped: list[Skip] = []
    return next(_one(path, skipped), None) or skipped[0]


def expanded(place: str, *, gone: bool = False) -> list[str]:
    """What a given place names: itself, or what matches it as a pattern; InputError where there is nothing.

    With ``gone`` a place that is no pattern need not be there. A place that cannot be looked at is refused: it
    may be there.
    """
    if _lies_there(place):
        return [place]
    if glob.has_magic(place):
        matches = sorted(glob.glob(str(at_home(place)), recursive=True))  # noqa: PTH207 (absolute patterns too)
        if matches:
            return matches
        raise InputError(f"nothing matches '{printable(place)}'; check the pattern")
    if gone:
        return [place]
    raise InputError(f"'{printable(place)}' does not exist; give a folder, a file or a pattern")


def _lies_there(place: str) -> bool:
    """Whether there is something of that name; InputError where that cannot be told."""
    try:
        os.lstat(place)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last of names that nothing can have
        return False
    except OSError as error:
        if glob.has_magic(place):
            return False
        raise InputError(
            f"'{printable(place)}' cannot be looked at ({_reason(error)}); make it readable, or mount its disk again"
        ) from None
    return True


class _Walker:
    def __init__(self, skipped: list[Skip]) -> None:
        self._skipped = skipped
        self._visited: set[tuple[int, int]] = set()
        self.passed_over: Counter[str] = Counter()

    def walk(self, folder: str) -> Iterator[FoundFile]:
        try:
            status = Path(folder).stat()
            if (status.st_dev, status.st_ino) in self._visited:
                return
            self._visited.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self._skipped.append(Skip(printable(folder), _reason(error)))
            return
        for entry in entries:
            try:
                is_folder = entry.is_dir()
            except OSError as error:
                self._skipped.append(Skip(printable(entry.path), _reason(error)))
                continue
            if is_folder:
                if not entry.name.startswith("."):
                    yield from self.walk(entry.path)
            elif self._is_meant(entry.name):
                yield from _one(entry.path, self._skipped)

    def _is_meant(self, name: str) -> bool:
        """Whether a file of this name is looked at; a picture that is not is counted."""
        suffix = Path(name).suffix.lower()
        hidden = name.startswith(".")
        if name.startswith("._"):  # what macOS writes beside a file on other disks: no picture
            return False
        if suffix in OTHER_PICTURES or (hidden and suffix in IMAGE_SUFFIXES):
            self.passed_over[HIDDEN if hidden else suffix] += 1
        return suffix in IMAGE_SUFFIXES and not hidden


def _one(path: str, skipped: list[Skip]) -> Iterator[FoundFile]:
    try:
        status = Path(path).stat()
    except OSError as error:
        skipped.append(Skip(printable(path), _reason(error)))
        return
    if not stat.S_ISREG(status.st_mode):
        skipped.append(Skip(printable(path), "no regular file"))
    elif status.st_size == 0:
        skipped.append(Skip(printable(path), "empty file"))
    else:
        yield FoundFile.of(path, status)


def _reason(error: OSError) -> str:
    import errno

    if error.errno == errno.ELOOP:
        return "a link that leads back to itself"
    if error.errno == errno.ENOENT:
        return "a link to a file that does not exist"
    return (error.strerror or str(error)).lower()
