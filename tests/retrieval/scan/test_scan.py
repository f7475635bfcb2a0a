from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.retrieval.scan import kernels, register_tiles
from evidex.retrieval.scan.partial import ScanResult, merge_results
from evidex.retrieval.scan.quantize import from_bfloat16, quantize_int8, to_bfloat16
from evidex.retrieval.scan.scan import scan as scan_either_way
from evidex.retrieval.scan.shards import Vectors

Floats = NDArray[np.float32]
Scan = Callable[..., ScanResult]


@pytest.fixture(params=["compiled", "plain"])
def scan(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Scan:
    """By the kernels and by numpy alone: so few rows as the tests have would all go the second way."""
    monkeypatch.setattr("evidex.retrieval.scan.scan.are_few", lambda *_: request.param == "plain")
    return scan_either_way


def unit_rows(rng: np.random.Generator, rows: int, dim: int) -> Floats:
    """Clusters around a common mean: what encoders give, and harder on rounding than noise."""
    centres = rng.standard_normal((20, dim)) + rng.standard_normal(dim)
    values = centres[rng.integers(20, size=rows)] + rng.standard_normal((rows, dim))
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), np.float32)


def naive(queries: Floats, vectors: Floats, temperature: float, top: int) -> ScanResult:
    ids, scores, sums = [], [], []
    for query in queries.astype(np.float64):
        similarity = (vectors.astype(np.float64) * query).sum(axis=1)
        order = np.lexsort((np.arange(len(vectors)), -similarity))[:top]
        ids.append(order)
        scores.append(similarity[order])
        sums.append(np.logaddexp.reduce(similarity / temperature))
    return ScanResult(np.stack(ids), np.stack(scores), np.array(sums), len(vectors), temperature)


def assert_equal(got: ScanResult, want: ScanResult, tolerance: float = 1e-6) -> None:
    np.testing.assert_array_equal(got.ids, want.ids)
    np.testing.assert_allclose(got.scores, want.scores, rtol=0, atol=1e-12)
    np.testing.assert_allclose(got.log_sum_exp, want.log_sum_exp, rtol=tolerance, atol=tolerance)
    assert got.count == want.count


@pytest.fixture(scope="module")
def gallery() -> Floats:
    return unit_rows(np.random.default_rng(0), 3000, 50)


@pytest.fixture(scope="module")
def queries() -> Floats:
    return unit_rows(np.random.default_rng(1), 150, 50)


@pytest.mark.parametrize("count", [1, 2, 16, 17, 64, 65, 150])
def test_any_number_of_queries_equals_the_naive_way(scan: Scan, gallery: Floats, queries: Floats, count: int) -> None:
    got = scan(queries[:count], gallery, temperature=0.05, top=10)
    assert_equal(got, naive(queries[:count], gallery, 0.05, 10))


@pytest.mark.parametrize("count", [1, 12, 70])
def test_smaller_forms_find_the_same_head_and_nearly_the_same_evidence(scan: Scan, count: int) -> None:
    rng = np.random.default_rng(2)
    vectors, asked = unit_rows(rng, 20000, 256), unit_rows(rng, count, 256)
    want = naive(asked, vectors, 0.1, 10)
    assert_equal(scan(asked, to_bfloat16(vectors), temperature=0.1, top=10, exact=vectors), want, 3e-4)
    assert_equal(scan(asked, quantize_int8(vectors), temperature=0.1, top=10, exact=vectors), want, 1e-3)


@pytest.mark.parametrize("count", [1, 12, 70])
def test_without_exact_vectors_the_stored_ones_are_scored_in_full_precision(
    scan: Scan, gallery: Floats, queries: Floats, count: int
) -> None:
    bits, codes = to_bfloat16(gallery), quantize_int8(gallery)
    for stored, decoded in ((bits, from_bfloat16(bits)), (codes, codes.decode())):
        got = scan(queries[:count], stored, temperature=0.1, top=5)
        want = naive(queries[:count], decoded, 0.1, 5)
        np.testing.assert_allclose(got.scores, want.scores, atol=1e-6)


