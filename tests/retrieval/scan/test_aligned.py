import numpy as np
import pytest

from evidex.retrieval.scan.aligned import CACHE_LINE, aligned, empty_aligned
from evidex.retrieval.scan.quantize import quantize_int8


@pytest.mark.parametrize("shape", [(5,), (1, 512), (3, 7, 5), (1000, 64)])
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float32])
def test_arrays_begin_at_a_cache_line_whatever_their_shape(shape: tuple[int, ...], dtype: type[np.generic]) -> None:
    # Numpy alone may meet a line by chance, not every time.
    arrays = [empty_aligned(shape, dtype) for _ in range(20)]
    assert all(array.ctypes.data % CACHE_LINE == 0 for array in arrays)
    assert all(array.shape == shape and array.dtype == dtype and array.flags.c_contiguous for array in arrays)


def test_a_copy_is_equal_contiguous_and_writable_though_its_source_is_neither() -> None:
    source = np.arange(60, dtype=np.float32).reshape(3, 4, 5).transpose(2, 0, 1)
    source.flags.writeable = False
    copy = aligned(source)
    assert (copy == source).all()
    assert copy.flags.c_contiguous
    copy[...] = 0
    assert source.any()


def test_rounded_vectors_begin_at_a_cache_line() -> None:
    vectors = np.random.default_rng(0).standard_normal((100, 64)).astype(np.float32)
    assert all(quantize_int8(vectors).codes.ctypes.data % CACHE_LINE == 0 for _ in range(20))
