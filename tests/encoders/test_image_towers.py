"""TensorFlow's "same" padding against its definition: an input padded by hand."""

import pytest
import torch
from torch.nn.functional import conv2d, pad

from evidex.encoders.image_towers import _SameConv2d


@pytest.mark.parametrize("kernel", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("height", [1, 2, 7, 8, 37])
def test_same_padding_puts_the_odd_pixel_right_and_below(kernel: int, stride: int, height: int) -> None:
    for width in (4, 7, 64):
        convolution = _SameConv2d(4, 4, kernel, stride, groups=2).double()
        grid = torch.randn(2, 4, height, width, dtype=torch.float64)
        down, across = (max((-(-n // stride) - 1) * stride + kernel - n, 0) for n in (height, width))
        padded = pad(grid, (across // 2, across - across // 2, down // 2, down - down // 2))
        expected = conv2d(padded, convolution.weight, convolution.bias, stride, 0, 1, 2)
        torch.testing.assert_close(convolution(grid), expected, rtol=0, atol=1e-12)