@pytest.mark.parametrize("count", [5, 70])
def test_int8_works_on_processors_without_the_instruction(
    scan: Scan, gallery: Floats, queries: Floats, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(register_tiles, "HAS_INT8_DOT", False)
    got = scan(queries[:count], quantize_int8(gallery), temperature=0.1, top=10, exact=gallery)
    assert_equal(got, naive(queries[:count], gallery, 0.1, 10), 1e-3)


def test_shards_of_different_forms_count_through(scan: Scan, gallery: Floats, queries: Floats) -> None:
    shards: list[Vectors] = [gallery[:700], to_bfloat16(gallery[700:701]), gallery[701:701]]
    shards.append(quantize_int8(gallery[701:]))
    for count in (1, 70):
        got = scan(queries[:count], shards, temperature=0.1, top=10, exact=[gallery[:1500], gallery[1500:]])
        assert_equal(got, naive(queries[:count], gallery, 0.1, 10), 2e-3)


def test_results_of_shards_merge_into_that_of_the_whole(scan: Scan, gallery: Floats, queries: Floats) -> None:
    first = scan(queries, gallery[:1234], temperature=0.05, top=10)
    rest = scan(queries, gallery[1234:], temperature=0.05, top=10)
    shifted = ScanResult(rest.ids + 1234, rest.scores, rest.log_sum_exp, rest.count, rest.temperature)
    assert_equal(merge_results(shifted, first, 10), naive(queries, gallery, 0.05, 10))


def test_a_memory_mapped_gallery_is_scanned_in_place(
    scan: Scan, gallery: Floats, queries: Floats, tmp_path: Path
) -> None:
    np.save(tmp_path / "vectors.npy", gallery)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    assert_equal(scan(queries[:3], mapped, temperature=0.1, top=10), naive(queries[:3], gallery, 0.1, 10))


@pytest.mark.parametrize("count", [1, 20])
def test_thousands_of_duplicates_are_ordered_by_id(scan: Scan, count: int) -> None:
    rng = np.random.default_rng(5)
    vectors, asked = unit_rows(rng, 4000, 33), unit_rows(rng, count, 33)
    vectors[rng.permutation(4000)[:3500]] = asked[0]
    assert_equal(scan(asked, vectors, temperature=0.1, top=10, threads=2), naive(asked, vectors, 0.1, 10))


@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize("top", [8, 150])
def test_better_rows_push_out_the_largest_ids_among_equals(scan: Scan, count: int, top: int) -> None:
    vectors = np.full((2000, 1), 0.5, np.float32)
    vectors[[30, 700, 1500, 1998, 1999]] = 1.0
    vectors[:4] = 0.25
    asked = np.ones((count, 1), np.float32)
    assert_equal(scan(asked, vectors, temperature=0.1, top=top), naive(asked, vectors, 0.1, top))


@pytest.mark.parametrize("count", [1, 20])
def test_rows_closer_than_float32_can_tell_are_ordered_exactly(scan: Scan, count: int) -> None:
    rng = np.random.default_rng(6)
    asked = unit_rows(rng, count, 64)
    near = np.repeat(asked[:1], 3000, axis=0)
    # One step of the last bit in one small component moves a score by about 1e-10.
    places = np.abs(asked[0]).argsort()[:8]
    for row, values in enumerate(near):
        for place in places[rng.random(8) < 0.5]:
            values[place] = np.nextafter(values[place], np.float32(row % 2))
    want = naive(asked, near, 0.1, 10)
    assert 0 < np.ptp(want.scores[0]) < 1e-7
    assert_equal(scan(asked, near, temperature=0.1, top=10), want)


@pytest.mark.parametrize("count", [1, 5, 70])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_named(
    scan: Scan, gallery: Floats, queries: Floats, count: int, value: float
) -> None:
    broken = gallery.copy()
    broken[2345, 7] = value
    broken[2800, 0] = value
    for stored in (broken, to_bfloat16(broken)):
        with pytest.raises(InputError, match="row 2345 of the gallery"):
            scan(queries[:count], stored, temperature=0.1, top=3)
    # Outside the selection it does no harm.
    fine = np.arange(3000) < 2345
    assert scan(queries[:count], broken, temperature=0.1, top=3, rows=fine).count == 2345


def test_vectors_of_any_length_are_compared(scan: Scan, gallery: Floats, queries: Floats) -> None:
    lengths = np.geomspace(1e-3, 1e3, len(gallery)).astype(np.float32)
    stretched = gallery * lengths[:, None]
    for count in (1, 20):
        got = scan(queries[:count], stretched, temperature=1.0, top=10)
        assert_equal(got, naive(queries[:count], stretched, 1.0, 10))


def test_an_empty_gallery_or_batch_gives_an_empty_result(scan: Scan, gallery: Floats, queries: Floats) -> None:
    nothing = scan(queries[:2], gallery[:0], temperature=0.1, top=5)
    assert (nothing.ids.shape, nothing.count) == ((2, 0), 0)
    assert nothing.uncertainty.tolist() == [1.0, 1.0]
    assert scan(queries[:2], [], temperature=0.1, top=5).count == 0
    assert scan(queries[:2], gallery, temperature=0.1, top=5, rows=np.zeros(3000, np.bool_)).count == 0
    assert len(scan(queries[:0], gallery, temperature=0.1, top=5)) == 0


def test_input_that_makes_no_sense_is_refused_in_words(scan: Scan, gallery: Floats, queries: Floats) -> None:
    one = queries[:1]
    with pytest.raises(InputError, match="temperature is 0"):
        scan(one, gallery, temperature=0, top=5)
    with pytest.raises(InputError, match="top is 0"):
        scan(one, gallery, temperature=0.1, top=0)
    with pytest.raises(InputError, match="threads is 0"):
        scan(one, gallery, temperature=0.1, top=5, threads=0)
    with pytest.raises(InputError, match="float64"):
        scan(one.astype(np.float64), gallery, temperature=0.1, top=5)
    with pytest.raises(InputError, match=r"\(3000, 49\) do not fit queries of 50"):
        scan(one, gallery[:, 1:], temperature=0.1, top=5)
    with pytest.raises(InputError, match="int32"):
        scan(one, gallery.astype(np.int32), temperature=0.1, top=5)
    with pytest.raises(InputError, match="exact vectors are 10 rows"):
        scan(one, gallery, temperature=0.1, top=5, exact=gallery[:10])
    with pytest.raises(InputError, match="query 0 is not finite"):
        scan(one * np.float32(np.nan), gallery, temperature=0.1, top=5)
    with pytest.raises(InputError, match="mask"):
        scan(one, gallery, temperature=0.1, top=5, rows=np.ones(7, np.bool_))
    for rows in ([3, 2], [1, 1], [-1], [3000]):
        with pytest.raises(InputError, match="sorted"):
            scan(one, gallery, temperature=0.1, top=5, rows=np.array(rows))


def test_rows_that_do_not_lie_together_in_memory_are_accepted(scan: Scan, gallery: Floats, queries: Floats) -> None:
    scattered = np.asfortranarray(gallery)
    assert_equal(scan(queries[:2], scattered, temperature=0.1, top=3), naive(queries[:2], gallery, 0.1, 3))


def test_scans_may_run_at_the_same_time(scan: Scan, gallery: Floats, queries: Floats) -> None:
    want = naive(queries, gallery, 0.1, 10)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(scan, queries, gallery, temperature=0.1, top=10, threads=2) for _ in range(8)]
    for run in runs:
        assert_equal(run.result(), want)


