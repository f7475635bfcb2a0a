"""Decoding: every mode becomes RGB, limits come before pixels, damage is named."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidex.data.images import decode_image, open_picture, upright_size
from evidex.data.items import ReadOptions, read_items
from evidex.errors import ImageError, ImageTooLargeError


def _bytes(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    ramp = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
    image = Image.fromarray(ramp.astype(np.uint16) * 200) if mode == "I;16" else Image.fromarray(ramp).convert(mode)
    decoded = decode_image(_bytes(image))
    assert (decoded.mode, decoded.size) == ("RGB", (8, 8))
    assert np.ptp(np.asarray(decoded)) > 100


def test_cmyk_jpeg_and_float_tiff() -> None:
    cmyk = Image.new("CMYK", (4, 4), (0, 255, 255, 0))
    red = np.asarray(decode_image(_bytes(cmyk, "JPEG"))).reshape(-1, 3).mean(0)
    assert red[0] > 200 > 60 > red[1]
    values = np.linspace(-1000.0, 5000.0, 64, dtype=np.float32).reshape(8, 8)
    values[0, 0] = np.nan
    assert np.ptp(np.asarray(decode_image(_bytes(Image.fromarray(values), "TIFF")))) == 255


def test_a_damaged_exif_block_does_not_cost_the_picture() -> None:
    exif = Image.Exif()
    exif[274], exif[271], exif[282] = 6, "maker", 72.0
    whole = _bytes(Image.new("RGB", (4, 9), (200, 10, 10)), "JPEG", exif=exif)
    start = whole.index(b"Exif\0\0")
    for place in range(start + 6, start + 60):
        for value in (0, 1, 13, 128, 255):
            damaged = whole[:place] + bytes([value]) + whole[place + 1 :]
            assert decode_image(damaged).size in ((4, 9), (9, 4))


def test_exif_orientation_is_applied() -> None:
    exif = Image.Exif()
    exif[274] = 6
    assert decode_image(_bytes(Image.new("RGB", (4, 9)), "JPEG", exif=exif)).size == (9, 4)


def test_the_limit_is_checked_before_decoding() -> None:
    data = _bytes(Image.new("1", (3000, 3000)))
    with pytest.raises(ImageTooLargeError, match="3000×3000 pixels"):
        decode_image(data, max_pixels=1_000_000, name="bomb.png")


@pytest.mark.parametrize("damage", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n" + b"\0" * 50, b"hello" * 20])
def test_what_is_no_image_is_named(damage: bytes) -> None:
    with pytest.raises(ImageError, match=r"'x\.png'"):
        decode_image(damage, name="x.png")


def test_every_truncation_is_an_image_error_or_an_image(tmp_path: Path) -> None:
    data = _bytes(Image.effect_noise((40, 40), 50).convert("RGB"), "JPEG")
    for length in range(0, len(data), 37):
        with pytest.raises(ImageError):
            decode_image(data[:length])
    with pytest.raises(ImageError, match="does not exist"):
        decode_image(tmp_path / "none.jpg")


def test_a_large_jpeg_is_decoded_reduced_where_enough_is_left() -> None:
    coarse = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    picture = Image.fromarray(coarse).resize((300, 200), Image.Resampling.BICUBIC)
    for quality in (60, 95):
        whole = _bytes(picture, "JPEG", quality=quality)
        assert decode_image(whole, at_least=100).size == (150, 100)
        assert decode_image(whole, at_least=50).size == (75, 50)
        assert decode_image(whole, at_least=101).size == (300, 200)  # the short side would fall below
        half = np.asarray(decode_image(whole, at_least=100), dtype=np.float64)
        averaged = np.asarray(decode_image(whole), dtype=np.float64).reshape(100, 2, 150, 2, 3).mean(axis=(1, 3))
        assert np.abs(half - averaged).mean() < 2.0
    assert decode_image(_bytes(picture), at_least=50).size == (300, 200)  # only JPEG is stored so that it can be


def test_a_reduced_jpeg_keeps_the_limit_and_its_orientation() -> None:
    exif = Image.Exif()
    exif[274] = 6
    turned = _bytes(Image.new("RGB", (400, 900)), "JPEG", exif=exif)
    assert decode_image(turned, at_least=200).size == (450, 200)
    with open_picture(turned) as opened:
        assert upright_size(opened) == (900, 400)
    with pytest.raises(ImageTooLargeError, match="400×900 pixels"):
        decode_image(turned, max_pixels=100_000, at_least=100)


def test_junk_behind_a_picture_does_not_cost_it(tmp_path: Path) -> None:
    stream = io.BytesIO()
    Image.new("P", (40, 30), 3).save(stream, "GIF")
    for junk in (b",", b",\0\0", b"!"):
        path = tmp_path / "picture.gif"
        path.write_bytes(stream.getvalue().rstrip(b";") + junk)
        (item,) = read_items(str(path), ReadOptions())
        assert (item.width, item.height, item.first_only) == (40, 30, False)
