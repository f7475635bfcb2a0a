"""A matrix as a small difference to a published one.

Training moves a matrix along a few directions far more than along the rest. The difference is therefore taken apart
into its singular directions, D = Σ σ u vᵀ, and u and v are rounded to whole multiples of a step: coarser the smaller σ
is, so that every direction has the same error, and not at all where that error would be all there is. The multiples,
most of them 0 and ±1, are written in as few bits as they need. Training also shrinks all weights of a matrix alike
(weight decay): that is one factor.

Steps are powers of two of one scale, and so the sum over the directions is exact in float64, in whatever order a
machine adds: what comes back is the same on every one, bit for bit.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

_MOST = 127  # multiples are bytes
_MOST_HALVINGS = 20  # keeps the sums below the 53 bits of float64
_LEAST = 0.6  # of a step: directions whose entries are smaller than that on average are left out
_STRATEGIES = (zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE)  # noise, and rows that never changed


@dataclass(frozen=True)
class Directions:
    """A difference to a base taken apart: factor · base + (left · strengths) @ right."""

    factor: float
    base_size: float
    """The root mean square of the base."""
    left: np.ndarray
    strengths: np.ndarray
    right: np.ndarray


@dataclass(frozen=True)
class Difference:
    """What makes the tuned matrix of its base: factor · base + scale · Σ 2^−halvings · u vᵀ; see `applied`."""

    factor: float
    scale: float
    coded: bytes


def directions(tuned: np.ndarray, base: np.ndarray) -> Directions:
    """Take apart what changed. A tensor of more than two dimensions is a matrix of its first against all others."""
    reference = _matrix(base).astype(np.float64)
    wanted = _matrix(tuned).astype(np.float64)
    energy = float(np.square(reference).sum())
    factor = float(np.float32((wanted * reference).sum() / energy)) if energy else 1.0
    left, strengths, right = np.linalg.svd(wanted - factor * reference, full_matrices=False)
    return Directions(factor, (energy / reference.size) ** 0.5, left, strengths, right)


def difference(found: Directions, share: float) -> Difference:
    """Round the directions so that each one's error is ``share`` of the base's size."""
    rows, columns = found.left.shape[0], found.right.shape[1]
    step = share * found.base_size or share
    entries = found.strengths / ((rows + columns) / 2) ** 0.5
    kept = int((entries >= _LEAST * step).sum())
    if not kept:
        return Difference(found.factor, 1.0, _coded(b""))
    strengths = found.strengths[:kept]
    scale = float(np.float32(step**2 / strengths[-1]))
    halvings = np.clip(np.rint(np.log2(scale * strengths / step**2)), 0, _MOST_HALVINGS)
    largest = np.maximum(np.abs(found.left[:, :kept]).max(0), np.abs(found.right[:kept]).max(1))
    fits = np.floor(np.log2(scale * _MOST**2 / (strengths * largest**2)))  # no multiple beyond a byte's
    halvings = np.minimum(halvings, fits)
    if halvings.min() < 0:  # the scale grows where even its own step would be too fine
        scale, halvings = scale * 2.0 ** -halvings.min(), halvings - halvings.min()
    per_step = np.sqrt(strengths / (scale * 2.0**-halvings))
    left = np.rint(found.left[:, :kept] * per_step).T
    right = np.rint(found.right[:kept] * per_step[:, None])
    parts = (halvings.astype(np.uint8), left.astype(np.int8), right.astype(np.int8))
    return Difference(found.factor, scale, _coded(b"".join(part.tobytes() for part in parts)))


def applied(found: Difference, base: np.ndarray) -> np.ndarray:
    """Return base and difference together, float64; ValueError if they do not fit."""
    matrix = _matrix(base)
    rows, columns = matrix.shape
    try:
        reader = zlib.decompressobj()
        most = (1 + rows + columns) * min(rows, columns)  # a matrix has no more directions
        content = np.frombuffer(reader.decompress(found.coded, most), np.int8)
        if not (reader.eof or reader.unconsumed_tail):
            raise ValueError("the difference is damaged: it ends early")
        if reader.unconsumed_tail:
            raise ValueError(f"a difference of more than {most} numbers is none to a matrix of {rows} × {columns}")
    except zlib.error as error:
        raise ValueError(f"the difference is damaged: {error}") from None
    count, rest = divmod(content.size, 1 + rows + columns)
    if rest:
        raise ValueError(f"a difference of {content.size} numbers is none to a matrix of {rows} × {columns}")
    halvings, left, right = np.split(content.astype(np.float64), (count, count * (1 + rows)))
    weighted = left.reshape(count, rows).T * 2.0**-halvings
    changed = weighted @ right.reshape(count, columns)
    changed *= found.scale
    changed += found.factor * matrix.astype(np.float64)
    return changed.reshape(base.shape)


def _matrix(tensor: np.ndarray) -> np.ndarray:
    return tensor.reshape(len(tensor), -1)


def _coded(content: bytes) -> bytes:
    """The shorter of two forms; both are read alike."""
    return min((_deflated(content, strategy) for strategy in _STRATEGIES), key=len)


def _deflated(content: bytes, strategy: int) -> bytes:
    writer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS, 9, strategy)
    return writer.compress(content) + writer.flush()
