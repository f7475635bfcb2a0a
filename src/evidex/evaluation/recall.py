"""Recall at L in both directions, with ties counted in expectation (Eqs. 25 and 26)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError

if TYPE_CHECKING:
    import torch

Matrix: TypeAlias = NDArray[Any]
Similarity: TypeAlias = "NDArray[Any] | torch.Tensor"
Owners: TypeAlias = NDArray[np.integer[Any]]

_BLOCK_ELEMENTS = 1 << 22  # keeps the boolean temporaries of one block in a few megabytes


@dataclass(frozen=True)
class BestRanks:
    """Where the best right answer of each query stands: all that recall at any L needs.

    ``better`` gallery items score strictly higher than the query's best right answer, ``tied`` items (itself
    included) score the same, and ``own`` of those are right answers. ``own`` is 0 for a query without any.
    """

    better: NDArray[np.int64]
    tied: NDArray[np.int64]
    own: NDArray[np.int64]

    def hits(self, k: int) -> NDArray[np.float64]:
        """Chance of a right answer among the first ``k`` if ties are ordered at random; NaN without a right answer."""
        _check_cutoff(k)
        places = np.clip(k - self.better, 0, self.tied)
        # 1 - C(t-o, n)/C(t, n) with n places left for t tied items. The ratio is symmetric in o and n, so the
        # product runs over the smaller of the two; adding up hits instead of subtracting misses from 1 keeps it exact
        # where a single factor remains (n/t or o/t).
        factors = np.minimum(places, self.own)
        drawn = np.maximum(places, self.own)
        hit = np.zeros(len(self.better))
        for i in range(int(factors.max(initial=0))):
            active = factors > i
            chance = np.minimum(drawn[active] / (self.tied[active] - i), 1.0)
            hit[active] += (1.0 - hit[active]) * chance
        hit[self.own == 0] = np.nan
        return hit

    def recall(self, k: int) -> float:
        """Mean of the hits over the queries that have a right answer, in per cent."""
        hits = self.hits(k)
        hits = hits[~np.isnan(hits)]
        return 100.0 * math.fsum(hits) / len(hits)


@dataclass(frozen=True)
class Recall:
    """Recall in per cent by cutoff; ``i2t`` for image queries, ``t2i`` for text queries."""

    i2t: Mapping[int, float]
    t2i: Mapping[int, float]

    @property
    def rsum(self) -> float:
        return math.fsum([*self.i2t.values(), *self.t2i.values()])  # Eq. 26

    def to_json(self) -> dict[str, Any]:
        return {
            "i2t": {str(k): value for k, value in self.i2t.items()},
            "t2i": {str(k): value for k, value in self.t2i.items()},
            "rsum": self.rsum,
        }


def recall(similarity: Similarity, image_of_caption: Owners, ks: Sequence[int] = (1, 5, 10)) -> Recall:
    """Recall of ``similarity`` (images, captions), where caption ``j`` belongs to image ``image_of_caption[j]``.

    Any caption of an image answers it; the one image of a caption answers that. A cutoff beyond the gallery's size
    gives 100. An image without captions stays in the gallery but asks nothing.
    """
    return recall_of(best_ranks_i2t(similarity, image_of_caption), best_ranks_t2i(similarity, image_of_caption), ks)


def recall_of(i2t: BestRanks, t2i: BestRanks, ks: Sequence[int] = (1, 5, 10)) -> Recall:
    """Recall from the ranks of both directions, which may come from two matrices (refined queries)."""
    if not ks:
        raise InputError("no cutoff given for recall; pass at least one, such as ks=(1, 5, 10)")
    return Recall({k: i2t.recall(k) for k in ks}, {k: t2i.recall(k) for k in ks})


def hits_i2t(similarity: Similarity, image_of_caption: Owners, k: int) -> NDArray[np.float64]:
    """Chance that each image finds one of its captions among the first ``k``; NaN for an image without captions."""
    return best_ranks_i2t(similarity, image_of_caption).hits(k)


def hits_t2i(similarity: Similarity, image_of_caption: Owners, k: int) -> NDArray[np.float64]:
    """Chance that each caption finds its image among the first ``k``."""
    return best_ranks_t2i(similarity, image_of_caption).hits(k)


def best_ranks_i2t(similarity: Similarity, image_of_caption: Owners) -> BestRanks:
    """Ranks of every image's best caption among all captions."""
    matrix, owner = _checked(similarity, image_of_caption)
    images = matrix.shape[0]
    own_score = matrix[owner, np.arange(len(owner))]
    best = np.full(images, np.nan, dtype=matrix.dtype)
    order = np.argsort(owner, kind="stable")
    present, starts = np.unique(owner[order], return_index=True)
    best[present] = np.maximum.reduceat(own_score[order], starts)
    own = np.bincount(owner[own_score == best[owner]], minlength=images)
    better = np.zeros(images, dtype=np.int64)
    tied = np.zeros(images, dtype=np.int64)
    for rows in _blocks(matrix):
        better[rows] = np.count_nonzero(matrix[rows] > best[rows, None], axis=1)
        tied[rows] = np.count_nonzero(matrix[rows] == best[rows, None], axis=1)
    return BestRanks(better, tied, own.astype(np.int64))


