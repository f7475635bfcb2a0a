"""Windows cover a scene at every size, with overlap, and never stand out over its edge."""

from __future__ import annotations

import numpy as np
import pytest

from evidex.errors import ImageError, ImageTooLargeError, InputError
from evidex.locating.windows import default_sizes, scales_of


@pytest.mark.parametrize(("width", "height"), [(900, 700), (224, 224), (64, 3000), (16, 16), (513, 512)])
def test_every_pixel_is_seen_at_every_size_and_nothing_beyond(width: int, height: int) -> None:
    for scale in scales_of(width, height):
        seen = np.zeros((height, width), int)
        windows = list(scale)
        assert len(windows) == len(scale)
        for window in windows:
            assert window.x >= 0
            assert window.y >= 0
            assert window.x + window.width <= width
            assert window.y + window.height <= height
            seen[window.y : window.y + window.height, window.x : window.x + window.width] += 1
        assert seen.min() >= 1
        if min(width, height) >= 2 * scale.size:
            assert seen[scale.size // 2 : -scale.size // 2, scale.size // 2 : -scale.size // 2].min() >= 4


def test_sizes_suit_the_scene() -> None:
    assert default_sizes(10_000, 8_000) == (512, 256, 128)
    assert default_sizes(224, 300) == (224, 112)
    assert default_sizes(40, 500) == (40,)
    assert [scale.size for scale in scales_of(1000, 1000, (100, 300, 100))] == [300, 100]


@pytest.mark.parametrize(("width", "height"), [(1, 1), (50_000, 2), (15, 400)])
def test_what_shows_too_little_is_refused(width: int, height: int) -> None:
    with pytest.raises(ImageError, match=f"{width}×{height} pixels show too little to look into; give at least 16"):
        scales_of(width, height)


def test_more_windows_than_anyone_waits_for_are_refused_with_the_remedy() -> None:
    with pytest.raises(ImageTooLargeError, match="--window"):
        scales_of(200_000, 200_000)
    with pytest.raises(InputError, match="no size"):
        scales_of(100, 100, (0,))
