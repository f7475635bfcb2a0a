"""evidex models, and --model large where models are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

import evidex
from tests.cli.running import Runner, runner
from tests.encoders.tiny_large import Tiny, make_tiny, tiny_model


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return runner(monkeypatch, capsys)


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    found = make_tiny(tmp_path, monkeypatch)
    tiny_model(seed=3).save(found.packed.parent / "compact.safetensors")
    return found


def test_the_list_says_what_is_here_and_how_to_get_the_rest(
    run: Runner, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = run("models").out
    compact, large = (next(line for line in told.splitlines() if line.startswith(n)) for n in ("compact", "large"))
    assert compact.split()[1] == "yes"
    assert large.split()[1] == "no"
    assert "181.2 / 179.5" in large
    assert "large: --model large fetches it" in told
    found = json.loads(run("models", "--json").out)
    assert [model["name"] for model in found] == ["compact", "large"]
    assert found[1]["fetched_bytes"] == sum(path.stat().st_size for path in tiny.published.iterdir())


def test_a_build_without_a_model_says_so(run: Runner, tiny: Tiny) -> None:
    tiny.packed.unlink()
    assert "large: comes with a later build" in run("models").out
    refused = run("index", tiny.published, "--gallery", tiny.cache, "--model", "large").complaint
    assert "'large' does not come with this build" in refused


@pytest.mark.slow
def test_a_gallery_made_with_the_large_model_is_searched_with_it(
    run: Runner, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures, gallery = tmp_path / "pictures", tmp_path / "gallery"
    pictures.mkdir()
    for number, colour in enumerate(("red", "green", "blue")):
        Image.new("RGB", (40, 40), colour).save(pictures / f"{number}.png")
    (tmp_path / "large").mkdir()  # a name is a name, whatever lies here
    monkeypatch.chdir(tmp_path)
    assert run("index", pictures, "--gallery", gallery, "--model", "large", "--no-calibrate").code == 0
    assert json.loads((gallery / "gallery.json").read_text())["model"] == "large"
    tiny.take_away()
    assert len(json.loads(run("search", "a river", "--gallery", gallery, "--copies", "--json").out)["hits"]) == 3
    refused = run("search", "a river", "--gallery", gallery, "--model", "compact").complaint
    assert "was made with another model" in refused


def test_a_gallery_made_in_python_notes_the_name_too(tiny: Tiny, tmp_path: Path) -> None:
    del tiny
    gallery = evidex.Gallery.create(tmp_path / "gallery", evidex.load_model("large"))
    assert gallery.info.model == "large"
    assert not (tmp_path / "gallery" / "model.safetensors").exists()
