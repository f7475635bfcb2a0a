"""Decode one image, whoever it comes from: RGB, upright, within limits."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from evidex.documents import open_regular
from evidex.errors import BlankImageError, ImageError, ImageTooLargeError

if TYPE_CHECKING:
    from PIL.Image import Image

# A decoded image of this size takes 0.4 GB; larger scenes are read by windows, never whole.
MAX_PIXELS = 100_000_000
_TOO_LARGE = "make it smaller, or index it with a higher --max-pixels"
# Three times what encoders look at: resizing to that size loses nothing more than it would from the whole picture.
ENOUGH_TO_ENCODE = 672
_KEPT_SIDE = 320
_ON_ITS_SIDE = (5, 6, 7, 8)  # EXIF orientations
# Pillow knows fifty more, among them PostScript, for which it runs Ghostscript: a file's name says nothing.
_FORMATS = ("JPEG", "PNG", "TIFF", "WEBP", "JPEG2000", "GIF", "BMP")
KINDS = "JPEG, PNG, TIFF, WebP, JPEG 2000, BMP or GIF"
_ANIMATED = ("GIF", "PNG", "WEBP")


@contextmanager
def open_picture(source: bytes | str | Path, name: str | None = None) -> Iterator[Image]:
    """Open ``source`` with Pillow, its header read and no pixel decoded: the one place where evidex does.

    Whatever Pillow makes of damage, also inside the ``with`` block, becomes an ImageError.
    """
    from PIL import Image as PillowImage
    from PIL import UnidentifiedImageError

    label = name or ("image" if isinstance(source, bytes) else str(source))
    stream = io.BytesIO(source) if isinstance(source, bytes) else open_regular(source, ImageError, label)
    try:
        with stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with PillowImage.open(stream, formats=_FORMATS) as image:
                yield image
    except UnidentifiedImageError:
        raise ImageError(f"'{label}' is no image that can be read; give {KINDS}") from None
    except PillowImage.DecompressionBombError:
        raise ImageTooLargeError(f"'{label}' is too large to decode; {_TOO_LARGE}") from None
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, TypeError, MemoryError, OverflowError) as error:
        # Pillow's format plugins raise all of these on damaged files.
        raise ImageError(f"'{label}' cannot be decoded ({error}); replace or remove the file") from None


def decode_image(
    source: bytes | str | Path, *, max_pixels: int = MAX_PIXELS, name: str | None = None, at_least: int | None = None
) -> Image:
    """Return ``source`` as an RGB image with its EXIF orientation applied.

    The size is checked from the header, before any pixel is decoded. ``name`` is what errors call it. A JPEG may come
    at a half, a quarter or an eighth of its size where both sides keep ``at_least`` pixels, which is much faster.
    """
    with open_picture(source, name) as image:
        width, height = image.size
        if width * height > max_pixels:
            label = name or ("image" if isinstance(source, bytes) else str(source))
            raise ImageTooLargeError(f"'{label}' has {width}×{height} pixels, over {max_pixels}; {_TOO_LARGE}")
        if at_least is not None:
            image.draft(None, (at_least, at_least))
        image.load()
        return to_rgb(_upright(image))


def upright_size(image: Image) -> tuple[int, int]:
    """Width and height of an opened picture as `decode_image` turns it, without decoding it."""
    try:
        turned = image.getexif().get(0x0112) in _ON_ITS_SIDE
    except Exception:  # as in `_upright`
        turned = False
    return (image.height, image.width) if turned else image.size


def holds_more(image: Image) -> bool:
    """Whether an opened picture is only the first of its file, as in an animation.

    Pages of a TIFF are told apart from its overviews by GDAL; a second picture in a JPEG is a preview of the first.
    """
    if image.format not in _ANIMATED:
        return False
    try:
        return bool(getattr(image, "is_animated", False))
    except Exception:  # Pillow reads on to the end, and what lies there must not cost the first picture
        return False


def shows_nothing(picture: Image) -> bool:
    """Whether all pixels of a picture are alike: blank paper, a fill value, values that are none."""
    bands = cast(tuple[tuple[int, int], ...], to_rgb(picture).getextrema())
    return all(low == high for low, high in bands)


def check_shown(picture: Image, name: str) -> Image:
    """``picture``, if it can be looked for; whatever shows nothing has neighbours too, and they would mean nothing."""
    if shows_nothing(picture):
        raise BlankImageError(f"{name} shows nothing: all its pixels are empty or alike; give a picture of a scene")
    return picture


def small_jpeg(picture: Image) -> bytes:
    """What is kept of a picture on another machine, so that it can be shown without that: some 15 KB."""
    small = picture.copy()
    small.thumbnail((_KEPT_SIDE, _KEPT_SIDE))
    stream = io.BytesIO()
    small.save(stream, "JPEG", quality=80)
    return stream.getvalue()


def _upright(image: Image) -> Image:
    """The picture turned as its EXIF says; as it lies where that is damaged, which must not cost the picture."""
    from PIL import ImageOps

    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # Pillow parses and rewrites the whole block, and fails in many ways
        return image


def to_rgb(image: Image) -> Image:
    """Return ``image`` as 8-bit RGB; 16-bit and float values are stretched between their 2nd and 98th percentile."""
    from PIL import Image as PillowImage

    if image.mode == "RGB":
        return image
    if image.mode in ("I", "F", "I;16", "I;16B", "I;16L", "I;16N"):
        values = np.nan_to_num(np.asarray(image, dtype=np.float32), posinf=0.0, neginf=0.0)
        return PillowImage.fromarray(stretch_to_byte(values), "L").convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        background = PillowImage.new("RGBA", rgba.size, (0, 0, 0, 255))
        return PillowImage.alpha_composite(background, rgba).convert("RGB")
    return image.convert("RGB")


def stretch_to_byte(values: np.ndarray, low: float = 2.0, high: float = 98.0) -> np.ndarray:
    """Map the percentiles ``low``…``high`` of ``values`` to 0…255; a flat image becomes mid grey."""
    floor, ceiling = np.percentile(values, (low, high))
    if ceiling <= floor:
        return np.full(values.shape, 128, dtype=np.uint8)
    scaled = (values - floor) * (255.0 / (ceiling - floor))
    stretched: np.ndarray = np.clip(np.rint(scaled), 0, 255).astype(np.uint8)
    return stretched
