"""An archive that people work in: files copied over others, swapped, renumbered, touched, rewritten, deleted.

Used by the property test of re-indexing and by benchmarks/churn.py.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evidex.data.items import ReadOptions
from evidex.data.rendering import TileOptions
from evidex.encoders.model import Model
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.rows import Row
from tests.retrieval.archive import WORDS, picture, write_raster

READ = ReadOptions(TileOptions(tile=32, overlap=4))
SUFFIXES = ("png", "jpg", "tif", "tiff", "webp")


class Archive:
    """A folder of small pictures and scenes, and what may happen to it; all chance comes from ``rng``."""

    def __init__(self, folder: Path, rng: np.random.Generator, count: int) -> None:
        self.folder = folder
        self._rng = rng
        self._aside = folder.parent / "aside"
        self._least = max(3, count * 3 // 4)
        folder.mkdir()
        for number in range(count):
            self._write(folder / f"{number:03d}.{SUFFIXES[number % len(SUFFIXES)]}")
        self._operations: dict[str, Callable[[], None]] = {
            name.removeprefix("do_"): getattr(self, name) for name in dir(self) if name.startswith("do_")
        }

    def files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.suffix[1:] in SUFFIXES)

    def churn(self) -> str:
        """One random operation; returns its name. Where files have become few, it is a new one."""
        if len(self.files()) < self._least:
            self.do_new()
            return "new"
        name = str(self._rng.choice(list(self._operations)))
        self._operations[name]()
        return name

    def do_new(self) -> None:
        self._write(self.folder / f"{self._rng.integers(100, 1000)}.{self._rng.choice(SUFFIXES)}")

    def do_rewrite(self) -> None:
        self._write(self._any())

    def do_copy_over(self) -> None:
        source, target = self._some(2)
        (shutil.copy if self._rng.random() < 0.5 else shutil.copy2)(source, target)

    def do_copy_to_new(self) -> None:
        shutil.copy2(self._any(), self.folder / f"copy{self._rng.integers(1000)}.{self._rng.choice(SUFFIXES)}")

    def do_swap(self) -> None:
        self._rotate(self._some(2))

    def do_rename(self) -> None:
        path = self._any()
        path.rename(self.folder / f"{self._rng.integers(100, 1000)}{path.suffix}")

    def do_rename_over(self) -> None:
        source, target = self._some(2)
        source.rename(target)

    def do_rename_chain(self) -> None:
        """Each file takes the name of the next, and the first name is free."""
        paths = self._some(int(self._rng.integers(2, 6)))
        for source, target in zip(paths[-2::-1], paths[:0:-1], strict=True):
            source.rename(target)

    def do_rotate(self) -> None:
        self._rotate(self._some(int(self._rng.integers(3, 6))))

    def do_move_into_folder(self) -> None:
        target = self.folder / "deep" / str(self._rng.integers(3))
        target.mkdir(parents=True, exist_ok=True)
        path = self._any()
        path.rename(target / path.name)

    def do_delete(self) -> None:
        self._any().unlink()

    def do_insert_and_renumber(self) -> None:
        """A new file takes a number in the middle, and all after it move up by one."""
        files = self.files()
        place = int(self._rng.integers(len(files)))
        self._rotate([*files[place:], self.folder / f"{self._rng.integers(900, 1000)}.png"])
        self._write(files[place])

    def do_touch(self) -> None:
        os.utime(self._any())

    def do_rewrite_same_size_and_time(self) -> None:
        """As tools do that keep times: nothing but the content tells that it changed."""
        path = self._any()
        status = path.stat()
        picture(int(self._rng.integers(1 << 30)), (40, 30)).save(path, "TIFF")  # uncompressed: always of one size
        if path.stat().st_size < status.st_size:
            path.write_bytes(path.read_bytes().ljust(status.st_size, b"\0"))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def do_one_time_for_all(self) -> None:
        """As unpacking an archive leaves files."""
        for path in self.files():
            os.utime(path, ns=(10**18, 10**18))

    def do_break(self) -> None:
        path = self._any()
        path.write_bytes(path.read_bytes()[: int(self._rng.integers(0, 60))])

    def do_captions(self) -> None:
        """Some files are described, perhaps otherwise than before."""
        files = [path for path in self.files() if path.parent == self.folder and self._rng.random() < 0.5]
        entries = [
            {"filename": path.name, "split": "x", "captions": [f"{WORDS[n % 4]} {self._rng.integers(9)}"]}
            for n, path in enumerate(files)
        ]
        (self.folder / "captions.json").write_text(json.dumps({"dataset": "a", "images": entries}))

    def do_metadata_beside(self) -> None:
        """A sensor's metadata is laid beside a file, corrected, or taken away; it holds the time of acquisition."""
        beside = self._any().with_suffix(".IMD")
        if beside.exists() and self._rng.random() < 0.5:
            beside.unlink()
        else:
            year = 2000 + int(self._rng.integers(10, 25))
            beside.write_text(
                'version = "AA";\nBEGIN_GROUP = IMAGE_1\n'
                f"\tfirstLineTime = {year}-03-01T10:00:00.000000Z;\nEND_GROUP = IMAGE_1\nEND;\n"
            )

    def _write(self, path: Path) -> None:
        seed = int(self._rng.integers(1 << 30))
        kind = int(self._rng.integers(6))
        path.unlink(missing_ok=True)  # what lies there may be broken, and GDAL looks at it first
        if kind == 0:  # a scene of several tiles, some of them empty
            values = np.repeat(np.repeat(np.random.default_rng(seed).integers(1, 250, (3, 10, 10)), 10, 1), 10, 2)
            values[:, : 40 * int(self._rng.integers(3))] = 0
            values[:, 100 - 40 * int(self._rng.integers(2)) :] = 0
            write_raster(path, values.astype(np.uint8), nodata=0, tiled=False, blockxsize=100, blockysize=100)
        elif kind == 1:  # a georeferenced picture
            write_raster(path, np.asarray(picture(seed, (40, 30))).transpose(2, 0, 1), tiled=False)
        elif kind == 2:
            picture(seed, (40, 30)).save(path, "TIFF")
        else:
            picture(seed, (40, 30)).save(path, "PNG")

    def _any(self) -> Path:
        return self._some(1)[0]

    def _some(self, count: int) -> list[Path]:
        files = self.files()
        return [files[place] for place in self._rng.permutation(len(files))[:count]]

    def _rotate(self, paths: list[Path]) -> None:
        """The last file becomes the first, every other the next; a last one that is not there leaves the first free."""
        if paths[-1].exists():
            paths[-1].rename(self._aside)
        for source, target in zip(paths[-2::-1], paths[:0:-1], strict=True):
            source.rename(target)
        if self._aside.exists():
            self._aside.rename(paths[0])