def best_ranks_t2i(similarity: Similarity, image_of_caption: Owners) -> BestRanks:
    """Ranks of every caption's image among all images."""
    matrix, owner = _checked(similarity, image_of_caption)
    best = matrix[owner, np.arange(len(owner))]
    better = np.zeros(len(owner), dtype=np.int64)
    tied = np.zeros(len(owner), dtype=np.int64)
    for rows in _blocks(matrix):
        better += np.count_nonzero(matrix[rows] > best, axis=0)
        tied += np.count_nonzero(matrix[rows] == best, axis=0)
    return BestRanks(better, tied, np.ones(len(owner), dtype=np.int64))


def as_matrix(similarity: Similarity) -> Matrix:
    """A finite-precision NumPy matrix of ``similarity``, without a copy where the type allows; NaN is refused."""
    value: Any = similarity
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if value.is_floating_point() and value.element_size() < 4:
            value = value.float()  # NumPy has no bfloat16, and widening keeps order and ties
        value = value.numpy()
    matrix = np.asarray(value)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(f"similarity has shape {matrix.shape}; pass a non-empty matrix of images by captions")
    if matrix.dtype.kind not in "fiub":
        raise InputError(f"similarity has type {matrix.dtype}; pass real numbers")
    if matrix.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        matrix = matrix.astype(np.float32 if matrix.dtype == np.float16 else np.float64)
    for rows in _blocks(matrix):
        if np.isnan(matrix[rows]).any():
            row, column = np.argwhere(np.isnan(matrix[rows]))[0]
            raise InputError(
                f"similarity is NaN at row {rows.start + row}, column {column}; nothing can be ranked, "
                "check the encoder's output"
            )
    return matrix


def _checked(similarity: Similarity, image_of_caption: Owners) -> tuple[Matrix, NDArray[np.int64]]:
    matrix = as_matrix(similarity)
    owner = np.asarray(image_of_caption)
    if owner.shape != (matrix.shape[1],):
        raise InputError(
            f"image_of_caption has shape {owner.shape} for {matrix.shape[1]} captions; give one image index a caption"
        )
    if owner.dtype.kind not in "iu":
        raise InputError(f"image_of_caption has type {owner.dtype}; pass integers")
    if owner.min() < 0 or owner.max() >= matrix.shape[0]:
        raise InputError(
            f"image_of_caption runs from {owner.min()} to {owner.max()} but there are {matrix.shape[0]} images; "
            f"use indices from 0 to {matrix.shape[0] - 1}"
        )
    return matrix, owner.astype(np.int64)


def _blocks(matrix: Matrix) -> list[slice]:
    height = max(1, _BLOCK_ELEMENTS // matrix.shape[1])
    return [slice(start, start + height) for start in range(0, matrix.shape[0], height)]


def _check_cutoff(k: int) -> None:
    if int(k) != k or k < 1:
        raise InputError(f"recall at {k} is undefined; use a whole cutoff of 1 or more")
