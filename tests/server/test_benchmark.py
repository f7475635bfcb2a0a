"""The judge of benchmarks/serve.py: it lets noise pass and no leak."""

from __future__ import annotations

import importlib.util
import sys
from itertools import islice
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

REQUESTS = np.linspace(0, 20_000, 41)


@pytest.fixture(scope="module")
def serve() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "serve.py"
    spec = importlib.util.spec_from_file_location("benchmark_serve", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _judged(serve: ModuleType, anonymous: np.ndarray, objects: np.ndarray) -> bool:
    rows = zip(REQUESTS, anonymous, objects, strict=True)
    flat: bool = serve.is_flat([serve.Sample(int(n), 700 + held, held, count) for n, held, count in rows])
    return flat


def test_noise_is_flat_and_leaks_are_not(serve: ModuleType) -> None:
    rng = np.random.default_rng(0)
    saw = 1e6 + 9000 * (REQUESTS / 1300 % 1)  # garbage that waits for the next collection
    noise = 300 + rng.normal(0, 0.2, len(REQUESTS))
    assert _judged(serve, noise, saw)
    assert _judged(serve, noise - REQUESTS * 1e-4, saw)
    assert not _judged(serve, noise, saw + REQUESTS)  # one object a request
    assert not _judged(serve, noise + REQUESTS * 50 / 2**20, saw)  # fifty bytes a request
    assert not _judged(serve, noise + 2 * (REQUESTS > 10_000), saw)  # one step up that stays


def test_the_line_is_that_of_scipy(serve: ModuleType) -> None:
    y = np.random.default_rng(1).normal(0, 3, len(REQUESTS)) + REQUESTS * 1e-3
    expected = stats.linregress(REQUESTS, y)
    assert serve.line_through(REQUESTS, y) == pytest.approx((expected.slope, expected.stderr))


def test_no_two_texts_are_alike(serve: ModuleType) -> None:
    assert len(set(islice(serve.distinct_texts(), 200_000))) == 200_000
    assert len(set(islice(serve.repeated_texts(), 1000))) == 50
