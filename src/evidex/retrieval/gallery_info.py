"""What gallery.json says, and the copy of it that the seal holds."""

from __future__ import annotations

import logging
import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from evidex.documents import parse_json
from evidex.errors import GalleryError
from evidex.files import write_json_atomic
from evidex.retrieval.soundness.seal import SEAL, Seal, damaged, read_seal
from evidex.storage.objects import Place

FORMAT = 2
INFO = "gallery.json"
_MOST_DIMENSIONS = 1 << 16
_LOG = logging.getLogger("evidex.gallery")


@dataclass(frozen=True)
class GalleryInfo:
    """What gallery.json says."""

    format: int
    """Galleries of format 1 have no seal; they get one when something is next put in."""
    model_fingerprint: str
    model: str
    """Where the model is: a name or path for `load_model`, or the gallery itself."""
    dim: int
    temperature: float

    def __post_init__(self) -> None:
        # bool is an int to Python, and a damaged file may say anything.
        whole = all(type(value) is int for value in (self.format, self.dim))
        if not whole or self.format < 1 or not 1 <= self.dim <= _MOST_DIMENSIONS:
            raise ValueError(f"format {self.format!r} or dim {self.dim!r} is no sensible number")
        if not (isinstance(self.model_fingerprint, str) and isinstance(self.model, str)):
            raise ValueError("the model is not named")
        number = isinstance(self.temperature, int | float) and not isinstance(self.temperature, bool)
        if not number or not math.isfinite(self.temperature) or self.temperature <= 0:
            raise ValueError(f"temperature {self.temperature!r} is no positive number")


def write_info(folder: Place, info: GalleryInfo) -> None:
    write_json_atomic(folder / INFO, asdict(info))


def read_info(folder: Place) -> tuple[GalleryInfo, Seal | None]:
    """What a gallery says of itself, by the seal's copy where gallery.json is damaged; with the seal, if it has one."""
    try:
        info = _parsed(folder)
        problem = None
    except _Unreadable as error:
        info, problem = None, str(error)
    except FileNotFoundError:
        info, problem = None, "is missing"
    seal = read_seal(folder)
    if seal is None:
        return _without_seal(folder, info, problem), None
    sealed = _of_seal(folder, seal)
    if info != sealed:
        problem = problem or "is not what was written"
        _LOG.warning(
            "'%s' %s; its copy in %s is used ('evidex verify --gallery %s --repair' writes it again)",
            folder / INFO, problem, SEAL, folder,
        )  # fmt: skip
    if sealed.format > FORMAT:
        raise GalleryError(f"'{folder}' has gallery format {sealed.format}, newer than {FORMAT}; update evidex")
    return sealed, seal


def parse_info(folder: Place) -> GalleryInfo | None:
    """gallery.json alone; None where it cannot be read."""
    try:
        return _parsed(folder)
    except (_Unreadable, FileNotFoundError):
        return None


class _Unreadable(Exception):
    pass


def _parsed(folder: Place) -> GalleryInfo:
    try:
        content = parse_json((folder / INFO).read_bytes())
        if not isinstance(content, dict) or set(content) != {field.name for field in fields(GalleryInfo)}:
            raise ValueError("it has other keys than it should")
        return GalleryInfo(**content)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(folder) from None
    except (OSError, ValueError, TypeError) as error:
        newer = _newer_format(folder)
        if newer is not None and not (folder / SEAL).exists():
            raise GalleryError(f"'{folder}' has gallery format {newer}, newer than {FORMAT}; update evidex") from None
        raise _Unreadable(f"cannot be read ({' '.join(str(error).split())[:120]})") from None


def _newer_format(folder: Place) -> int | None:
    try:
        version: Any = parse_json((folder / INFO).read_bytes())["format"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return version if type(version) is int and version > FORMAT else None


def _of_seal(folder: Place, seal: Seal) -> GalleryInfo:
    try:
        return GalleryInfo(**seal.gallery)
    except (ValueError, TypeError) as error:
        raise damaged(folder, f"{SEAL} does not describe a gallery ({error})") from None


def _without_seal(folder: Place, info: GalleryInfo | None, problem: str | None) -> GalleryInfo:
    if info is not None:
        if info.format > FORMAT:
            raise GalleryError(f"'{folder}' has gallery format {info.format}, newer than {FORMAT}; update evidex")
        if info.format > 1:
            raise damaged(folder, f"{SEAL}, which holds the checksums, is missing")
        return info
    if problem != "is missing":
        raise GalleryError(f"'{folder}' is damaged: {INFO} {problem}; index into a new folder")
    if (folder / "rows.lance").is_dir():
        raise GalleryError(f"'{folder}' is damaged: {INFO} and {SEAL} are missing; index into a new folder")
    if folder.is_dir() and any(folder.iterdir()):
        remedy = f"if these are pictures, put them into one: 'evidex index {folder} --gallery NEW_FOLDER'"
    else:
        remedy = f"make one with 'evidex index PATH --gallery {folder}'"
    raise GalleryError(f"'{folder}' is no gallery; {remedy}")
