"""Bands, sensors and tiles are of scenes; who chooses them for words, or a JPEG, is told that it changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_KINDS = "JPEG, PNG, WebP, BMP and GIF show the colours they have"


def check_example_choice(bands: str | None, sensor: str | None, images: Sequence[Path]) -> None:
    """Refuse a choice for a question without an example, or with one that has no bands to choose from."""
    from evidex.errors import InputError

    option = _chosen(bands, sensor)
    if option is None:
        return
    if not images:
        raise InputError(f"{option} is of an example image, and none is given; leave it out, or add --image FILE")
    for image in images:
        if _is_plain(str(image)):
            raise _no_bands(str(image), option)


def check_scene_choice(bands: str | None, sensor: str | None, scene: str, image: Path | None) -> None:
    """The same for a scene that is looked into, where neither it nor the example has bands."""
    option = _chosen(bands, sensor)
    looked_at = [scene] if image is None else [scene, str(image)]
    if option is not None and all(Path(path).is_file() and _is_plain(path) for path in looked_at):
        raise _no_bands(scene, option)


def check_places_choice(bands: str | None, sensor: str | None, places: Sequence[str]) -> None:
    """Refuse it where no file to index has bands; where some have none, say how many."""
    from evidex.errors import InputError

    option = _chosen(bands, sensor)
    if option is None:
        return
    files, pictures = _files_and_pictures(places)
    if files and len(pictures) == len(files) and all(map(_is_plain, files)):
        raise InputError(f"{option}: none of the {len(files)} files has bands to choose ({_KINDS}); leave it out")
    _tell(option, pictures, _KINDS)


def tell_uncut(tile: int | None, places: Sequence[str]) -> None:
    """Say for how many of the files to index a side of tiles changes nothing; 0 asks for what is done anyway."""
    if tile:
        _, pictures = _files_and_pictures(places)
        _tell("--tile", pictures, "only TIFF and JPEG 2000 are cut, all others are one row each, however large")


def _files_and_pictures(places: Sequence[str]) -> tuple[list[str], list[str]]:
    """The files to index, and those of them that their names call pictures without bands; of a catalog none."""
    from evidex.data.discover import IMAGE_SUFFIXES, RASTER_SUFFIXES, discover, is_catalog

    if any(map(is_catalog, places)):  # it tells its bands item by item
        return [], []
    files = [file.path for file in discover(places, gone=True).files]
    return files, [path for path in files if Path(path).suffix.lower() in IMAGE_SUFFIXES - RASTER_SUFFIXES]


def _tell(option: str, pictures: Sequence[str], why: str) -> None:
    import warnings

    from evidex.errors import InputWarning

    if pictures:
        count = f"{len(pictures)} picture{'s' * (len(pictures) > 1)}"
        warnings.warn(f"{option} changes nothing for {count}: {why}", InputWarning, stacklevel=3)


def _chosen(bands: str | None, sensor: str | None) -> str | None:
    return "--bands" if bands is not None else "--sensor" if sensor is not None else None


def _is_plain(path: str) -> bool:
    """Whether it is a picture; what cannot be read at all is told by who reads it."""
    from evidex.data.tiles import raster_driver
    from evidex.errors import ImageError

    try:
        return raster_driver(path) is None
    except ImageError:
        return False


def _no_bands(path: str, option: str) -> Exception:
    from evidex.data.discover import printable
    from evidex.errors import InputError

    return InputError(f"'{printable(path)}' has no bands to choose ({_KINDS}); leave out {option}, or give a TIFF")
