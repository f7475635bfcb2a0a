from __future__ import annotations

import multiprocessing
import os
import signal
import stat
from pathlib import Path

import numpy as np
import pytest

from evidex.encoders.mentors.feature_cache import Precision, cached_features, content_digest
from evidex.errors import InputError, ModelError
from evidex.files import cache_directory


class Counting:
    """A mentor for texts that remembers which places it was asked for."""

    def __init__(self, texts: list[str], dim: int = 5) -> None:
        self.texts = texts
        self.dim = dim
        self.asked: list[int] = []

    @property
    def digests(self) -> list[str]:
        return [content_digest(text) for text in self.texts]

    def row(self, text: str) -> np.ndarray:
        return np.random.default_rng(list(text.encode())).normal(size=self.dim).astype(np.float32)

    def __call__(self, places: list[int]) -> np.ndarray:
        self.asked += places
        return np.stack([self.row(self.texts[place]) for place in places])

    def expected(self) -> np.ndarray:
        return np.stack([self.row(text) for text in self.texts])


def texts(count: int) -> list[str]:
    return [f"text {number}" for number in range(count)]


def files(folder: Path) -> list[Path]:
    return sorted((folder / "features").glob("*/*.safetensors"))


def test_the_same_data_is_computed_once(tmp_path: Path) -> None:
    mentor = Counting(texts(10))
    for _ in range(3):
        rows = cached_features("m", mentor.digests, mentor, directory=tmp_path, chunk_size=4)
        assert rows.dtype == np.float32
        assert np.array_equal(rows, mentor.expected())
    assert mentor.asked == list(range(10))


def test_repeated_items_are_computed_once_and_fill_all_their_places(tmp_path: Path) -> None:
    mentor = Counting(["a", "b", "a", "c", "b", "a"])
    rows = cached_features("m", mentor.digests, mentor, directory=tmp_path, chunk_size=2)
    assert np.array_equal(rows, mentor.expected())
    assert mentor.asked == [0, 1, 3]


def test_items_added_at_the_end_cost_only_themselves(tmp_path: Path) -> None:
    first = Counting(texts(8))
    cached_features("m", first.digests, first, directory=tmp_path, chunk_size=4)
    longer = Counting(texts(11))
    rows = cached_features("m", longer.digests, longer, directory=tmp_path, chunk_size=4)
    assert np.array_equal(rows, longer.expected())
    assert longer.asked == [8, 9, 10]


@pytest.mark.parametrize("change", ["mentor", "content", "order", "precision"])
def test_other_mentor_content_order_or_precision_is_computed_anew(tmp_path: Path, change: str) -> None:
    mentor = Counting(texts(4))
    cached_features("m", mentor.digests, mentor, directory=tmp_path)
    other = Counting({"content": [*texts(3), "new"], "order": texts(4)[::-1]}.get(change, texts(4)))
    fingerprint = "n" if change == "mentor" else "m"
    precision: Precision = "float16" if change == "precision" else "float32"
    rows = cached_features(fingerprint, other.digests, other, directory=tmp_path, precision=precision)
    assert other.asked == [0, 1, 2, 3]
    np.testing.assert_allclose(rows, other.expected(), rtol=1e-3)


def test_half_precision_gives_the_same_values_before_and_after_storing(tmp_path: Path) -> None:
    mentor = Counting(texts(6))
    first = cached_features("m", mentor.digests, mentor, directory=tmp_path, precision="float16")
    second = cached_features("m", mentor.digests, mentor, directory=tmp_path, precision="float16")
    assert np.array_equal(first, second)
    assert np.array_equal(first, mentor.expected().astype(np.float16).astype(np.float32))
    assert first.dtype == np.float32


def test_a_stopped_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    mentor = Counting(texts(10))

    def stops(places: list[int]) -> np.ndarray:
        if 8 in places:
            raise KeyboardInterrupt
        return mentor(places)

    with pytest.raises(KeyboardInterrupt):
        cached_features("m", mentor.digests, stops, directory=tmp_path, chunk_size=4)
    assert mentor.asked == list(range(8))
    rows = cached_features("m", mentor.digests, mentor, directory=tmp_path, chunk_size=4)
    assert np.array_equal(rows, mentor.expected())
    assert mentor.asked == list(range(10))


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "garbage", "shorter"])
def test_a_damaged_chunk_is_computed_again(tmp_path: Path, damage: str) -> None:
    mentor = Counting(texts(9))
    cached_features("m", mentor.digests, mentor, directory=tmp_path, chunk_size=3)
    paths = {path: path.read_bytes() for path in files(tmp_path)}
    assert len(paths) == 3
    path, content = next(iter(paths.items()))
    if damage == "flip":
        content = content[:-7] + bytes([content[-7] ^ 1]) + content[-6:]
    elif damage == "truncate":
        content = content[:-4]
    elif damage == "empty":
        content = b""
    elif damage == "garbage":
        content = os.urandom(len(content))
    else:
        other = Counting(texts(2))
        cached_features("m", other.digests, other, directory=tmp_path / "other")
        content = files(tmp_path / "other")[0].read_bytes()
    path.write_bytes(content)
    mentor.asked.clear()
    rows = cached_features("m", mentor.digests, mentor, directory=tmp_path, chunk_size=3)
    assert np.array_equal(rows, mentor.expected())
    assert len(mentor.asked) == 3
    mentor.asked.clear()
    cached_features("m", mentor.digests, mentor, directory=tmp_path, chunk_size=3)
    assert mentor.asked == []


