"""A made-up gallery and queries for it: unit vectors in clusters, some of which hold rows that are all alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evidex.evaluation.learned_quality import scan_of
from evidex.retrieval.certainty.learned_score import Known
from evidex.retrieval.scan.partial import ScanResult

TAU = 0.1


def unit(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), np.float32)


@dataclass(frozen=True, eq=False)
class World:
    gallery: NDArray[np.float32]
    middle: NDArray[np.float32]
    known: Known


def world(seed: int, queries: int = 600, rows: int = 800, dim: int = 16) -> World:
    """Each query is a row plus noise of its own strength; right if the row is among the first ten."""
    rng = np.random.default_rng(seed)
    fixed = np.random.default_rng(99)
    centres, width = fixed.normal(size=(20, dim)), np.repeat(np.linspace(0.02, 0.5, 20), rows // 20)[:, None]
    gallery = unit(np.repeat(centres, rows // 20, axis=0) + width * fixed.normal(size=(rows, dim)))
    wanted = rng.integers(rows, size=queries)
    strength = rng.uniform(0.05, 0.3, size=(queries, 1))
    asked = unit(gallery[wanted] + strength * rng.normal(size=(queries, dim)))
    result = scan(asked, gallery)
    right = (result.ids == wanted[:, None]).any(axis=1).astype(np.float64)
    return World(gallery, gallery.mean(axis=0), Known(result, asked, right, wanted.astype(np.int64)))


def scan(queries: NDArray[np.float32], gallery: NDArray[np.float32]) -> ScanResult:
    return scan_of(queries @ gallery.T, TAU)
