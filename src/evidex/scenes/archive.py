"""A folder of rendered scenes in the form of any other captioned dataset: ``captions.json`` and ``images/``.

What was drawn where is in ``objects.json``, in the form in which a detector's finds are read."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from evidex.data.objects import OBJECTS_FILE, objects_document
from evidex.documents import parse_json
from evidex.errors import DataError, InputError
from evidex.files import check_folder, sync_directory, write_json_atomic
from evidex.progress import Progress, silent
from evidex.scenes.scene import KINDS, LARGEST, SMALLEST, Scene, render_scene

DATASET = "evidex-sample"
MARKER = "rendered.json"
_FORMAT = 1
_CONTENTS = frozenset({"captions.json", "images", OBJECTS_FILE, MARKER})
_JPEG_QUALITY = 90
_PLACES = 1
"""Marks the random stream of places and times, so that the pixels do not depend on them."""


@dataclass(frozen=True)
class Archive:
    """What was written: ``splits`` holds the number of images of each."""

    directory: Path
    count: int
    splits: Mapping[str, int]
    kinds: tuple[str, ...]
    georeferenced: bool


def kind_of(index: int) -> str:
    return KINDS[index % len(KINDS)]


def split_of(index: int) -> str:
    """Return the split: of every ten rounds through the kinds one is for validation and one for testing.

    These are the second and the third round, so every kind is in every split from three rounds on.
    """
    return {1: "val", 2: "test"}.get(index // len(KINDS) % 10, "train")


def scene_at(index: int, *, seed: int, size: int = 224) -> Scene:
    """Return the scene that an archive of ``seed`` holds at ``index``, whatever the archive's length."""
    return render_scene(kind_of(index), np.random.default_rng([seed, index]), size)


def render_archive(
    directory: Path,
    *,
    count: int = 1200,
    seed: int = 0,
    size: int = 224,
    progress: Progress = silent,
    georeferenced: bool = False,
    force: bool = False,
) -> Archive:
    """Render ``count`` scenes with captions into ``directory``, which appears only when all is written.

    Images are JPEG, or GeoTIFF with a place and a time where ``georeferenced``. ``force`` replaces an archive that
    was rendered before, never anything else.
    """
    if count < 1:
        raise InputError(f"count {count} is too small; render at least 1 scene")
    if seed < 0:
        raise InputError(f"seed {seed} is negative; choose 0 or more")
    if not SMALLEST <= size <= LARGEST:
        raise InputError(f"size {size} is out of range; choose {SMALLEST} to {LARGEST} pixels")
    check_folder(directory)
    directory = directory.resolve()
    _check_target(directory, force=force)
    directory.parent.mkdir(parents=True, exist_ok=True)
    workspace = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}."))
    try:
        workspace.chmod(0o755)
        splits = _write(workspace, count, seed, size, progress, georeferenced)
        _check_target(directory, force=force)
        _replace(directory, workspace)
    except BaseException:
        shutil.rmtree(workspace, ignore_errors=True)
        raise
    return Archive(
        directory=directory,
        count=count,
        splits=splits,
        kinds=tuple(sorted({kind_of(i) for i in range(min(count, len(KINDS)))})),
        georeferenced=georeferenced,
    )


def _check_target(directory: Path, *, force: bool) -> None:
    if not directory.exists():
        return
    names = {entry.name for entry in directory.iterdir()}
    if not names:
        return
    if not _is_rendered(directory):
        raise DataError(f"'{directory}' is not empty and no rendered archive; name a folder that does not exist yet")
    if not force:
        raise DataError(
            f"'{directory}' already holds a rendered archive; replace it with --force or name another folder"
        )
    foreign = sorted(names - _CONTENTS)
    if foreign:
        raise DataError(
            f"'{directory}' also holds '{foreign[0]}', which is not part of the archive; move it away first"
        )


def _is_rendered(directory: Path) -> bool:
    try:
        marker = parse_json((directory / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(marker, dict) and marker.get("dataset") == DATASET


def _write(
    workspace: Path, count: int, seed: int, size: int, progress: Progress, georeferenced: bool
) -> Mapping[str, int]:
    images = workspace / "images"
    images.mkdir()
    records, found = [], {}
    for index in range(count):
        scene = scene_at(index, seed=seed, size=size)
        filename = f"{scene.kind}_{index:05d}.{'tif' if georeferenced else 'jpg'}"
        if georeferenced:
            from evidex.scenes.georeference import Placement, write_geotiff

            place = Placement.drawn(np.random.default_rng([seed, index, _PLACES]))
            write_geotiff(images / filename, scene.image, place)
        else:
            Image.fromarray(scene.image).save(images / filename, "JPEG", quality=_JPEG_QUALITY)
        captions, found[filename] = list(scene.captions), scene.objects
        records.append({"filename": filename, "split": split_of(index), "label": scene.kind, "captions": captions})
        progress(index + 1, count)
    write_json_atomic(workspace / "captions.json", {"dataset": DATASET, "images": records})
    write_json_atomic(workspace / OBJECTS_FILE, objects_document(found))
    marker = {"format": _FORMAT, "dataset": DATASET, "count": count, "seed": seed, "size": size}
    write_json_atomic(workspace / MARKER, {**marker, "georeferenced": georeferenced})
    return dict(Counter(str(record["split"]) for record in records))


def _replace(directory: Path, workspace: Path) -> None:
    """Put the finished folder in place; an older archive is moved aside first and then removed."""
    aside = None
    if directory.exists() and any(directory.iterdir()):
        aside = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}.old."))
        os.replace(directory, aside)
    os.replace(workspace, directory)
    sync_directory(directory.parent)
    if aside is not None:
        shutil.rmtree(aside)
