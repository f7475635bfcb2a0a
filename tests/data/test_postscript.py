"""A file is read for what it holds, and PostScript is nothing that evidex reads: no interpreter is started for it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from PIL import EpsImagePlugin, Image

from evidex.data.datasets import load_dataset
from evidex.data.images import decode_image
from evidex.data.items import ReadOptions, read_items, read_whole, read_window
from evidex.degrade.folder import degrade_folder
from evidex.encoders.model import load_model
from evidex.errors import ImageError, InputError
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.server.questions import decode_upload
from evidex.server.settings import Settings
from tests.retrieval.archive import picture, tiny_model


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that appears as soon as anybody runs ``gs``."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "gs"
    program.write_text(f"#!/bin/sh\necho 9.99\ntouch {tmp_path}/trace\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    return tmp_path / "trace"


@pytest.fixture
def postscript(tmp_path: Path, trace: Path) -> Path:
    """A real EPS file under the name of a JPEG, which Pillow alone would hand to ``gs``."""
    path = tmp_path / "pictures" / "x.jpg"
    path.parent.mkdir()
    stream = io.BytesIO()
    picture(1).save(stream, "EPS")
    path.write_bytes(stream.getvalue())
    with Image.open(path) as opened, pytest.raises(OSError):
        opened.load()
    assert trace.exists()
    trace.unlink()
    return path


def test_postscript_reaches_no_interpreter(postscript: Path, trace: Path, tmp_path: Path) -> None:
    content = postscript.read_bytes()
    entry = {"filename": "x.jpg", "split": "val", "captions": ["a river"]}
    (postscript.parent / "captions.json").write_text(json.dumps({"images": [entry]}))
    for read in (
        lambda: decode_image(postscript),
        lambda: decode_image(content),
        lambda: list(read_items(str(postscript), ReadOptions())),
        lambda: read_whole(str(postscript)),
        lambda: read_window(str(postscript), None, None, 64),
        lambda: load_dataset(postscript.parent, "val").open_image(0),
        lambda: tiny_model().encode_images([postscript]),
        lambda: decode_upload("x.jpg", content, Settings(tmp_path)),
    ):
        with pytest.raises(ImageError, match=r"x\.jpg|image"):
            read()
    with pytest.raises(InputError, match="holds no picture that can be degraded; 2 files were skipped"):
        degrade_folder(postscript.parent, tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    picture(0, (32, 32)).save(postscript.with_name("y.png"))
    report = degrade_folder(postscript.parent, tmp_path / "degraded")
    assert [skip.name for skip in report.skipped] == ["captions.json", "x.jpg"]
    indexed = Gallery.create(tmp_path / "gallery", load_model()).add(postscript, options=IndexOptions(workers=1))
    assert (indexed.added, len(indexed.skipped)) == (0, 1)
    assert not trace.exists()