def options(**changes: object) -> IndexOptions:
    """Those under which the archive has many commits and scenes of many tiles."""
    known = IndexOptions(read=READ, workers=1, prune=True, force=True, batch_size=4, rows_a_commit=4)
    return replace(known, **changes)  # type: ignore[arg-type]


Rows = dict[str, tuple[Row, NDArray[np.float32]]]


def rows_of(gallery: Gallery) -> Rows:
    rows = gallery.rows(range(len(gallery)))
    assert len({row.id for row in rows}) == len(rows), "a row is there twice"
    return {row.id: (row, gallery.vectors[place]) for place, row in enumerate(rows)}


def fresh_rows(archive: Archive, model: Model, place: Path) -> Rows:
    """What an index made now from nothing holds."""
    shutil.rmtree(place, ignore_errors=True)
    gallery = Gallery.create(place, model)
    gallery.add(archive.folder, options=options(batch_size=64, rows_a_commit=256))
    return rows_of(gallery)


def differences(found: Rows, expected: Rows) -> list[str]:
    """In words, every row of ``found`` that is not as expected, in any column."""
    said = [f"{found[row_id][0].name}: a row too many" for row_id in found.keys() - expected.keys()]
    said += [f"{expected[row_id][0].name}: a row is missing" for row_id in expected.keys() - found.keys()]
    for row_id in found.keys() & expected.keys():
        (row, vector), (other, other_vector) = found[row_id], expected[row_id]
        if row != other:
            columns = [name for name in vars(row) if getattr(row, name) != getattr(other, name)]
            said.append(f"{row.name}: {', '.join(columns)} of another file or time")
        elif np.abs(vector - other_vector).max() > 1e-5:
            said.append(f"{row.name}: another file's vector")
    return sorted(said)
