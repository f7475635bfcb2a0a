"""Every option and file of every command, with what nobody should give it: one line, exit code 2, nothing left."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from evidex.retrieval.gallery import Gallery
from evidex.scenes import render_archive
from tests.cli.running import Runner
from tests.retrieval.archive import tiny_model

NUMBERS = ("-1", "nan", "-inf", "1e400", "x", "", "9" * 5000)
PLACES = ("/dev/zero", "fifo", "folder", "loop", "junk", "deep.json", "nowhere", "", "x" * 300, "y/" * 2500, "\udcff")
UNWRITABLE = ("nowhere/x.json", "junk/x.json", "folder", "fifo", "x" * 250, "loop/x.json")
PLANS = ("deep.toml", "dotted.toml", "large.toml", "negative.toml", "list.json")

COMMANDS: dict[str, list[str]] = {
    "search": ["search", "a river", "--gallery", "gallery"],
    "example": ["search", "--gallery", "gallery"],
    "index": ["index", "data/images", "--no-calibrate", "--gallery", "new", "--model", "model.safetensors"],
    "places": ["index", "--no-calibrate", "--gallery", "new", "--model", "model.safetensors"],
    "calibrate": ["calibrate", "--gallery", "gallery"],
    "evaluate": ["evaluate", "--model", "model.safetensors", "--dataset", "data"],
    "train": ["train", "tiny.toml", "--set", "data.path=data", "--output", "run"],
    "train_file": ["train"],
    "benchmark": ["benchmark"],
    "degrade": ["degrade", "data/images", "degraded"],
    "degrade_from": ["degrade", "--seed", "1"],
    "sample": ["sample", "sample", "--size", "64"],
    "serve": ["serve", "--gallery", "nowhere"],
}
VALUES: list[tuple[str, str, tuple[str, ...]]] = [
    ("search", "--top", NUMBERS),
    ("search", "--bbox", ("nan,0,1,1", "1,2", "0,0,0,inf", "a,b,c,d", "", "0,50,5,40", "1e400,0,0,0")),
    ("search", "--after", ("", "9999-99-99", "x" * 5000)),
    ("search", "--among", ("", "maps")),
    ("search", "--gallery", PLACES),
    ("search", "--model", (*PLACES, "~nobody/x")),
    ("search", "--sheet", ("nowhere/x.html", "x.gif", "junk/x.png", "x" * 250 + ".html", "sheet.html")),
    ("example", "--image", (*PLACES, "/proc/self/mem")),
    ("index", "--tile", (*NUMBERS, "1")),
    ("index", "--bands", ("0", "-1", "1,2", "", "a", "9" * 5000)),
    ("index", "--stretch", ("nan,nan", "98,2", "a", "1")),
    ("index", "--workers", ("0", "-1")),
    ("index", "--max-pixels", ("0", "9" * 30)),
    ("index", "--report", UNWRITABLE),
    ("index", "--gallery", ("junk", "fifo", "loop", "x" * 300, "y/" * 2500, "junk/x")),
    ("index", "--model", PLACES),
    ("places", "", ("/dev/zero", "fifo", "loop", "junk", "nowhere", "", "x" * 300, "[")),
    ("calibrate", "--queries", (*PLACES, "list.json", "queries.json")),
    ("calibrate", "--dataset", (*PLACES, "list.json")),
    ("calibrate", "--alpha", NUMBERS),
    ("evaluate", "--dataset", (*PLACES, "list.json", "half.json", "deep")),
    ("evaluate", "--model", (*PLACES, "deep.safetensors")),
    ("evaluate", "--split", ("", "trian", "x" * 9000)),
    ("evaluate", "--defer", ("-1", "nan", "2")),
    ("evaluate", "--device", ("", "meta", "gpu", "cuda:99")),
    ("evaluate", "--json", UNWRITABLE),
    ("evaluate", "--figures", ("junk", "fifo", "junk/x", "x" * 300)),
    ("train", "--set", ("", "a", "=1", "seed.x=1", "train.epochs=0", "seed=18446744073709551616", "data.path=")),
    ("train", "--set", ("data.path=fifo", "data.train_split=trian", "encoder.dim=2147483648", "data.path=\udcff")),
    ("train", "--set", ("encoder.kind=towers", "encoder.image_tower=x", "mentors.image=nowhere", "loss.b1=nan")),
    ("train", "--output", ("junk", "fifo", "x" * 300, "\udcff", "")),
    ("train_file", "", (*PLACES, *PLANS)),
    ("benchmark", "", (*PLACES, *PLANS)),
    ("degrade", "--severity", (*NUMBERS, "1e300")),
    ("degrade", "--seed", NUMBERS),
    ("degrade_from", "", ("fifo target", "junk target", "nowhere target", "folder junk", "folder junk/x")),
    ("sample", "--count", NUMBERS),
    ("sample", "--size", (*NUMBERS, "1", "99999")),
    ("serve", "--gallery", PLACES),
    ("search", "--cluster", ("", "here", "http://[", "ftp://x", "a:99999")),
    ("serve", "--timeout", NUMBERS),
    ("serve", "--refresh", NUMBERS),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from safetensors.torch import save

    root = tmp_path_factory.mktemp("nasty")
    render_archive(root / "data", count=3, size=64)
    model = tiny_model()
    model.save(root / "model.safetensors")
    Gallery.create(root / "gallery", model).add(root / "data")
    os.mkfifo(root / "fifo")
    (root / "folder").mkdir()
    (root / "sheet.html").mkdir()
    (root / "loop").symlink_to(root / "loop")
    (root / "junk").write_bytes(bytes(range(256)) * 8)
    (root / "deep.json").write_text('{"images": ' + "[" * 100_000)
    (root / "deep").mkdir()
    (root / "deep" / "captions.json").write_text('{"images":' * 100_000)
    (root / "list.json").write_text("[1, 2]")
    (root / "queries.json").write_text('[{"text": 3}]')
    entry = {"filename": "a.jpg", "split": "val", "captions": ["a \ud800"]}
    (root / "half.json").write_text(json.dumps({"images": [entry]}))
    (root / "deep.safetensors").write_bytes(save({}, {"evidex": "[" * 100_000}))
    (root / "deep.toml").write_text("seed = " + "[" * 10_000)
    (root / "dotted.toml").write_text("training" + ".a" * 9000 + " = 1")
    (root / "large.toml").write_text("# " + "x" * (2 << 20))
    (root / "negative.toml").write_text("[loss]\ntemperature = -1\nb1 = 0\n[[model]]\nname = 'ELC0'")
    (root / "tiny.toml").write_text("[encoder]\nimage_size = 32\ndim = 16\n[train]\nepochs = 1\nbatch_size = 2\n")
    return root


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(place)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("EVIDEX_CACHE", str(place / "folder" / "cache"))
    before = sorted(place.iterdir())
    yield place
    assert sorted(place.iterdir()) == before, "something half-written stayed"


@pytest.mark.parametrize(("command", "option", "values"), VALUES, ids=[f"{c}{o}{v[0][:20]}" for c, o, v in VALUES])
def test_nasty_values_are_one_line(
    command: str, option: str, values: tuple[str, ...], here: Path, evidex: Runner
) -> None:
    assert here.is_dir()
    for value in values:
        given = value.split(" ") if command == "degrade_from" else [value]
        ran = evidex(*COMMANDS[command], *([option] if option else []), *given)
        assert ran.complaint, value[:80]
        assert len(ran.complaint) < 1200


def test_a_split_that_nobody_asks_for_is_told(here: Path, evidex: Runner, tmp_path: Path) -> None:
    data = tmp_path / "data"
    render_archive(data, count=5, size=64)
    captions = json.loads((data / "captions.json").read_text())
    for image, split in zip(captions["images"], ("train", "val", "val", "trian", "trian"), strict=True):
        image["split"] = split
    (data / "captions.json").write_text(json.dumps(captions))
    words = ["evaluate", "--model", here / "model.safetensors", "--dataset", data, "--no-absent", "--split"]
    ran = evidex(*words, "val")
    assert ran.code == 0
    assert "evidex: note: " in ran.err
    assert "2 images are in the split 'trian', which is not used" in ran.err
    assert "it has train, trian, val" in evidex(*words, "tran").complaint
    assert "note" not in evidex(*words, "trian").err  # asked for by its name
