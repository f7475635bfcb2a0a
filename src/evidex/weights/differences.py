"""A tensor as a small difference to a published one.

The difference is rounded to whole multiples of a step, and the multiples, most of them 0 and ±1, are written in as few
bits as they need. Each tensor's step is the same share of its base's size, so that the error is the same share
of the weights everywhere. Training also shrinks all weights of a matrix alike (weight decay): that is one factor.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

_MOST = 127  # multiples are bytes
_STRATEGIES = (zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE)  # noise, and rows that never changed


@dataclass(frozen=True)
class Difference:
    """What makes ``tuned`` of its base: factor · base + step · multiples."""

    factor: float
    step: float
    coded: bytes


def difference(tuned: np.ndarray, base: np.ndarray, share: float) -> Difference:
    """Return ``tuned`` − ``base``, rounded to ``share`` of the root mean square of the base.

    A coarser step is taken where the difference would not fit: at most 127 steps up or down.
    """
    reference = base.astype(np.float64)
    energy = float(np.square(reference).sum())
    factor = float(np.float32((tuned.astype(np.float64) * reference).sum() / energy)) if energy else 1.0
    rest = tuned.astype(np.float64) - factor * reference
    step = max(share * (energy / reference.size) ** 0.5, float(np.abs(rest).max(initial=0)) / _MOST)
    step = float(np.float32(step)) or 1.0
    multiples = np.clip(np.rint(rest / step), -_MOST, _MOST).astype(np.int8)
    return Difference(factor, step, _coded(multiples.tobytes()))


def applied(found: Difference, base: np.ndarray) -> np.ndarray:
    """Return base and difference together, float32 and the same bits on every machine; ValueError if they do not fit.

    Each operation is rounded on its own, as IEEE 754 has it.
    """
    try:
        multiples = np.frombuffer(zlib.decompress(found.coded), np.int8)
    except zlib.error as error:
        raise ValueError(f"the difference is damaged: {error}") from None
    if multiples.size != base.size:
        raise ValueError(f"the difference is of {multiples.size} numbers, its base of {base.size}")
    changed = multiples.reshape(base.shape).astype(np.float32)
    changed *= np.float32(found.step)
    shrunk = base.astype(np.float32)
    shrunk *= np.float32(found.factor)
    shrunk += changed
    return shrunk


def _coded(content: bytes) -> bytes:
    """The shorter of two forms; both are read alike."""
    return min((_deflated(content, strategy) for strategy in _STRATEGIES), key=len)


def _deflated(content: bytes, strategy: int) -> bytes:
    writer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS, 9, strategy)
    return writer.compress(content) + writer.flush()
