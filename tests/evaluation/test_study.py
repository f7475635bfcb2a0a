"""A study as its users run it: runs, a committee of them, then a pupil that the committee teaches."""

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from evidex.data.datasets import load_dataset
from evidex.encoders.model import Model
from evidex.evaluation import deferral
from evidex.evaluation.deferral import refine_and_rank
from evidex.evaluation.features import Encoded, encode_images, encode_texts
from evidex.evaluation.result import Deferral
from evidex.evaluation.study import measure
from evidex.evaluation.study.__main__ import main
from evidex.evaluation.study.plan import load_study
from evidex.evaluation.study.runs import expand
from evidex.scenes import render_archive
from tests.evaluation.colours import ColourModel, write_colours

ROOT = Path(__file__).parents[2]
STUDIES = sorted((ROOT / "configs" / "study").glob("*.toml"))

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
PUPIL = """
[[run]]
name = "pupil"
seeds = [0]
set = [
  "loss.relation=true",
  "mentors.image={folder}/runs/both-s0/model.safetensors", "mentors.text={{runs}}/both-s0/model.safetensors",
]
"""
SECOND = """
base = "{folder}/base.toml"
dataset = "elsewhere"
common = ["mentors.image={{runs}}/both-s0/model.safetensors", "mentors.text={{runs}}/both-s0/model.safetensors"]
[[run]]
name = "pupil"
set = ["loss.relation=true"]
"""


COMMAND = [sys.executable, "-m", "evidex.evaluation.study"]


def _study(folder: Path, text: str, *more: str, outcome: int = 0) -> dict[str, dict[str, Any]]:
    (folder / "study.toml").write_text(text.format(folder=folder))
    study, runs = (str(path) for path in (folder / "study.toml", folder / "runs"))
    command = [*COMMAND, study, "--output", runs, "--dataset", str(folder / "archive"), *more]
    environment = {**os.environ, "EVIDEX_CACHE": str(folder / "cache")}
    assert subprocess.run(command, env=environment, timeout=300).returncode == outcome
    lines = (folder / "runs" / "results.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert len({line["name"] for line in found}) == len(found)
    return {line["name"]: line for line in found}


def _refused(folder: Path, text: str, *words: str) -> str:
    """What the command says of a study that it does not begin."""
    (folder / "study.toml").write_text(text.format(folder=folder))
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        assert main([str(folder / "study.toml"), "--output", str(folder / "runs"), *words]) == 2
    assert not (folder / "runs").exists()
    assert said.getvalue().startswith("evidex: error: ")
    assert said.getvalue().count("\n") == 1
    return said.getvalue()


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("", [], "no run"),
        ("epochs = 3", [], "unknown key 'epochs'"),
        ("seeds = [", [], "not readable as TOML"),
        ("[[run]]\nname = 'a'", [], "'a' has no base"),
        (FIRST, ["--only", "nobody"], "no such run"),
        (FIRST, ["--jobs", "0"], "give 1 or more"),
        (FIRST, ["train.epohcs=3"], "unknown key 'epohcs'"),
        (FIRST.replace("elsewhere", ""), [], "no dataset"),
        (FIRST.replace('"unwanted"', '"plain"'), [], "two runs of the study are 'plain-s0'"),
        (FIRST.replace('measure = "all"', 'measure = "none"'), [], "measure = 'none'; choose one of"),
        (
            'base = "{folder}/base.toml"\ndataset = "x"\n[[run]]\nname = "a"\n'
            'set = ["mentors.text={{runs}}/b-s0/model.safetensors"]\n'
            '[[committee]]\nname = "b"\nmembers = ["a-s{{seed}}"]',
            [],
            "needs itself",
        ),
    ],
)
def test_what_is_no_study_is_refused_in_one_line(tmp_path: Path, text: str, words: list[str], said: str) -> None:
    (tmp_path / "base.toml").write_text(BASE)
    assert said in _refused(tmp_path, text, *words)


