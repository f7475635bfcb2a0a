"""Small archives and models for the tests of indexing and search."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from evidex.encoders.model import Model
    from evidex.retrieval.gallery import Gallery

WORDS = (
    "many planes near a terminal .",
    "a river between green fields .",
    "dense houses and roads .",
    "a lake in a forest .",
)
"""Captions, which are asked as they are."""


@cache
def tiny_model(seed: int = 0) -> Model:
    """An untrained compact model; its vectors are arbitrary but repeatable."""
    from tests.untrained import untrained

    return untrained(WORDS, seed)


def arbitrary_gallery(folder: Path, model: Model, count: int, copies: int = 1) -> Gallery:
    """``count`` pictures that are nowhere, each ``copies`` times, with vectors in any direction."""
    from evidex.retrieval.gallery import Gallery
    from evidex.retrieval.rows import Row, item_id

    drawn = np.random.default_rng(0).standard_normal((count, model.dim))
    unit = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    gallery = Gallery.create(folder, model)
    rows = [Row(item_id(str(n)), str(n), "image", f"{n // copies:064x}") for n in range(count * copies)]
    gallery.append(rows, np.repeat(unit, copies, axis=0))
    return gallery


def rewrite(gallery: Gallery, path: Path, content: str) -> None:
    """Replace a file of ``gallery`` as evidex would: it is sealed as it then is."""
    from evidex.retrieval.soundness.seal import digest_of_bytes, store

    name = str(path.relative_to(gallery.path))
    store(gallery.path, name, lambda place: place.write_bytes(content.encode()), digest_of_bytes(content.encode()))


def picture(seed: int, size: tuple[int, int] = (48, 40)) -> Image.Image:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (6, 6, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)


def write_images(folder: Path, count: int, first: int = 0, suffix: str = "png") -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"scene_{number:04d}.{suffix}" for number in range(first, first + count)]
    for number, path in enumerate(paths, start=first):
        picture(number).save(path)
    return paths


def write_raster(path: Path, values: np.ndarray, **profile: Any) -> Path:
    """Write (bands, height, width) as GeoTIFF, tiled and in UTM zone 33 north unless told otherwise."""
    import rasterio
    from rasterio.transform import from_origin

    count, height, width = values.shape
    settings = {
        "driver": "GTiff",
        "count": count,
        "height": height,
        "width": width,
        "dtype": values.dtype,
        "crs": "EPSG:32633",
        "transform": from_origin(380_000.0, 5_820_000.0, 10.0, 10.0),
        "tiled": True,
        "blockxsize": 256,
        "blockysize": 256,
        **profile,
    }
    with rasterio.open(path, "w", **settings) as target:
        target.write(values)
    return path
