"""The objects that an archive lists are those that were drawn, where they were drawn."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evidex.data.objects import read_objects
from evidex.scenes.archive import render_archive, scene_at
from evidex.scenes.canvas import Canvas, rectangle
from evidex.scenes.dice import Dice
from evidex.scenes.light import Light, Season
from evidex.scenes.scene import KINDS


@pytest.mark.parametrize(
    ("kind", "name", "fact"),
    [
        ("airport", "plane", "planes"),
        ("beach", "ship", "boats"),
        ("tenniscourt", "tennis court", "tennis_courts"),
        ("bridge", "bridge", "bridges"),
        ("resort", "swimming pool", "pools"),
        ("storagetanks", "storage tank", "tanks"),
    ],
)
def test_as_many_objects_are_listed_as_captions_count(kind: str, name: str, fact: str) -> None:
    for turn in range(4):
        scene = scene_at(KINDS.index(kind) + turn * len(KINDS), seed=5, size=64)
        counts = Counter(each.kind for each in scene.objects)
        assert counts[name] == scene.attributes[fact]


def test_a_box_lies_where_the_object_is_seen() -> None:
    dice = Dice(np.random.default_rng(0))
    canvas = Canvas(64, dice, Light.drawn(dice), Season.drawn(dice), turn=1 + 0j)
    canvas.mark("ship", rectangle(-64 + 32j, 32, 16))  # the image is 224 units wide, its middle is 0
    canvas.mark("plane", rectangle(104 + 0j, 32, 16))  # partly outside
    canvas.mark("plane", rectangle(124 + 0j, 32, 16))  # its middle is outside
    boxes = [each.box for each in canvas.objects]
    assert boxes[0] == pytest.approx((32 / 224, 136 / 224, 64 / 224, 152 / 224))
    assert boxes[1] == pytest.approx((200 / 224, 104 / 224, 1.0, 120 / 224))
    assert len(boxes) == 2


def test_the_pixels_of_a_pool_are_those_of_its_box() -> None:
    index = KINDS.index("resort")
    scene = scene_at(index, seed=3, size=224)
    pools = [each for each in scene.objects if each.kind == "swimming pool"]
    red, blue = scene.image[..., 0].astype(int), scene.image[..., 2].astype(int)
    for pool in pools:
        left, top, right, bottom = (round(side * 223) for side in pool.box)
        inside = (blue - red)[top : bottom + 1, left : right + 1].mean()
        assert inside > (blue - red).mean() + 15


def test_the_archive_lists_every_picture(tmp_path: Path) -> None:
    render_archive(tmp_path / "archive", count=4, seed=1, size=32)
    found = read_objects(tmp_path / "archive" / "objects.json")
    assert sorted(found) == sorted(path.name for path in (tmp_path / "archive" / "images").iterdir())
    expected = [(each.kind, each.score) for each in scene_at(0, seed=1, size=32).objects]
    assert [(each.kind, each.score) for each in found[min(found)]] == expected
