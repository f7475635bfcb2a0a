from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import typer
from PIL import Image
from typer.testing import CliRunner

from evidex.cli.degrade import command
from evidex.errors import InputError

app = typer.Typer()
app.command()(command)


def folder(path: Path) -> Path:
    path.mkdir()
    Image.fromarray(np.full((8, 8, 3), 90, dtype=np.uint8)).save(path / "scene.png")
    (path / "readme.txt").write_text("hello")
    return path


def test_the_outcome_is_told_in_json(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    target = tmp_path / "target"
    result = CliRunner().invoke(app, [str(source), str(target), "--severity", "2", "--seed", "3", "--json"])
    assert result.exit_code == 0, result.output
    outcome = json.loads(result.stdout)
    assert outcome["degraded"] == 1
    assert outcome["skipped"][0]["name"] == "readme.txt"
    manifest = json.loads(Path(outcome["manifest"]).read_text())
    assert manifest["severity"] == 2
    assert manifest["files"][0]["seed"][0] == 3


def test_the_outcome_is_told_in_words(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    result = CliRunner().invoke(app, [str(source), str(tmp_path / "target")])
    assert result.exit_code == 0, result.output
    assert "images degraded: 1, files skipped: 1" in result.output
    assert "skipped readme.txt" in result.output


def test_an_existing_target_is_an_error(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    result = CliRunner().invoke(app, [str(source), str(source)])
    assert isinstance(result.exception, InputError)
