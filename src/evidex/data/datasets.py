"""A split of a dataset: records with their images, from a folder or from tars.

RSICD, RSITMD, UCM-Captions and your own data are read the same way: a folder that holds one captions
file (``captions.json`` or the authors' ``dataset_*.json``), and the images in that folder, in a folder
inside it or in ``*.tar`` files. A captions file may also be given itself. Where the authors have no val
part, one is drawn (`evidex.data.val_part`).
"""

from __future__ import annotations

import reprlib
import tarfile
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from evidex.config import Role
from evidex.data.images import decode_image
from evidex.data.objects import OBJECTS_FILE
from evidex.data.records import Record, Skip, read_caption_file
from evidex.data.val_part import with_val_part
from evidex.documents import is_file, is_folder, open_regular, read_regular
from evidex.errors import DataError, InputWarning

if TYPE_CHECKING:
    from PIL.Image import Image

_USUAL_SPLITS = ("train", "val", "test", "valid", "validation", "dev", "eval", "restval", "trainval", "all")


@dataclass(frozen=True)
class TarMember:
    """Where the bytes of an image lie inside a tar."""

    archive: Path
    offset: int
    size: int


@dataclass(frozen=True)
class Dataset:
    """One split. Captions are numbered through, image by image."""

    name: str
    split: str
    records: tuple[Record, ...]
    locations: tuple[Path | TarMember, ...]
    skipped: tuple[Skip, ...] = ()
    drawn: bool = False
    """Whether the dataset has no val part of its own, so that train and val are drawn by the names of the files."""
    captions: list[str] = field(init=False)
    image_of_caption: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "captions", [text for record in self.records for text in record.captions])
        counts = [len(record.captions) for record in self.records]
        object.__setattr__(self, "image_of_caption", np.repeat(np.arange(len(counts)), counts))

    def __len__(self) -> int:
        return len(self.records)

    def image_bytes(self, index: int) -> bytes:
        location = self.locations[index]
        if isinstance(location, Path):
            return read_regular(location, DataError)
        with open_regular(location.archive, DataError) as stream:
            stream.seek(location.offset)
            return stream.read(location.size)

    def open_image(self, index: int) -> Image:
        return decode_image(self.image_bytes(index), name=self.records[index].filename)

    def subset(self, indices: Sequence[int]) -> Dataset:
        """Return the dataset of the records at ``indices``."""
        return Dataset(
            self.name,
            self.split,
            tuple(self.records[i] for i in indices),
            tuple(self.locations[i] for i in indices),
            self.skipped,
            self.drawn,
        )


def joined(parts: Sequence[Dataset]) -> Dataset:
    """All of ``parts`` as one, one after another; a single one is that itself."""
    if len(parts) == 1:
        return parts[0]
    return Dataset(
        " + ".join(part.name for part in parts),
        parts[0].split,
        tuple(record for part in parts for record in part.records),
        tuple(location for part in parts for location in part.locations),
        tuple(skip for part in parts for skip in part.skipped),
        any(part.drawn for part in parts),
    )


def load_dataset(path: Path, split: str, role: Role = "captions", *, draws: bool = True) -> Dataset:
    """Return the split ``split`` of the dataset at ``path`` (a folder or its captions file).

    Every image of the split must be there; images are decoded only when asked for. In the role of ``labels`` the
    records have no captions, but each a label. Where the authors have no val part one is drawn from what trains, unless
    it is not wanted (``draws``).
    """
    path = Path(path)
    captions_path = _captions_path(path) if is_folder(path) else path
    root = captions_path.parent
    content = read_caption_file(captions_path, role)
    if role == "labels" and content.skipped and not content.records:
        raise DataError(f"'{captions_path}' has no labels; label its images, or leave out role = \"labels\"")
    all_records = with_val_part(content.records) if draws else content.records
    records = tuple(record for record in all_records if record.split == split)
    if not records:
        splits = sorted({record.split for record in all_records})
        raise DataError(f"'{captions_path}' has no split '{split}'; it has {', '.join(splits) or 'no images at all'}")
    _tell_of_others(captions_path, content.records, split)
    locate = _Locator(root)
    locations = tuple(locate(record.filename) for record in records)
    names = {record.filename for record in records}
    skipped = tuple(skip for skip in content.skipped if skip.name in names)
    drawn = split in ("train", "val") and all_records is not content.records
    return Dataset(content.dataset, split, records, locations, skipped, drawn)


def _tell_of_others(path: Path, records: Sequence[Record], split: str) -> None:
    """Say which images lie in a split that nobody asks for, such as ``trian``; who names them anew knows the names."""
    if split not in _USUAL_SPLITS:
        return
    for name, count in Counter(record.split for record in records if record.split not in _USUAL_SPLITS).items():
        images = "1 image is" if count == 1 else f"{count} images are"
        warnings.warn(
            f"'{path}': {images} in the split {reprlib.repr(name)}, which is not used; correct the name if it is "
            f"misspelt (usual are {', '.join(_USUAL_SPLITS[:3])})",
            InputWarning,
            stacklevel=3,
        )


def _captions_path(folder: Path) -> Path:
    plain = folder / "captions.json"
    if is_file(plain):
        return plain
    found = sorted(path for path in folder.glob("*.json") if path.name != OBJECTS_FILE)
    if len(found) == 1:
        return found[0]
    if not found:
        raise DataError(f"'{folder}' holds no captions.json; give a dataset folder or its captions file")
    raise DataError(f"'{folder}' holds {len(found)} JSON files; name the captions file itself")


class _Locator:
    """Finds images by name: beside the captions, in a folder inside, or in a tar."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders = [root, *sorted(entry for entry in root.iterdir() if is_folder(entry))]
        self._members: dict[str, TarMember] | None = None

    def __call__(self, filename: str) -> Path | TarMember:
        for folder in self._folders:
            candidate = folder / filename
            if is_file(candidate):
                return candidate
        if self._members is None:
            self._members = _index_tars(self._root)
        member = self._members.get(PurePosixPath(filename).name)
        if member is None:
            raise DataError(f"image '{filename}' is neither in a folder nor in a tar under '{self._root}'; add it")
        return member


def _index_tars(root: Path) -> dict[str, TarMember]:
    members: dict[str, TarMember] = {}
    for archive in sorted(filter(is_file, root.glob("*.tar"))):
        length = archive.stat().st_size
        try:
            with tarfile.open(archive, "r:") as tar:
                for info in tar:
                    if not info.isfile():
                        continue
                    if info.offset_data + info.size > length:
                        raise DataError(f"'{archive}' is truncated at '{info.name}'; fetch it again")
                    name = PurePosixPath(info.name).name
                    if name in members:
                        raise DataError(f"image '{name}' occurs twice in the tars under '{root}'; keep one")
                    members[name] = TarMember(archive, info.offset_data, info.size)
        except (tarfile.TarError, EOFError) as error:
            raise DataError(f"'{archive}' is no readable tar ({error}); fetch it again") from None
        if length % tarfile.BLOCKSIZE:
            raise DataError(f"'{archive}' is truncated; fetch it again")
    return members
