"""Mapped vectors: what changes on the disk is noticed, and a file that shrinks ends no process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from evidex.errors import DamagedError, InputWarning
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from evidex.retrieval.scan.scan import scan
from evidex.retrieval.soundness.checks import state_of
from evidex.retrieval.soundness.mapped import DamagedVectors, MappedVectors, open_vectors, rows_a_block
from tests.retrieval.archive import arbitrary_gallery, tiny_model

DIM = 1 << 14  # blocks of 64 rows
ROWS = 200


@pytest.fixture
def file(tmp_path: Path) -> Path:
    _values().tofile(tmp_path / "v.f32")
    return tmp_path / "v.f32"


def _values() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((ROWS, DIM)).astype(np.float32)


def _map(file: Path) -> MappedVectors:
    return _open(file, MappedVectors.of_file)


def _open(file: Path, way: Callable[..., MappedVectors]) -> MappedVectors:
    size, values = rows_a_block(DIM), _values()
    checks = [zlib.crc32(values[start : start + size].tobytes()) for start in range(0, ROWS, size)]
    return way(file, ROWS, DIM, checks)


def _flip(file: Path, row: int) -> None:
    with file.open("r+b") as stream:
        stream.seek(row * DIM * 4 + 5)
        byte = stream.read(1)[0]
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte ^ 1]))


def test_only_what_is_read_is_held_against_its_checksum(file: Path) -> None:
    _flip(file, 150)
    mapped = _map(file)
    mapped.ensure(0, 128)
    mapped.ensure(199, 200)
    for rows in ((128, 129), (0, 200)):
        with pytest.raises(DamagedVectors, match=r"v\.f32"):
            mapped.ensure(*rows)


def test_a_change_after_the_check_is_noticed(file: Path) -> None:
    time.sleep(0.06)
    mapped = _map(file)
    mapped.ensure_all()
    assert not mapped.look()
    _flip(file, 3)
    with pytest.raises(DamagedVectors):
        mapped.recheck()
    _flip(file, 3)
    mapped.recheck()


def test_what_was_read_into_memory_was_checked_and_is_out_of_reach(file: Path) -> None:
    read = _open(file, MappedVectors.read)
    np.testing.assert_array_equal(read.values, _values())
    assert not read.values.flags.writeable
    os.truncate(file, 100)
    read.recheck()
    np.testing.assert_array_equal(read.values, _values())
    with pytest.raises(DamagedVectors, match="shorter"):
        _open(file, MappedVectors.read)
    _values().tofile(file)
    for row in (0, 70, 199):  # in every block, the last of which is not full
        _flip(file, row)
        with pytest.raises(DamagedVectors, match=r"v\.f32"):
            _open(file, MappedVectors.read)
        _flip(file, row)


def test_few_vectors_are_read_and_many_are_mapped(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not isinstance(_open(file, open_vectors).values, np.memmap)
    monkeypatch.setattr("evidex.retrieval.scan.plain.FEW_VALUES", ROWS * DIM - 1)
    assert isinstance(_open(file, open_vectors).values, np.memmap)
    # Nothing guards a map where the compiler is missing.
    monkeypatch.setattr("evidex.retrieval.scan.plain.compiles", lambda: False)
    monkeypatch.setattr("evidex.retrieval.soundness.mapped.compiles", lambda: False)
    monkeypatch.setattr("evidex.retrieval.soundness.mapped.FEW_VALUES", ROWS * DIM - 1)
    with pytest.warns(InputWarning, match="200 rows are held in memory"):
        assert not isinstance(_open(file, open_vectors).values, np.memmap)


def test_a_patrol_finds_what_nothing_tells_of(file: Path) -> None:
    time.sleep(0.06)
    mapped = _map(file)
    mapped.ensure_all()
    assert len(list(mapped.patrol())) == 4
    mapped._checks[2] ^= 1  # as if the bits had changed and the times had not
    mapped.ensure_all()
    with pytest.raises(DamagedVectors):
        list(mapped.patrol())


def test_pages_that_were_replaced_by_zeros_are_found_though_size_and_times_are_the_same(file: Path) -> None:
    """As after a sector that the disk cannot read: only the handler's count tells."""
    time.sleep(0.06)
    mapped = _map(file)
    mapped.ensure_all()
    times = file.stat()
    os.truncate(file, 64 * DIM * 4)
    assert mapped.values[-1].sum() == 0  # a fault, in the very map
    os.truncate(file, ROWS * DIM * 4)
    _values().tofile(file)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    mapped._state = state_of(file)  # as if nothing had changed
    with pytest.raises(DamagedVectors):
        mapped.recheck()