@pytest.mark.parametrize("plan", STUDIES, ids=lambda path: path.stem)
def test_every_study_of_the_project_can_be_begun(plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    runs = expand(load_study(plan), tmp_path, "data")
    members = {member for run in runs for member in run.members}
    elsewhere = {"mentors-s0"} if plan.stem == "large" else set()
    assert members - {run.key for run in runs} <= elsewhere


def test_the_study_of_all_sources_teaches_by_the_committee_of_its_large_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    runs = {run.key: run for run in expand(load_study(ROOT / "configs/study/sources.toml"), tmp_path, "data/rsicd")}
    assert runs["compact-s0"].needs == ("team-s0",)
    assert set(runs["team-s0"].needs) == {"labels-s3", "labels-s4", "captions-s5"}
    starts = {run.config.encoder.seed for key, run in runs.items() if key in runs["soup-s0"].members and run.config}
    assert starts == {0}  # weights of other starts cannot be averaged


def test_a_run_waits_for_the_runs_whose_models_it_names(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "study.toml").write_text(FIRST.format(folder=tmp_path) + PUPIL.format(folder=tmp_path))
    runs = {run.key: run for run in expand(load_study(tmp_path / "study.toml"), tmp_path / "runs", "data")}
    assert runs["both-s0"].needs == ("plain-s0", "varied-s0")
    assert runs["pupil-s0"].needs == ("both-s0",)
    assert runs["plain-s1"].needs == ()
    elsewhere = expand(load_study(tmp_path / "study.toml"), tmp_path / "moved", "other")
    assert {run.key: run.digest for run in elsewhere} == {key: run.digest for key, run in runs.items()}
    assert runs["plain-s0"].digest != runs["plain-s1"].digest
    changed = expand(load_study(tmp_path / "study.toml"), tmp_path / "runs", "data", ["loss.b2=3.0"])
    assert changed[0].digest != runs["plain-s0"].digest


def test_refinement_is_measured_by_each_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, model = load_dataset(write_colours(tmp_path), "val"), ColourModel()
    encoded = Encoded(encode_images(model, dataset), encode_texts(model, dataset.captions), dataset.image_of_caption)
    asked: list[str] = []

    def watched(*given: Any, **named: Any) -> tuple[Deferral, ...]:
        asked.append(given[3].by)
        return refine_and_rank(*given, **named)

    monkeypatch.setattr(deferral, "refine_and_rank", watched)
    found = measure._refined(cast(Model, model), dataset, encoded)
    assert asked == ["vacuity", "belief"] * 2
    assert set(found) == {"rs_tta", "rs_tta_by_belief", "generic_tta", "generic_tta_by_belief"}
    assert {table["0.0"] for table in found.values()} == {found["rs_tta"]["0.0"]}


ALONE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import evidex.evaluation.study.measure
from evidex.evaluation.study.__main__ import main
sys.exit(main(["nothing.toml"]))
"""


@pytest.mark.slow
def test_a_study_needs_little_but_torch() -> None:
    absent = {"lance", "pyarrow", "numba", "llvmlite", "rasterio", "typer", "rich", "matplotlib", "fastapi", "scipy"}
    script = ALONE.format(absent=absent)
    done = subprocess.run([sys.executable], input=script, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr[-2000:]


@pytest.mark.slow
def test_runs_then_committees_then_a_second_generation(tmp_path: Path) -> None:
    render_archive(tmp_path / "archive", count=124, seed=3, size=32)
    (tmp_path / "base.toml").write_text(BASE)
    only = ("--only", "plain", "varied-s0", "broken", "both")
    first = _study(tmp_path, FIRST, *only, "--jobs", "2", outcome=1)
    assert set(first) == {"plain-s0", "plain-s1", "varied-s0", "broken-s0", "both-s0"}
    assert list(first)[-1] == "both-s0"
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

    assert _study(tmp_path, SECOND, "--until", "-1") == again
    pupil = _study(tmp_path, SECOND)["pupil-s0"]
    assert pupil["last"]["loss"]["relation"] > 0
    assert "error" not in pupil

    (tmp_path / "other.toml").write_text(BASE.replace("1e-3", "2e-3"))
    before = (tmp_path / "runs" / "results.jsonl").read_bytes()
    _study(tmp_path, FIRST.replace("base.toml", "other.toml"), *only, outcome=2)  # the same names, other runs
    assert (tmp_path / "runs" / "results.jsonl").read_bytes() == before
