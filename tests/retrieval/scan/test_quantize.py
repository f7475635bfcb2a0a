from __future__ import annotations

import numpy as np
import pytest
import torch

from evidex.errors import InputError
from evidex.retrieval.scan.quantize import Int8Vectors, from_bfloat16, quantize_int8, to_bfloat16


def test_bfloat16_rounds_as_torch_does() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 20000, dtype=np.uint32)
    values = bits.view(np.float32)
    # Values half way between two bfloat16 numbers go to the even one.
    halves = (np.arange(2000, dtype=np.uint32) << 16 | 0x8000).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, 1e-45], np.float32)
    everything = np.concatenate([values, halves, special])[None]
    want = torch.from_numpy(everything).to(torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(from_bfloat16(to_bfloat16(everything)), want)


def test_int8_rows_are_off_by_at_most_half_a_step() -> None:
    rng = np.random.default_rng(1)
    vectors = (rng.standard_normal((3000, 20)) + 3).astype(np.float32)
    coded = quantize_int8(vectors, block_rows=700)
    assert coded.shape == (3000, 20)
    error = np.abs(coded.decode().astype(np.float64) - vectors)
    assert (error <= coded.scales[:, None] * 0.5001 + 1e-6).all()
    np.testing.assert_allclose(coded.offset, vectors.mean(axis=0), rtol=1e-5)


def test_rows_equal_to_the_offset_survive() -> None:
    vectors = np.full((4, 3), 0.25, np.float32)
    np.testing.assert_array_equal(quantize_int8(vectors).decode(), vectors)


def test_more_rows_can_be_coded_with_the_offset_of_a_stored_gallery() -> None:
    rng = np.random.default_rng(2)
    vectors = rng.standard_normal((50, 8)).astype(np.float32)
    whole = quantize_int8(vectors)
    later = quantize_int8(vectors[30:], whole.offset)
    np.testing.assert_array_equal(later.codes, whole.codes[30:])


def test_bad_input_is_refused() -> None:
    vectors = np.ones((5, 3), np.float32)
    vectors[3, 1] = np.nan
    with pytest.raises(InputError, match="row 3 is not finite"):
        quantize_int8(vectors, np.zeros(3, np.float32))
    with pytest.raises(InputError, match="float64"):
        quantize_int8(np.ones((5, 3)))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="need 5 scales"):
        Int8Vectors(np.zeros((5, 3), np.int8), np.ones(4, np.float32), np.zeros(3, np.float32))
