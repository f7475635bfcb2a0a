"""A study as its users run it: runs, a committee of them, then a pupil that the committee teaches."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evidex.data.scenes import render_archive

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]

BASE = """
[encoder]
image_size = 32
dim = 16
[loss]
relation = false
kl = false
ucl = false
[train]
epochs = 1
batch_size = 16
learning_rate = 1e-3
"""
FIRST = """
base = "{folder}/base.toml"
dataset = "elsewhere"
seeds = [0, 1]
[[run]]
name = "plain"
[[run]]
name = "varied"
seeds = [0]
set = ["data.degrade=0.5", "train.whiten=0.1"]
[[run]]
name = "broken"
seeds = [0]
set = ["train.batch_size=4000"]
[[run]]
name = "unwanted"
[[committee]]
name = "both"
seeds = [0]
members = ["plain-s{{seed}}", "varied-s{{seed}}"]
measure = "all"
"""
SECOND = """
base = "{folder}/base.toml"
dataset = "elsewhere"
common = ["mentors.image={{runs}}/both-s0/model.safetensors", "mentors.text={{runs}}/both-s0/model.safetensors"]
[[run]]
name = "pupil"
set = ["loss.relation=true"]
"""


def _study(folder: Path, text: str, *more: str, outcome: int = 0) -> dict[str, dict[str, Any]]:
    (folder / "study.toml").write_text(text.format(folder=folder))
    script, study, runs = (
        str(path) for path in (ROOT / "scripts" / "study.py", folder / "study.toml", folder / "runs")
    )
    command = [sys.executable, script, study, "--output", runs, "--dataset", str(folder / "archive"), *more]
    environment = {**os.environ, "EVIDEX_CACHE": str(folder / "cache")}
    assert subprocess.run(command, env=environment, timeout=300).returncode == outcome
    lines = (folder / "runs" / "results.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert len({line["name"] for line in found}) == len(found)
    return {line["name"]: line for line in found}


def test_what_is_no_study_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "study.toml").write_text(FIRST.format(folder=tmp_path))
    for words, said in (
        (["nothing.toml"], "no readable study"),
        ([str(tmp_path / "base.toml")], "it lacks 'base'"),
        ([str(tmp_path / "study.toml"), "--only", "nobody"], "no such run"),
        ([str(tmp_path / "study.toml"), "--jobs", "0"], "give 1 or more"),
    ):
        done = subprocess.run(
            [sys.executable, str(ROOT / "scripts" / "study.py"), *words, "--output", str(tmp_path / "runs")],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 2
        assert said in done.stderr
        assert not (tmp_path / "runs").exists()


def test_runs_then_committees_then_a_second_generation(tmp_path: Path) -> None:
    render_archive(tmp_path / "archive", count=124, seed=3, size=32)
    (tmp_path / "base.toml").write_text(BASE)
    only = ("--only", "plain", "varied-s0", "broken", "both")
    first = _study(tmp_path, FIRST, *only, outcome=1)
    assert set(first) == {"plain-s0", "plain-s1", "varied-s0", "broken-s0", "both-s0"}
    assert "batch_size" in first["broken-s0"]["error"]
    assert first["plain-s0"]["last"]["loss"] != first["plain-s1"]["last"]["loss"]
    for name in ("plain-s0", "varied-s0"):
        assert first[name]["clean"]["rsum"] == pytest.approx(max(first[name]["curve"]), abs=0.01)
    both = first["both-s0"]
    assert both["members"] == ["plain-s0", "varied-s0"]
    assert both["clean"]["rs_tta"]["0.0"] == pytest.approx(both["clean"]["recall"]["rsum"], abs=0.01)
    assert set(both["noisy"]["generic_tta"]) == {"0.0", "0.1"}

    again = _study(tmp_path, FIRST, "train.batch_size=16", *only)
    assert "error" not in again["broken-s0"]  # what failed is tried again, what is there is not repeated
    assert {name: line for name, line in again.items() if name != "broken-s0"} == {
        name: line for name, line in first.items() if name != "broken-s0"
    }

    pupil = _study(tmp_path, SECOND)["pupil-s0"]
    assert pupil["last"]["loss"]["relation"] > 0
    assert "error" not in pupil

    (tmp_path / "other.toml").write_text(BASE.replace("1e-3", "2e-3"))
    before = (tmp_path / "runs" / "results.jsonl").read_bytes()
    _study(tmp_path, FIRST.replace("base.toml", "other.toml"), *only, outcome=2)  # the same names, other runs
    assert (tmp_path / "runs" / "results.jsonl").read_bytes() == before