def test_a_scan_asks_before_it_reads(file: Path) -> None:
    mapped = _map(file)
    asked: list[tuple[int, int]] = []
    query = np.ones((1, DIM), np.float32)
    rows = np.arange(3, ROWS, 7)
    scan(query, mapped.values, temperature=0.1, top=1, ensure=lambda *span: asked.append(span), rows=rows)
    assert min(asked)[0] == 3
    assert max(stop for _, stop in asked) == rows[-1] + 1
    _flip(file, 10)
    with pytest.raises(DamagedVectors):
        scan(query, mapped.values, temperature=0.1, top=1, ensure=mapped.ensure)


@pytest.mark.skipif(sys.platform != "linux", reason="the guard is for Linux")
def test_a_file_that_shrinks_under_a_scan_is_damaged_and_ends_nothing(file: Path) -> None:
    mapped = _map(file)
    os.truncate(file, 100)
    found = scan(np.ones((1, DIM), np.float32), mapped.values, temperature=0.1, top=1)
    assert np.isfinite(found.scores).all()
    with pytest.raises(DamagedVectors):
        mapped.recheck()
    _values().tofile(file)  # what is back on the disk is not back in this map
    with pytest.raises(DamagedVectors):
        mapped.ensure_all()
    _map(file).ensure_all()


@pytest.mark.skipif(sys.platform != "linux", reason="the guard is for Linux")
def test_a_fault_elsewhere_ends_the_process_as_ever(tmp_path: Path) -> None:
    script = (
        "import os, numpy as np\n"
        "from evidex.retrieval.soundness.bus_guard import guard\n"
        f"np.zeros(100000, np.float32).tofile({str(tmp_path / 'a')!r})\n"
        f"other = np.memmap({str(tmp_path / 'a')!r}, np.float32, 'r')\n"
        f"np.zeros(100000, np.float32).tofile({str(tmp_path / 'b')!r})\n"
        f"mine = np.memmap({str(tmp_path / 'b')!r}, np.float32, 'r')\n"
        "guard(mine)\n"
        f"os.truncate({str(tmp_path / 'b')!r}, 0)\n"
        "assert mine[-1] == 0\n"
        f"os.truncate({str(tmp_path / 'a')!r}, 0)\n"
        "print('so far', flush=True)\n"
        "print(other[-1])\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (-7, "so far\n")


@pytest.mark.parametrize("few", [False, True])
def test_searches_go_on_while_the_file_is_cut_short_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: bool
) -> None:
    monkeypatch.setattr("evidex.retrieval.soundness.mapped.are_few", lambda *_: few)
    gallery = arbitrary_gallery(tmp_path / "g", tiny_model(), 300)
    retriever = Retriever(gallery)
    expected = retriever.search(text="a river").hits
    over = threading.Event()

    def cut() -> None:
        while not over.is_set():
            for path in gallery.path.glob("vectors-*.f32"):
                if path.stat().st_size == 300 * 32 * 4:
                    os.truncate(path, 1000)
            time.sleep(0.05)

    thread = threading.Thread(target=cut)
    thread.start()
    try:
        for _ in range(6):
            with suppress(DamagedError):  # where it is cut faster than it can be made again
                assert retriever.search(text="a river").hits == expected
    finally:
        over.set()
        thread.join()
    assert retriever.search(text="a river").hits == expected


def test_who_is_late_reads_the_file_of_a_later_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = arbitrary_gallery(tmp_path / "gallery", tiny_model(), 30)
    late = Gallery.open(newest.path, tiny_model())
    expected = np.array(newest.vectors)
    newest.append([Row(item_id("more"), "more", "image", "f" * 64)], expected[:1])
    assert len(newest.vectors) == 31
    (file,) = newest.path.glob("vectors-*.f32")
    assert np.array_equal(late.vectors, expected)
    monkeypatch.setattr("evidex.retrieval.soundness.mapped.are_few", lambda *_: False)
    mapped = Gallery.open(newest.path, tiny_model())
    mapped._moved_to(late.dataset)
    assert np.array_equal(mapped.vectors, expected)
    assert [*newest.path.glob("vectors-*.f32")] == [file], "and does not write it anew"
    content = bytearray(file.read_bytes())
    content[29 * 32 * 4] ^= 0x7F
    file.write_bytes(content)
    assert np.array_equal(mapped.vectors, expected), "made again where it is damaged"