@pytest.mark.parametrize("form", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("count", [1, 20])
def test_both_ways_give_the_same_bits(
    gallery: Floats, queries: Floats, form: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of an archive may be scanned either way and are merged: equal rows must tie."""
    forms: dict[str, Vectors] = {"float32": gallery, "bfloat16": to_bfloat16(gallery), "int8": quantize_int8(gallery)}
    found = []
    for way in (True, False):
        monkeypatch.setattr("evidex.retrieval.scan.scan.are_few", lambda *_, way=way: way)
        rows = np.arange(5, 2900, 3)
        found.append(scan_either_way(queries[:count], forms[form], temperature=0.05, top=30, rows=rows))
    plain, compiled = found
    np.testing.assert_array_equal(plain.ids, compiled.ids)
    np.testing.assert_array_equal(plain.scores, compiled.scores)
    np.testing.assert_allclose(plain.log_sum_exp, compiled.log_sum_exp, rtol=0, atol=1e-3 if form == "int8" else 1e-6)


def test_few_rows_are_scanned_without_the_compiler() -> None:
    program = (
        "import sys, numpy as np; from evidex.retrieval.scan.scan import scan;"
        "rows = np.eye(64, dtype=np.float32);"
        "scan(rows[:1], rows, temperature=1, top=1); print('numba' in sys.modules);"
        "scan(rows[:1], np.tile(rows, (2100, 1)), temperature=1, top=1); print('numba' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True"]


def test_without_the_compiler_everything_is_scanned_by_numpy() -> None:
    program = (
        "import sys; sys.modules['numba'] = None; sys.modules['llvmlite'] = None;"
        "import numpy as np; from evidex.retrieval.scan import plain;"
        "plain.find_spec = lambda name: None; plain._SCORES_AT_ONCE = 300_000;"
        "from evidex.retrieval.scan.scan import scan;"
        "rows = np.tile(np.eye(64, dtype=np.float32), (2100, 1)); found = scan(rows[:5], rows, temperature=1, top=3);"
        "print(found.ids.tolist(), found.count)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == f"{[[n, n + 64, n + 128] for n in range(5)]} {2100 * 64}", run.stderr


def copy_of_the_package(folder: Path) -> Path:
    copy = folder / "evidex"
    skipped = {"__pycache__", "models"}
    shutil.copytree(Path(kernels.__file__).parents[2], copy, ignore=lambda _, names: skipped.intersection(names))
    return copy


def run_a_copy(program: str, folder: Path, **environment: str) -> list[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    variables = inherited | {"PYTHONPATH": str(folder)} | environment
    run = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_kernels_compile_where_no_cache_can_be_written(tmp_path: Path) -> None:
    copy = copy_of_the_package(tmp_path)
    # A file where each cache directory would be: unlike a permission, it also stops the superuser.
    (copy / "retrieval" / "scan" / "__pycache__").write_text("")
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    program = (
        "import numpy as np; from evidex.retrieval.scan import compiled, plain; plain.FEW_VALUES = 0;"
        "from evidex.retrieval.scan.scan import scan;"
        "print(type(compiled.push._cache).__name__, compiled.__file__);"
        "rows = np.eye(2, dtype=np.float32);"
        "print(scan(np.ones((1, 2), np.float32), rows, temperature=1, top=1).ids.tolist())"
    )
    printed = run_a_copy(program, tmp_path, HOME=str(blocked), XDG_CACHE_HOME=str(blocked / "cache"))
    assert printed == [f"NullCache {copy / 'retrieval' / 'scan' / 'compiled.py'}", "[[0]]"]


def test_cached_kernels_notice_a_change_in_what_they_call(tmp_path: Path) -> None:
    shared = copy_of_the_package(tmp_path) / "retrieval" / "scan" / "compiled.py"
    program = (
        "import numpy as np; from evidex.retrieval.scan.kernels import RowSpan, scan_exactly;"
        "heap = np.full(1, -9.0), np.full(1, -1);"
        "span = RowSpan(heap[1], False, 0, 3, 0);"
        "scan_exactly(np.ones(1, np.float32), np.ones((3, 1), np.float32), span, *heap, 0);"
        "print(heap[1][0])"
    )
    assert run_a_copy(program, tmp_path) == ["0"]
    assert run_a_copy(program, tmp_path) == ["0"]
    rule = "score == other_score and row > other_row"
    assert rule in shared.read_text()
    shared.write_text(shared.read_text().replace(rule, "score == other_score and row < other_row"))
    assert run_a_copy(program, tmp_path) == ["2"]


@pytest.mark.slow
def test_kernels_work_on_a_plain_processor(gallery: Floats, queries: Floats, tmp_path: Path) -> None:
    copy_of_the_package(tmp_path)
    np.savez(tmp_path / "data.npz", gallery=gallery, queries=queries[:20])
    program = (
        "import numpy as np; from evidex.retrieval.scan import register_tiles;"
        "from evidex.retrieval.scan import plain; plain.FEW_VALUES = 0; from evidex.retrieval.scan.scan import scan;"
        "from evidex.retrieval.scan.quantize import quantize_int8; data = np.load('data.npz');"
        "common = dict(temperature=0.1, top=10); codes = quantize_int8(data['gallery']);"
        "full = scan(data['queries'], data['gallery'], **common);"
        "small = scan(data['queries'], codes, exact=data['gallery'], **common);"
        "np.savez('out.npz', full=full.log_sum_exp, full_ids=full.ids, small=small.log_sum_exp, small_ids=small.ids);"
        "print(register_tiles.LANES, register_tiles.HAS_INT8_DOT)"
    )
    printed = run_a_copy(f"import os; os.chdir({str(tmp_path)!r});{program}", tmp_path, NUMBA_CPU_NAME="generic")
    assert printed == ["8 False"]
    want = naive(queries[:20], gallery, 0.1, 10)
    with np.load(tmp_path / "out.npz") as out:
        for name, tolerance in (("full", 1e-6), ("small", 1e-3)):
            np.testing.assert_array_equal(out[f"{name}_ids"], want.ids)
            np.testing.assert_allclose(out[name], want.log_sum_exp, atol=tolerance)
