"""A plain install: searching, indexing and serving know nothing of torch, and what needs it says so in one line.

``make light`` runs this, and the tests of search, index and server, in an environment that has no torch. Here, in one
that has, it is kept from being imported.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evidex.scenes import render_archive

HEAVY = ("torch", "transformers", "tokenizers", "huggingface_hub", "matplotlib", "numba", "llvmlite")
HIDE = f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HEAVY!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {HEAVY!r} else real(name, package)
"""
COMMAND = f"{HIDE}\nfrom evidex.cli.app import main\nmain()"


def _evidex(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *map(str, words)], capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("light")
    render_archive(folder / "scenes", count=31, seed=1, size=48)
    made = _evidex("index", folder / "scenes", "--gallery", folder / "gallery", "--workers", 1, "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["added"] == 31
    return folder / "gallery"


def test_a_gallery_is_searched_verified_and_calibrated(gallery: Path) -> None:
    found = _evidex("search", "many planes at an airport", "--gallery", gallery, "--json")
    assert found.returncode == 0, found.stderr
    answer = json.loads(found.stdout)
    assert len(answer["hits"]) == 10
    example = _evidex("search", "--image", answer["hits"][0]["path"], "--gallery", gallery, "--json")
    assert json.loads(example.stdout)["hits"][0]["path"] == answer["hits"][0]["path"]
    assert _evidex("verify", "--gallery", gallery).returncode == 0
    looked = _evidex("locate", "a forest", answer["hits"][0]["id"], "--gallery", gallery, "--json")
    assert json.loads(looked.stdout)["windows"] >= 1, looked.stderr


def test_a_search_for_words_loads_nothing_that_it_does_not_use(gallery: Path) -> None:
    code = (
        "import atexit, sys; from evidex.cli.app import main\n"
        "unused = ('torch', 'numba', 'rich', 'fastapi', 'rasterio', 'PIL', 'matplotlib', 'scipy')\n"
        "atexit.register(lambda: print([name for name in unused if name in sys.modules], file=sys.stderr))\n"
        "main()"
    )
    words = ["search", "many planes at an airport", "--gallery", str(gallery)]
    found = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=300)
    assert (found.returncode, found.stderr.strip()) == (0, "[]")


@pytest.mark.parametrize(
    "words",
    [
        ("train", "{config}"),
        ("export", "{clip}", "--out", "{out}"),
        ("export", "compact", "--out", "{out}"),
        ("evaluate", "--dataset", "{scenes}", "--split", "train", "--model", "{clip}"),
    ],
)
def test_what_needs_torch_says_so_in_one_line(gallery: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    scenes = gallery.parent / "scenes"
    (tmp_path / "clip").mkdir()
    (tmp_path / "clip" / "config.json").write_text('{"model_type": "clip"}')
    (tmp_path / "run.toml").write_text(f'output = "{tmp_path}/run"\n[data]\npath = "{scenes}"\n')
    places = {"config": tmp_path / "run.toml", "clip": tmp_path / "clip", "out": tmp_path / "out", "scenes": scenes}
    done = _evidex(*(word.format(**places) for word in words))
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("evidex: error: ")
    assert "needs torch, which is not installed; pip install 'evidex[train]'" in done.stderr


def test_the_version_says_what_models_run_on() -> None:
    shown = _evidex("--version", "--verbose")
    assert shown.returncode == 0, shown.stderr
    assert "models run on ONNX Runtime" in shown.stdout
    assert "threads" in shown.stdout
    assert "training: not installed (evidex[train])" in shown.stdout
    refused = _evidex("--verbose")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
