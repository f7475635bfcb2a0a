"""Which files are found under folders, patterns and names: each once, in order, and the others named."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from evidex.data.discover import FoundFile, check_places, discover, printable
from evidex.errors import InputError


def _write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"content")


def _names(*places: str | Path) -> list[str]:
    return [Path(file.path).name for file in discover(places).files]


def test_folders_give_images_by_name_and_leave_out_what_is_hidden_or_no_image(tmp_path: Path) -> None:
    _write(tmp_path, "b.JPG", "a.png", "deep/er/c.tif", ".hidden/d.png", ".e.png", "notes.txt", "captions.json")
    assert _names(tmp_path) == ["a.png", "b.JPG", "c.tif"]


def test_pictures_that_are_left_out_are_counted(tmp_path: Path) -> None:
    _write(tmp_path, "a.bmp", "b.GIF", "c.heic", "deep/d.HEIC", "deep/.e.png", ".DS_Store", "notes.txt", "f.img.xml")
    _write(tmp_path, "._a.bmp", "._scene.tif", "g.jfif")
    assert _names(tmp_path) == ["a.bmp", "b.GIF", "g.jfif"]
    assert discover([tmp_path]).passed_over == {".heic": 2, "hidden": 1}


def test_a_file_named_itself_is_taken_whatever_its_name(tmp_path: Path) -> None:
    _write(tmp_path, "scene.dat", ".hidden.png")
    assert _names(tmp_path / "scene.dat", tmp_path / ".hidden.png") == ["scene.dat", ".hidden.png"]


def test_a_file_reached_on_several_ways_counts_once(tmp_path: Path) -> None:
    _write(tmp_path, "a/x.png")
    (tmp_path / "a" / "around").symlink_to(tmp_path / "a")
    assert _names(tmp_path / "a", tmp_path / "a" / "x.png", str(tmp_path / "*" / "*.png")) == ["x.png"]


def test_relative_places_become_absolute_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path, "a/x.png")
    monkeypatch.chdir(tmp_path)
    found = discover(["a", "./a/../a/x.png"])
    assert found.roots == (str(tmp_path / "a"), str(tmp_path / "a" / "x.png"))
    assert found.files == (FoundFile.at(str(tmp_path / "a" / "x.png")),)


def test_what_cannot_be_read_is_named_with_its_reason(tmp_path: Path) -> None:
    _write(tmp_path, "good.png")
    (tmp_path / "empty.png").touch()
    (tmp_path / "loop.png").symlink_to(tmp_path / "loop.png")
    (tmp_path / "dangling.png").symlink_to(tmp_path / "nothing.png")
    os.mkfifo(tmp_path / "pipe.png")
    found = discover([tmp_path])
    assert [Path(file.path).name for file in found.files] == ["good.png"]
    assert {Path(skip.name).name: skip.reason for skip in found.skipped} == {
        "empty.png": "empty file",
        "loop.png": "a link that leads back to itself",
        "dangling.png": "a link to a file that does not exist",
        "pipe.png": "no regular file",
    }


def test_a_place_that_is_not_there_is_refused_before_any_work(tmp_path: Path) -> None:
    _write(tmp_path, "a.png")
    with pytest.raises(InputError, match="nowhere' does not exist"):
        check_places([tmp_path, tmp_path / "nowhere"])
    with pytest.raises(InputError, match="nothing matches"):
        check_places([str(tmp_path / "*.tif")])
    check_places([tmp_path, str(tmp_path / "*.png")])


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE])
@pytest.mark.parametrize("gone", [True, False])
def test_a_place_out_of_reach_is_not_taken_for_one_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, gone: bool
) -> None:
    far, lstat = tmp_path / "disk" / "scenes", os.lstat

    def out_of_reach(path: str | Path, **options: int) -> os.stat_result:
        if os.fspath(path) == str(far):
            raise OSError(number, os.strerror(number))
        return lstat(path, **options)

    assert discover([far], gone=True).files == ()
    monkeypatch.setattr(os, "lstat", out_of_reach)
    for look in (discover, check_places):
        with pytest.raises(InputError, match=r"scenes' cannot be looked at \(.+\); make it readable"):
            look([far], gone=gone)


def test_what_lies_where_no_folder_is_is_gone(tmp_path: Path) -> None:
    _write(tmp_path, "file")
    for place in (tmp_path / "file" / "scenes", tmp_path / "none"):
        assert discover([place], gone=True).roots == (str(place),)


def test_a_name_with_brackets_is_a_name_where_such_a_file_exists(tmp_path: Path) -> None:
    _write(tmp_path, "scene[1].png", "scene1.png")
    assert _names(tmp_path / "scene[1].png") == ["scene[1].png"]


def test_names_that_are_no_utf8_can_be_printed(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.png")
    Path(odd).write_bytes(b"content")
    (file,) = discover([tmp_path]).files
    assert file.path == odd
    assert printable(file.path) == f"{tmp_path}/caf\\xe9.png"
