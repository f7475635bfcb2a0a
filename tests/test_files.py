"""Atomic writes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evidex.files import replacing, sha256_of, write_atomic, write_json_atomic


def test_content_replaces_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.bin"
    write_atomic(path, b"old")
    write_atomic(path, "new ✓")
    assert path.read_text() == "new ✓"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.bin"]


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.json"
    write_json_atomic(path, {"a": 1})

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_json_atomic(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.json"]


def test_what_is_written_beside_a_file_takes_its_place_or_goes(tmp_path: Path) -> None:
    path = tmp_path / "map.tif"
    with replacing(path) as place:
        place.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    with pytest.raises(UnicodeEncodeError), replacing(path) as place:
        place.write_text("half \ud800", encoding="utf-8")
    assert path.read_text() == "whole"
    assert [entry.name for entry in tmp_path.iterdir()] == ["map.tif"]


def test_json_refuses_nan_before_it_writes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"JSON compliant"):
        write_json_atomic(tmp_path / "file.json", {"a": float("nan")})
    assert not (tmp_path / "file.json").exists()


def test_sha256(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256_of(tmp_path / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_file_is_as_private_as_the_process_wants_it(tmp_path: Path) -> None:
    code = "import sys, pathlib, evidex.files as files; files.write_atomic(pathlib.Path(sys.argv[1]), b'x')"
    for mask, mode in ((0o077, 0o600), (0o022, 0o644)):
        path = tmp_path / oct(mask)
        subprocess.run([sys.executable, "-c", code, str(path)], check=True, umask=mask)
        assert path.stat().st_mode & 0o777 == mode
