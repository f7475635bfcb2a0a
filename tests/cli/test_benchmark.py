from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from evidex.cli.benchmark import command
from evidex.errors import ConfigError

app = typer.Typer()
app.command()(command)


def test_a_mistake_in_the_plan_is_told_before_anything_is_written(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text("[[model]]\nname = 'ELC0'\nobjective = 'elc'\n")
    result = CliRunner().invoke(app, [str(plan), "--output", str(tmp_path / "out")])
    assert isinstance(result.exception, ConfigError)
    assert "objective" in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_help_needs_no_heavy_package() -> None:
    code = (
        "import sys, evidex.cli.benchmark\n"
        "heavy = {'torch', 'matplotlib', 'transformers', 'numba', 'rich', 'lance'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_the_outcome_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVIDEX_CACHE", str(tmp_path / "cache"))
    plan = tmp_path / "plan.toml"
    plan.write_text(
        "seeds = [0]\njobs = 1\nabsent = false\n[dataset]\nscenes = 93\nscene_size = 32\n"
        "[refinement]\ngeneric = false\n[training.encoder]\nimage_size = 32\ndim = 8\n"
        "[training.train]\nepochs = 1\nbatch_size = 16\n"
        "[[model]]\nname = 'ELC0'\n"
    )
    result = CliRunner().invoke(app, [str(plan), "--output", str(tmp_path / "out"), "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["jobs"], told["trained"], told["measured"]) == (1, 1, 2)
    assert Path(told["report"]).is_file()
    assert Path(told["results"]).is_file()
