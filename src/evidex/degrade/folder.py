"""A degraded copy of a folder of images, with a manifest that says how each one was made."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evidex.data.images import decode_image
from evidex.data.records import Skip
from evidex.degrade.float_images import to_floats, to_picture
from evidex.degrade.image import Degradation, degrade_image
from evidex.documents import is_file, is_folder
from evidex.errors import ImageError, InputError
from evidex.files import check_folder, sync_directory, write_json_atomic
from evidex.progress import Progress, silent

if TYPE_CHECKING:
    from PIL.Image import Image

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
# Suffixes written in their own format, as near to lossless as it allows; anything else becomes PNG.
_SAVE_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    ".jpg": {"format": "JPEG", "quality": 95, "subsampling": 0},
    ".jpeg": {"format": "JPEG", "quality": 95, "subsampling": 0},
    ".png": {"format": "PNG"},
    ".webp": {"format": "WEBP", "lossless": True},
    ".bmp": {"format": "BMP"},
    ".tif": {"format": "TIFF"},
    ".tiff": {"format": "TIFF"},
}


@dataclass(frozen=True)
class DegradedFile:
    """One written image; ``seed`` are the two numbers its generator was started with."""

    file: str
    source: str
    seed: tuple[int, int]


@dataclass(frozen=True)
class FolderReport:
    """What was written and what was left out."""

    target: Path
    files: tuple[DegradedFile, ...]
    skipped: tuple[Skip, ...]


def degrade_folder(
    source: Path,
    target: Path,
    *,
    severity: float = 1.0,
    seed: int = 0,
    parameters: Degradation | None = None,
    progress: Progress = silent,
) -> FolderReport:
    """Write a degraded copy of every image under ``source`` to the new folder ``target``.

    An image's random numbers depend on ``seed`` and on its path inside ``source`` alone. The folder appears only
    when it is complete.
    """
    base = parameters or Degradation()
    scaled = base.scaled(severity)
    _check(source, target, seed)
    names = _names(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        files: list[DegradedFile] = []
        skipped: list[Skip] = []
        for done, name in enumerate(names, start=1):
            try:
                files.append(_degrade_file(source, part, name, severity=severity, seed=seed, parameters=base))
            except ImageError as error:
                skipped.append(Skip(name, str(error)))
            progress(done, len(names))
        if not files:
            first = f"; {len(skipped)} files were skipped, the first: {skipped[0].reason}" if skipped else ""
            raise InputError(f"'{source}' holds no picture that can be degraded{first}")
        manifest = {
            "format": FORMAT,
            "seed": seed,
            "severity": severity,
            "parameters": asdict(scaled),
            "files": [asdict(file) for file in files],
            "skipped": [asdict(skip) for skip in skipped],
        }
        write_json_atomic(part / MANIFEST, manifest)
        part.chmod(0o755)
        _refuse_existing(target)
        part.rename(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    sync_directory(target.parent)
    return FolderReport(target, tuple(files), tuple(skipped))


def _check(source: Path, target: Path, seed: int) -> None:
    if not is_folder(source):
        raise InputError(f"'{source}' is no folder; give a folder of images")
    if seed < 0:
        raise InputError(f"seed {seed} is negative; give a whole number of at least 0")
    check_folder(target)
    _refuse_existing(target)
    if target.resolve().is_relative_to(source.resolve()):
        raise InputError(f"'{target}' lies inside '{source}'; choose a folder outside")


def _refuse_existing(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise InputError(f"'{target}' exists already; choose a new folder or remove it")


def _names(source: Path) -> list[str]:
    """Relative paths of all files, sorted; folders behind links are not entered."""
    return sorted(
        (Path(folder) / name).relative_to(source).as_posix()
        for folder, _, names in os.walk(source, followlinks=False)
        for name in names
    )


def _degrade_file(
    source: Path, target: Path, name: str, *, severity: float, seed: int, parameters: Degradation
) -> DegradedFile:
    place = int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()[:6], "big")
    path = source / name
    if not is_file(path):
        raise ImageError(f"'{name}' is no regular file; only files are degraded")
    pixels = to_floats(decode_image(path, name=name))
    rng = np.random.default_rng([seed, place])
    written = _written_name(name)
    _save(to_picture(degrade_image(pixels, rng, severity=severity, parameters=parameters)), target / written)
    return DegradedFile(written, name, (seed, place))


def _written_name(name: str) -> str:
    # The whole name is kept in front of ".png": two sources must not end up as one file.
    return name if Path(name).suffix.lower() in _SAVE_OPTIONS and name != MANIFEST else f"{name}.png"


def _save(picture: Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, **_SAVE_OPTIONS[path.suffix.lower()])
