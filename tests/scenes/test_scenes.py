"""The rendered archive: same seed, same bytes; captions that say what was drawn; folders that are never half there."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections import defaultdict
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidex.errors import DataError, InputError
from evidex.scenes import KINDS, Scene, render_archive, render_scene
from evidex.scenes.archive import kind_of, scene_at, split_of
from evidex.scenes.captions import NUMBERS, Facts, five
from evidex.scenes.dice import Dice

ROUNDS = 8
WORDS = {
    **{word: range(n, n + 1) for n, word in enumerate(NUMBERS)},
    "a": range(1, 2),
    "an": range(1, 2),
    "several": range(3, 10),
    "some": range(3, 10_000),
    "many": range(10, 10_000),
    "lots of": range(10, 10_000),
    "a lot of": range(10, 10_000),
}
COLOURS = "white|gray|red|blue|brown|green|dark green|dark blue|yellow"
ADJECTIVES = rf"(?:(?:long|straight|fan shaped|irregular|large|tall|(?:{COLOURS})(?: and (?:{COLOURS}))?|roofed) )*"
# The noun as a caption writes it, and the attributes that may hold its number.
NOUNS = {
    "plane": ("planes",),
    "ship": ("ships",),
    "boat": ("boats",),
    "storage tank": ("tanks",),
    "cylindrical tank": ("tanks",),
    "tennis court": ("tennis_courts",),
    "basketball court": ("basketball_courts",),
    "baseball field": ("baseball_fields",),
    "bridge": ("bridges",),
    "swimming pool": ("pools",),
    "pond": ("ponds",),
    "train": ("trains",),
    "railway": ("tracks",),
    "runway": ("runways",),
    "house": ("houses",),
    "workshop": ("halls",),
    "factory building": ("halls",),
    "teaching building": ("teaching_buildings",),
    "lawn": ("lawns",),
    "trail": ("trails",),
    "ring road": ("loops",),
    "car": ("cars", "side_road_cars", "parked_cars"),
    "tree": ("trees", "tree_rows"),
    "building": ("buildings", "tall_buildings", "teaching_buildings", "resort_buildings", "halls", "houses"),
}
NOT_COUNTED = (  # turns of phrase in which a counted noun is not a number of things
    "red runway", "blue runway", "gray runway", "railway station", "on a lawn", "a building is", "center building",
    "station building", "round building", "oval building", "rectangular building", "large building", "long building",
    "terminal building", "beside a white building", "beside a gray building", "beside a blue building",
    "piece of green trees", "row of trees", "rows of green trees", "a long white building", "a long gray building",
    "a long blue building",
)  # fmt: skip


@lru_cache(maxsize=1)
def scenes() -> tuple[Scene, ...]:
    return tuple(scene_at(index, seed=3, size=64) for index in range(ROUNDS * len(KINDS)))


def numbers_in(caption: str) -> list[tuple[str, str, bool]]:
    """Return each (amount, noun, plural) that a caption states, read without the code that wrote it."""
    for phrase in NOT_COUNTED:
        caption = caption.replace(phrase, "")
    amounts = "|".join(sorted(WORDS, key=len, reverse=True))
    found = []
    for noun in NOUNS:
        for match in re.finditer(rf"\b({amounts}) {ADJECTIVES}{noun}(s?)\b", caption):
            found.append((match.group(1), noun, match.group(2) == "s"))
    return found


def test_kinds_cover_the_vocabulary_of_the_field() -> None:
    assert len(KINDS) >= 24
    assert len(set(KINDS)) == len(KINDS)
    assert {"airport", "port", "storagetanks", "forest", "beach", "viaduct", "tenniscourt", "desert"} <= set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_renders_a_textured_picture(kind: str) -> None:
    for seed in range(3):
        image = render_scene(kind, np.random.default_rng(seed)).image
        assert image.shape == (224, 224, 3)
        assert image.dtype == np.uint8
        grey = image.astype(float).mean(axis=2)
        assert 25 < grey.mean() < 235
        assert grey.std() > 4
        tiles = grey.reshape(8, 28, 8, 28).std(axis=(1, 3))
        assert tiles.min() > 1.0, "a part of the picture is flat"
        assert ((image == 0) | (image == 255)).mean() < 0.35


def test_scenes_of_a_kind_differ() -> None:
    by_kind = defaultdict(list)
    for scene in scenes():
        by_kind[scene.kind].append(scene.image.astype(float))
    for kind, images in by_kind.items():
        gaps = [np.abs(a - b).mean() for i, a in enumerate(images) for b in images[:i]]
        assert min(gaps) > 5, kind


@pytest.mark.parametrize("size", [32, 97, 300])
def test_size_is_free_and_the_layout_does_not_depend_on_it(size: int) -> None:
    large = render_scene("airport", np.random.default_rng(5), size)
    assert large.image.shape == (size, size, 3)
    assert large.attributes["planes"] == render_scene("airport", np.random.default_rng(5)).attributes["planes"]


def test_captions_have_the_form_of_the_field() -> None:
    for scene in scenes():
        assert len(scene.captions) == 5
        for caption in scene.captions:
            assert re.fullmatch(r"[a-z][a-z, ]* \.", caption), caption
            assert "  " not in caption
            assert 2 <= len(caption.split()) - 1 <= 40


def test_captions_state_the_numbers_that_were_drawn() -> None:
    checked: dict[str, int] = defaultdict(int)
    for scene in scenes():
        for caption in scene.captions:
            for word, noun, plural in numbers_in(caption):
                held = [scene.attributes[name] for name in NOUNS[noun] if name in scene.attributes]
                assert held, f"{scene.kind}: nothing holds the {noun}s of '{caption}' {dict(scene.attributes)}"
                fits = [value in WORDS[word] for value in held if isinstance(value, int)]
                assert any(fits), f"{scene.kind}: '{caption}' but {dict(scene.attributes)}"
                assert plural == (word not in ("a", "an")), caption
                checked[noun] += 1
    assert set(checked) >= {
        "plane",
        "boat",
        "storage tank",
        "tennis court",
        "bridge",
        "pond",
        "house",
        "car",
        "building",
    }
    assert sum(checked.values()) > 200


@pytest.mark.parametrize(
    ("kind", "attribute", "noun"),
    [
        ("airport", "plane_colour", "planes?"),
        ("tenniscourt", "court_colour", "tennis courts?"),
        ("storagetanks", "tank_colour", "storage tanks?"),
        ("bridge", "water_colour", "river"),
        ("pond", "water_colour", "ponds?"),
        ("meadow", "meadow_colour", "meadow"),
        ("desert", "land_colour", "desert"),
        ("beach", "sand_colour", "beach"),
        ("stadium", "roof_colour", "stadium"),
    ],
)
def test_captions_name_the_colour_that_was_drawn(kind: str, attribute: str, noun: str) -> None:
    named = set()
    for seed in range(25):
        scene = render_scene(kind, np.random.default_rng(seed), 32)
        for caption in scene.captions:
            for colour in re.findall(rf"\b(dark green|dark blue|[a-z]+) {noun}\b", caption):
                if re.fullmatch(rf"{COLOURS}|orange", colour):
                    assert colour == scene.attributes[attribute], caption
                    named.add(colour)
    assert len(named) > 1


def test_roofs_in_the_picture_have_the_colour_of_the_attribute() -> None:
    def redness(colour: str) -> float:
        values = []
        for seed in range(60):
            scene = render_scene("denseresidential", np.random.default_rng(seed), 64)
            if scene.attributes["roof_colour"] == colour:
                image = scene.image.astype(float)
                values.append((image[..., 0] - image[..., 2]).mean())
        return float(np.mean(values))

    assert redness("red") > redness("gray") + 10


def test_some_scenes_repeat_a_sentence_and_some_sentences_are_shared() -> None:
    repeats = [len(set(scene.captions)) < 5 for scene in scenes()]
    assert 0.28 < np.mean(repeats) < 0.52
    owners = defaultdict(set)
    for index, scene in enumerate(scenes()):
        for caption in scene.captions:
            owners[caption].add(index)
    assert max(map(len, owners.values())) >= 4
    assert np.mean([len(who) == 1 for who in owners.values()]) > 0.5, "most sentences should tell scenes apart"


def test_five_captions_even_from_few_facts() -> None:
    facts = Facts(subjects=[], sentences=["a", "b", "c"], coarse=["c", "d", "e"])
    for seed in range(50):
        captions = five(facts, Dice(np.random.default_rng(seed)))
        assert len(captions) == 5
        assert set(captions) <= {"a .", "b .", "c .", "d .", "e ."}


def digest(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_same_seed_same_bytes_in_another_process(tmp_path: Path) -> None:
    render_archive(tmp_path / "here", count=12, seed=7, size=64)
    program = (
        "import sys; from pathlib import Path; from evidex.scenes import render_archive, render_scene\n"
        "import numpy; render_scene('forest', numpy.random.default_rng(1), 48)\n"
        "render_archive(Path(sys.argv[1]), count=12, seed=7, size=64)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "there")], check=True, cwd=Path.cwd())
    assert digest(tmp_path / "here") == digest(tmp_path / "there")
    render_archive(tmp_path / "other", count=12, seed=8, size=64)
    images = [{h for name, h in digest(tmp_path / d).items() if name.endswith("jpg")} for d in ("here", "other")]
    assert not images[0] & images[1]


def test_a_longer_archive_begins_with_the_shorter_one(tmp_path: Path) -> None:
    render_archive(tmp_path / "short", count=9, seed=1, size=48)
    render_archive(tmp_path / "long", count=20, seed=1, size=48)
    short, long = digest(tmp_path / "short" / "images"), digest(tmp_path / "long" / "images")
    assert len(short) == 9
    assert short.items() <= long.items()
    records = [json.loads((tmp_path / d / "captions.json").read_text())["images"] for d in ("short", "long")]
    assert records[0] == records[1][:9]


def test_archive_is_a_dataset_with_every_kind_in_every_split(tmp_path: Path) -> None:
    seen = []
    count = 3 * len(KINDS)
    archive = render_archive(
        tmp_path / "new" / "archive", count=count, size=32, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(i + 1, count) for i in range(count)]
    held = json.loads((archive.directory / "captions.json").read_text())
    assert held["dataset"] == "evidex-sample"
    kinds_of = defaultdict(set)
    for record in held["images"]:
        assert set(record) == {"filename", "split", "label", "captions"}
        kinds_of[record["split"]].add(record["label"])
        with Image.open(archive.directory / "images" / record["filename"]) as image:
            assert image.size == (32, 32)
            assert image.mode == "RGB"
    assert {split: set(KINDS) for split in ("train", "val", "test")} == kinds_of
    assert sum(archive.splits.values()) == count == archive.count
    assert archive.kinds == tuple(sorted(KINDS))
    assert sorted(p.name for p in archive.directory.parent.iterdir()) == ["archive"], "no workspace is left behind"


def test_splits_are_near_80_10_10_and_even_over_kinds() -> None:
    splits = [split_of(i) for i in range(1200)]
    assert 0.77 < splits.count("train") / 1200 < 0.83
    assert abs(splits.count("val") - splits.count("test")) <= len(KINDS)
    assert {kind_of(i) for i in range(1200) if splits[i] == "test"} == set(KINDS)


def test_georeferenced_archive_has_places_and_times(tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio")
    plain = render_archive(tmp_path / "plain", count=6, seed=2, size=48)
    archive = render_archive(tmp_path / "geo", count=6, seed=2, size=48, georeferenced=True)
    corners, times = set(), set()
    for path in sorted((archive.directory / "images").iterdir()):
        assert path.suffix == ".tif"
        with rasterio.open(path) as source:
            assert source.crs.to_epsg() == 32630
            assert 0.5 <= source.res[0] <= 2.0
            assert source.count == 3
            corners.add((source.bounds.left, source.bounds.top))
            times.add(source.tags()["TIFFTAG_DATETIME"])
            pixels = source.read().transpose(1, 2, 0)
        assert np.array_equal(pixels, scene_at(int(path.stem[-5:]), seed=2, size=48).image)
    assert len(corners) == 6
    assert all(re.fullmatch(r"20\d\d:\d\d:\d\d 1[01]:\d\d:00", time) for time in times)
    captions = [json.loads((a.directory / "captions.json").read_text())["images"] for a in (plain, archive)]
    assert [r["captions"] for r in captions[0]] == [r["captions"] for r in captions[1]]
    render_archive(tmp_path / "again", count=6, seed=2, size=48, georeferenced=True)
    assert digest(tmp_path / "again") == digest(tmp_path / "geo")


def test_a_folder_of_something_else_is_never_touched(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.mkdir()
    (target / "thesis.txt").write_text("years of work")
    for force in (False, True):
        with pytest.raises(DataError, match="not empty"):
            render_archive(target, count=1, size=32, force=force)
    assert (target / "thesis.txt").read_text() == "years of work"
    with pytest.raises(InputError, match="is no folder"):
        render_archive(target / "thesis.txt", count=1, size=32)


def test_force_replaces_a_rendered_archive_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "archive"
    target.mkdir()
    render_archive(target, count=3, size=32)
    with pytest.raises(DataError, match="--force"):
        render_archive(target, count=2, size=32)
    assert len(list((target / "images").iterdir())) == 3
    render_archive(target, count=2, seed=1, size=32, force=True)
    assert len(list((target / "images").iterdir())) == 2
    (target / "notes.txt").write_text("keep me")
    with pytest.raises(DataError, match=r"notes\.txt"):
        render_archive(target, count=1, size=32, force=True)
    assert (target / "notes.txt").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["archive"]


def test_an_interrupted_rendering_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        assert done <= total
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        render_archive(tmp_path / "archive", count=6, size=32, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_arguments_out_of_range_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="count 0"):
        render_archive(tmp_path / "a", count=0)
    with pytest.raises(InputError, match="seed -1"):
        render_archive(tmp_path / "a", seed=-1)
    with pytest.raises(InputError, match="size 8"):
        render_archive(tmp_path / "a", size=8)
    with pytest.raises(InputError, match="'moon' is not a kind of scene"):
        render_scene("moon", np.random.default_rng(0))
    assert list(tmp_path.iterdir()) == []
