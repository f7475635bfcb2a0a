"""Outputs take the place of earlier outputs, and of nothing else that somebody may miss."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from evidex.errors import InputError
from evidex.files import check_target
from evidex.overwriting import Kind, as_png

KINDS: tuple[Kind, ...] = ("json", "html", "picture", "weights")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["JPEG", "PNG", "TIFF", "GIF", "BMP", "WEBP", "JPEG2000"])
def test_no_output_takes_the_place_of_a_picture(tmp_path: Path, form: str, kind: Kind) -> None:
    path = tmp_path / "scene"
    Image.new("RGB", (8, 8), "green").save(path, form)
    with pytest.raises(InputError, match="is a picture that would be lost; name another place, or remove it first"):
        check_target(path, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_gallery_and_captions_stay(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / "gallery.json").write_text("{}")
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "data").write_text("{}")
    for path in (tmp_path / "gallery.json", tmp_path / "rows" / "data"):
        with pytest.raises(InputError, match="is a file of a gallery"):
            check_target(path, kind)
    check_target(tmp_path / "new.json", kind)  # which takes nothing away
    captions = tmp_path.with_name(f"{tmp_path.name}-set") / "captions.json"
    captions.parent.mkdir()
    captions.write_text("{}")
    with pytest.raises(InputError, match="holds captions"):
        check_target(captions, kind)


def test_earlier_outputs_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "sheet.png").write_bytes(as_png(Image.new("RGB", (8, 8))))
    check_target(tmp_path / "sheet.png", "picture")
    for name, text, kind in (("a.json", "  [1]", "json"), ("a.html", "<html>", "html"), ("empty", "", "json")):
        (tmp_path / name).write_text(text)
        check_target(tmp_path / name, kind)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="holds something else that would be lost"):
        check_target(tmp_path / "a.html", "json")
    with pytest.raises(InputError, match="is a picture"):
        check_target(tmp_path / "sheet.png", "json")
