"""Uncertainty of a query from its similarities to a gallery: the paper's, and what it must be compared with."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.evaluation.recall import Similarity, as_matrix

_Vector = NDArray[np.float64]

_BLOCK_ELEMENTS = 1 << 22
_DEGREE = 19


@dataclass(frozen=True)
class Scores:
    """One value a query for every score; higher means less sure throughout.

    With similarities s over a gallery of K items, evidence e = exp(s/τ), α = e + 1 and S = Σα (Eqs. 2 and 3):
    """

    vacuity: _Vector
    """u = K/S, the uncertainty of the paper."""
    max_similarity: _Vector
    """The highest similarity, negated."""
    margin: _Vector
    """The difference between the two highest similarities of distinct items, negated; 0 in a gallery of one."""
    entropy: _Vector
    """Entropy of softmax(s/τ), in nats."""
    belief: _Vector
    """1 - α_max/S, the expected probability (Eq. 11) that the best match is not the answer."""
    dissonance: _Vector
    """Balance of conflicting belief in subjective logic (Jøsang), with belief e/S."""

    def __getitem__(self, name: str) -> _Vector:
        value: _Vector = getattr(self, name)
        return value

    def rows(self, index: NDArray[Any]) -> Scores:
        """The scores of the queries at ``index`` (numbers or a mask)."""
        return Scores(**{field.name: self[field.name][index] for field in fields(self)})


SCORE_NAMES: tuple[str, ...] = tuple(field.name for field in fields(Scores))


def uncertainty_scores(
    similarity: Similarity, temperature: float, *, identity: NDArray[np.integer[Any]] | None = None
) -> Scores:
    """All scores of ``similarity`` (queries, gallery) at ``temperature``, in float64.

    ``identity`` (gallery,) gives equal gallery items equal numbers. Only the margin uses it: where a caption is
    repeated the two highest similarities are one sentence's, and their difference says nothing.
    """
    matrix = as_matrix(similarity)
    if not (np.isfinite(temperature) and temperature > 0):
        raise InputError(f"temperature {temperature} is not a positive number; pass the model's own temperature")
    if not np.isfinite(matrix).all():
        raise InputError("similarity holds infinite values; uncertainty needs finite ones, check the encoder's output")
    distinct = None if identity is None else np.unique(identity, return_index=True)[1]
    height = max(1, _BLOCK_ELEMENTS // matrix.shape[1])
    parts = [
        _block_scores(matrix[start : start + height].astype(np.float64), temperature, distinct)
        for start in range(0, matrix.shape[0], height)
    ]
    return Scores(**{name: np.concatenate([part[name] for part in parts]) for name in SCORE_NAMES})


def _block_scores(s: _Vector, temperature: float, distinct: NDArray[np.integer[Any]] | None) -> Scores:
    count = s.shape[1]
    best = s.max(axis=1)
    z = np.sort((s - best[:, None]) / temperature, axis=1)  # log evidence relative to the best, ascending, last is 0
    relative = np.exp(z)
    others = relative[:, :-1].sum(axis=1)
    # Everything is divided by exp(max(top, 0)), which neither overflows nor cancels for any finite top.
    top = best / temperature
    shift = np.maximum(top, 0.0)
    unit, evidence = np.exp(-shift), np.exp(top - shift)
    strength = count * unit + evidence * (1.0 + others)
    total = 1.0 + others
    return Scores(
        vacuity=count * unit / strength,
        max_similarity=-best,
        margin=_margin(s if distinct is None else s[:, distinct]),
        entropy=np.log1p(others) - (z * relative).sum(axis=1) / total,
        belief=((count - 1) * unit + evidence * others) / strength,
        dissonance=_relative_dissonance(z, relative) * evidence / strength,
    )


def _margin(s: _Vector) -> _Vector:
    if s.shape[1] < 2:
        return np.zeros(len(s))
    pair = np.partition(s, s.shape[1] - 2, axis=1)[:, -2:]
    return pair[:, 0] - pair[:, 1]


def _relative_dissonance(z: _Vector, belief: _Vector) -> _Vector:
    """Σ_k b_k · Σ_{j≠k} b_j Bal(b_j, b_k) / Σ_{j≠k} b_j for ascending b = exp(z), in O(K) steps after sorting.

    Bal(b_j, b_k) = 2y/(1+y) with y the ratio of the smaller to the larger. On y in [0, 1] the polynomial below equals
    2/(1+y) to rounding, and sums of powers of ratios over a sorted row follow from the neighbour's, so the K² terms
    need not be visited.
    """
    rows, count = z.shape
    if count < 2:
        return np.zeros(rows)
    powers = _balance_polynomial()
    ratio = np.exp(z[:, :-1] - z[:, 1:]).T  # of every item to the next larger one
    weight = np.ascontiguousarray(belief.T)
    below = np.zeros_like(weight)  # Σ over smaller items j of b_j Bal(b_j, b_k)
    above = np.zeros_like(weight)  # the same over larger items
    sums = np.zeros((_DEGREE + 1, rows))  # Σ_j b_j (b_j/b_k)^(n+1)
    for k in range(1, count):
        sums += weight[k - 1]
        sums *= _powers(ratio[k - 1])
        below[k] = powers @ sums
    sums[:] = 0.0  # Σ_j (b_k/b_j)^n
    for k in range(count - 2, -1, -1):
        sums += 1.0
        sums[1:] *= _powers(ratio[k])[:-1]
        above[k] = weight[k] * (powers @ sums)
    others = np.zeros_like(weight)  # Σ_{j≠k} b_j from both sides: subtracting b_k from the total would cancel
    others[1:] += np.cumsum(weight[:-1], axis=0)
    others[:-1] += np.cumsum(weight[:0:-1], axis=0)[::-1]
    share = np.divide(below + above, others, out=np.zeros_like(others), where=others > 0)
    result: _Vector = (weight * share).sum(axis=0)
    return result


def _powers(ratio: _Vector) -> _Vector:
    """ratio, ratio², ... up to the degree plus one, a row each."""
    return np.multiply.accumulate(np.broadcast_to(ratio, (_DEGREE + 1, len(ratio))), axis=0)


def _balance_polynomial() -> _Vector:
    """Coefficients of 2/(1+y) on [0, 1], lowest power first; the pole at -1 makes the error fall as 5.8^-degree."""
    fit = np.polynomial.Chebyshev.interpolate(lambda y: 2.0 / (1.0 + y), _DEGREE, domain=[0.0, 1.0])
    power_form = fit.convert(kind=np.polynomial.Polynomial, domain=[-1.0, 1.0], window=[-1.0, 1.0])
    return np.asarray(power_form.coef, dtype=np.float64)