def test_progress_counts_distinct_items_from_the_cache_too(tmp_path: Path) -> None:
    mentor = Counting([*texts(5), "text 0"])
    for _ in range(2):
        seen: list[tuple[int, int]] = []
        cached_features(
            "m",
            mentor.digests,
            mentor,
            directory=tmp_path,
            chunk_size=2,
            progress=lambda done, total, seen=seen: seen.append((done, total)),
        )
        assert seen == [(2, 5), (4, 5), (5, 5)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((3, 4)), "shape"),
        (np.zeros(2), "shape"),
        (np.zeros((2, 0)), "shape"),
        (np.array([[1.0, np.nan], [1.0, 2.0]]), "not finite"),
        (np.array([[1e300, 1.0], [1.0, 2.0]]), "not finite"),
    ],
)
def test_a_mentor_that_misbehaves_is_refused_and_not_stored(tmp_path: Path, rows: np.ndarray, message: str) -> None:
    mentor = Counting(texts(2))
    with pytest.raises(ModelError, match=message):
        cached_features("m", mentor.digests, lambda _: rows, directory=tmp_path)
    assert files(tmp_path) == []


def test_rows_of_different_length_are_refused(tmp_path: Path) -> None:
    digests = Counting(texts(4)).digests
    with pytest.raises(ModelError, match="different length"):
        cached_features("m", digests, lambda p: np.ones((len(p), 1 + p[0])), directory=tmp_path, chunk_size=2)


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    mentor = Counting(texts(2))
    with pytest.raises(InputError, match="no items"):
        cached_features("m", [], mentor, directory=tmp_path)
    with pytest.raises(InputError, match="chunk_size 0"):
        cached_features("m", mentor.digests, mentor, directory=tmp_path, chunk_size=0)


def test_the_directory_comes_from_argument_environment_or_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVIDEX_CACHE", str(tmp_path / "env"))
    assert cache_directory(tmp_path / "given") == tmp_path / "given"
    assert cache_directory() == tmp_path / "env"
    mentor = Counting(texts(2))
    cached_features("m", mentor.digests, mentor)
    assert len(files(tmp_path / "env")) == 1
    monkeypatch.delenv("EVIDEX_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "evidex"


def test_a_directory_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    mentor = Counting(texts(2))
    with pytest.raises(InputError, match="EVIDEX_CACHE") as caught:
        cached_features("m", mentor.digests, mentor, directory=tmp_path / "file")
    assert "\n" not in str(caught.value)


def test_stored_files_are_readable_by_others_and_leave_no_parts(tmp_path: Path) -> None:
    mentor = Counting(texts(5))
    cached_features("m", mentor.digests, mentor, directory=tmp_path, chunk_size=2)
    stored = files(tmp_path)
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o644 for path in stored)
    assert {path for path in (tmp_path / "features").glob("*/*") if path.parent.name != "locks"} == set(stored)


def _worker(directory: Path, count: int, log: Path, barrier: object) -> None:
    mentor = Counting(texts(count))

    def logged(places: list[int]) -> np.ndarray:
        with log.open("a") as stream:
            stream.write("".join(f"{place}\n" for place in places))
        return mentor(places)

    barrier.wait()  # type: ignore[attr-defined]
    rows = cached_features("m", mentor.digests, logged, directory=directory, chunk_size=3)
    if not np.array_equal(rows, mentor.expected()):
        raise SystemExit(3)


def test_processes_at_once_compute_each_chunk_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(4)
    log = tmp_path / "log"
    workers = [context.Process(target=_worker, args=(tmp_path, 60, log, barrier)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0, 0]
    assert sorted(int(line) for line in log.read_text().split()) == list(range(60))


def _killed_in_the_middle(directory: Path) -> None:
    mentor = Counting(texts(10))

    def dies(places: list[int]) -> np.ndarray:
        if 4 in places:
            os.kill(os.getpid(), signal.SIGKILL)
        return mentor(places)

    cached_features("m", mentor.digests, dies, directory=directory, chunk_size=4)


def test_a_killed_process_leaves_its_chunks_and_no_lock(tmp_path: Path) -> None:
    worker = multiprocessing.get_context("fork").Process(target=_killed_in_the_middle, args=(tmp_path,))
    worker.start()
    worker.join(timeout=60)
    assert worker.exitcode == -signal.SIGKILL
    mentor = Counting(texts(10))
    rows = cached_features("m", mentor.digests, mentor, directory=tmp_path, chunk_size=4)
    assert np.array_equal(rows, mentor.expected())
    assert mentor.asked == list(range(4, 10))
