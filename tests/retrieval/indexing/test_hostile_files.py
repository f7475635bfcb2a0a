"""A folder of files that are broken, huge, misnamed or unreadable: the good ones are indexed, the others named."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from tests.retrieval.archive import picture, tiny_model


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    return Gallery.create(tmp_path / "gallery", tiny_model())


def _hostile(folder: Path) -> tuple[set[str], set[str]]:
    """Write 300 files; returns the names of those that are valid and of those that are not."""
    import struct
    import zlib

    folder.mkdir()
    good: set[str] = set()
    bad: set[str] = set()
    rng = np.random.default_rng(9)

    def add(name: str, data: bytes, valid: bool) -> None:
        (folder / name).write_bytes(data)
        (good if valid else bad).add(name)

    def saved(image: Image.Image, kind: str) -> bytes:
        import io

        stream = io.BytesIO()
        image.save(stream, kind)
        return stream.getvalue()

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    def bomb(number: int) -> bytes:
        header = chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000 + number, 8, 2, 0, 0, 0))
        return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")

    kinds = {"jpg": "JPEG", "png": "PNG", "tif": "TIFF", "webp": "WEBP", "jp2": "JPEG2000"}
    for number in range(20):
        for suffix, kind in kinds.items():
            whole = saved(picture(1000 + number, (64, 48)), kind)
            if number < 6:
                add(f"good_{number}.{suffix}", whole, True)
            elif number < 16:
                add(f"cut_{number}.{suffix}", whole[: int(len(whole) * 0.3)], False)
            else:
                add(f"junk_{number}.{suffix}", rng.integers(0, 256, 500, dtype=np.uint8).tobytes(), False)
    for number in range(20):
        add(f"zero_{number}.png", b"", False)
        add(f"text_{number}.jpg", b"This is no image.\n" * (number + 1), False)
        add(f"bomb_{number}.png", bomb(number), False)
        add(f"wrong_{number}.jpg", saved(picture(2000 + number), "PNG"), True)
        add(f"dot_{number}.png", saved(Image.new("RGB", (1, 1), (number, 9, 200)), "PNG"), True)
        add(f"cmyk_{number}.jpg", saved(picture(2100 + number).convert("CMYK"), "JPEG"), True)
        deep = Image.fromarray(rng.integers(0, 65535, (30, 30)).astype(np.uint16))
        add(f"deep_{number}.tif", saved(deep, "TIFF"), True)
        add(f"palette_{number}.png", saved(picture(2200 + number).quantize(16), "PNG"), True)
        alpha = picture(2300 + number)
        alpha.putalpha(Image.new("L", alpha.size, 128))
        add(f"alpha_{number}.png", saved(alpha, "PNG"), True)
    for number in range(10):
        (folder / f"loop_{number}.png").symlink_to(folder / f"loop_{number}.png")
        bad.add(f"loop_{number}.png")
        (folder / f"dangling_{number}.png").symlink_to(folder / "nothing.png")
        bad.add(f"dangling_{number}.png")
    (folder / "circle").symlink_to(folder)
    os.mkfifo(folder / "pipe.jpg")
    bad.add("pipe.jpg")
    name = os.fsdecode(b"caf\xe9.png")
    picture(3000).save(folder / name)
    good.add(name)
    name = os.fsdecode(b"\xff\xfe.jpg")
    (folder / name).write_bytes(b"no image")
    bad.add(name)
    if os.geteuid() != 0:  # root reads everything
        for number in range(3):
            add(f"secret_{number}.png", saved(picture(4000 + number), "PNG"), False)
            (folder / f"secret_{number}.png").chmod(0)
    return good, bad


@pytest.mark.slow
def test_a_folder_of_hostile_files(gallery: Gallery, tmp_path: Path) -> None:
    from evidex.data.discover import printable

    good, bad = _hostile(tmp_path / "hostile")
    assert len(good) + len(bad) >= 300
    report = gallery.add(tmp_path / "hostile", options=IndexOptions(workers=2))
    indexed = {Path(row.path).name for row in gallery.rows(range(len(gallery)))}
    assert indexed == good
    skipped = {Path(skip.name).name: skip.reason for skip in report.skipped}
    assert set(skipped) == {printable(name) for name in bad}
    assert all(reason and "\n" not in reason for reason in skipped.values())
    assert "60000×60000" in skipped["bomb_0.png"]
    assert "leads back to itself" in skipped["loop_0.png"]
    assert skipped["zero_0.png"] == "empty file"
    assert np.isfinite(gallery.vectors).all()
    again = gallery.add(tmp_path / "hostile", options=IndexOptions(workers=2))
    assert (again.encoded, again.unchanged) == (0, len(good))
