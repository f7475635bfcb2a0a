"""The command as a user meets it: help at once, one line for what is wrong, a whole run from nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evidex.encoders.model import Model
from evidex.scenes import render_archive
from tests.cli.running import runner

EVIDEX = Path(sys.executable).parent / "evidex"
VERBS = ("sample", "train", "evaluate", "degrade", "index", "search", "calibrate", "serve", "benchmark", "export")


def _run(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([EVIDEX, *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=600)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("e2e") / "archive"
    render_archive(folder, count=124, seed=1, size=32)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from evidex.config import EncoderConfig
    from evidex.encoders.towers import new_compact

    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    Model(new_compact(EncoderConfig(image_size=32, dim=16), ["a river ."]), 0.1).save(path)
    return path


def test_help_names_every_verb_and_loads_nothing_heavy() -> None:
    shown = _run("--help")
    assert shown.returncode == 0
    assert all(verb in shown.stdout for verb in VERBS)
    heavy = ("torch", "numpy", "rasterio", "matplotlib", "lance", "fastapi")
    code = f"import sys, evidex.cli.app; print([m for m in {heavy} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_the_package_runs_as_the_command_does() -> None:
    shown = subprocess.run([sys.executable, "-m", "evidex", "--version"], capture_output=True, text=True, timeout=60)
    assert (shown.returncode, shown.stdout) == (0, _run("--version").stdout)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str) -> None:
    shown = _run(verb, "--help")
    assert shown.returncode == 0
    assert "Usage: evidex" in shown.stdout
    assert len(shown.stdout) > 400


def _complaint(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("evidex: error: ")
    return lines[0]


def test_wrong_input_is_one_line_and_exit_code_two(
    archive: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "does not exist" in _complaint(_run("train", tmp_path / "no.toml"))
    evidex = runner(monkeypatch, capsys)  # the others in this process: each of its own would load torch again
    said = evidex("evaluate", "--model", model, "--dataset", tmp_path / "no", "--split", "val").complaint
    assert "does not exist" in said
    said = evidex("evaluate", "--model", model, "--dataset", archive, "--split", "dev").complaint
    assert "no split 'dev'" in said
    assert "is no model" in evidex("evaluate", "--model", "nothing", "--dataset", archive, "--split", "val").complaint

    broken = tmp_path / "field"
    broken.mkdir()
    (broken / "captions.json").write_text(json.dumps({"images": [{"filename": "a.jpg", "split": "val"}]}))
    said = evidex("evaluate", "--model", model, "--dataset", broken, "--split", "val").complaint
    assert "neither 'captions' nor 'sentences'" in said

    cut = tmp_path / "tar"
    cut.mkdir()
    entry = {"filename": "a.jpg", "split": "val", "captions": ["a river ."]}
    (cut / "captions.json").write_text(json.dumps({"images": [entry]}))
    (cut / "images.tar").write_bytes(b"\0" * 700)
    assert "images.tar" in evidex("evaluate", "--model", model, "--dataset", cut, "--split", "val").complaint


@pytest.mark.slow
def test_train_and_evaluate_from_the_command_line(archive: Path, tmp_path: Path) -> None:
    config = tmp_path / "tiny.toml"
    config.write_text(
        '[encoder]\nkind = "compact"\nimage_size = 32\ndim = 16\n[loss]\nrelation = false\nucl = false\n'
        "[train]\nepochs = 2\nbatch_size = 16\nlearning_rate = 1e-3\n"
    )
    run = tmp_path / "run"
    trained = _run("train", config, "--set", f"data.path={archive}", "--output", run, "--json")
    assert trained.returncode == 0, trained.stderr
    result = json.loads(trained.stdout)
    assert Path(result["model"]).is_file()
    assert Path(result["curve"]).read_bytes().startswith(b"\x89PNG")

    target = tmp_path / "evaluation.json"
    measured = _run("evaluate", "--model", run, "--dataset", archive, "--split", "val", "--noisy", "--json", target)
    assert measured.returncode == 0, measured.stderr
    document = json.loads(target.read_text())
    assert 0 <= document["recall"]["rsum"] <= 600
    assert document["clean_recall"]["rsum"] == pytest.approx(result["best"]["val_rsum"])


def test_a_failed_index_leaves_no_gallery(tmp_path: Path) -> None:
    assert "'nowhere' does not exist" in _complaint(
        _run("index", "nowhere", "--gallery", tmp_path / "gallery", cwd=tmp_path)
    )
    assert not (tmp_path / "gallery").exists()
