"""The benchmark of Section IV names every method that trains, and runs from one command on data in RSICD's layout."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import method_table
import pytest
import typer
from typer.testing import CliRunner

from evidex.cli.benchmark import command
from evidex.evaluation.report.plan import load_plan, training_config
from evidex.methods.registry import METHODS, ON_CLIP_ALONE, OURS, TRAINABLE
from evidex.scenes import render_archive

ROOT = Path(__file__).parents[2]
PLAN = ROOT / "configs" / "benchmark_rsicd.toml"
app = typer.Typer()
app.command()(command)

TINY = [
    "seeds=[0]", "jobs=1", "ablation.row=[]", "sensitivity={}", "refinement.generic=false", "refinement.ratios=[0.0]",
    "training.encoder.kind=compact", "training.encoder.image_size=32", "training.encoder.dim=16",
    "training.train.epochs=1", "training.train.batch_size=10", "training.train.bf16=false",
    "training.mentors.image=compact", "training.mentors.text=compact",
]  # fmt: skip


@pytest.fixture
def rsicd(tmp_path: Path) -> Path:
    """Rendered scenes as RSICD's authors publish theirs: dataset_rsicd.json, a folder of images, lists of classes."""
    render_archive(tmp_path / "rendered", count=62, seed=3, size=32)
    records = json.loads((tmp_path / "rendered" / "captions.json").read_text())["images"]
    folder = tmp_path / "rsicd"
    (folder / "RSICD_images").mkdir(parents=True)
    (folder / "txtclasses_rsicd").mkdir()
    images: list[dict[str, Any]] = []
    for split, count in (("train", 10), ("val", 10)):
        for record in [record for record in records if record["split"] == split][:count]:
            name = f"{len(images):05d}{Path(record['filename']).suffix}"
            found = next(path for path in (tmp_path / "rendered").rglob(record["filename"]))
            (folder / "RSICD_images" / name).write_bytes(found.read_bytes())
            with (folder / "txtclasses_rsicd" / f"{re.sub('[^a-z]', '', record['label'])}.txt").open("a") as stream:
                stream.write(f"{name}\n")
            sentences = [{"raw": caption} for caption in record["captions"]]
            images.append({"filename": name, "split": split, "imgid": len(images), "sentences": sentences})
    (folder / "dataset_rsicd.json").write_text(json.dumps({"images": images, "dataset": "rsicd"}))
    return folder


@pytest.mark.parametrize(
    ("file", "left_out"),
    [("benchmark_rsicd.toml", {"cup", "galr"}), ("benchmark_rsicd_clip.toml", {"amfmn", "kamcl", "galr"})],
)
def test_every_method_that_trains_is_a_row_under_its_name(
    file: str, left_out: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CUP needs CLIP's transformers, AMFMN and KAMCL an image pyramid, GaLR objects that RSICD comes without."""
    monkeypatch.chdir(ROOT)
    plan = load_plan(ROOT / "configs" / file)
    methods = {model.name: training_config(plan, model).method_name for model in plan.model if not model.path}
    published = {model.name for model in plan.model if model.path}
    assert published == ({"CLIP", "RemoteCLIP"} if "clip" in file else set())
    assert set(methods.values()) == {*OURS, *TRAINABLE} - left_out
    assert all(name == METHODS[method].title for name, method in methods.items() if method in METHODS)
    assert set(ON_CLIP_ALONE) == {"cup"}
    assert len(plan.seeds) >= 3


def test_the_printed_loss_stands_beside_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plan = load_plan(PLAN)
    printed = next(training_config(plan, model).loss for model in plan.model if model.name == "ELC0 as printed")
    assert (printed.ucl_target, printed.b2, printed.b3, printed.ucl_start_epoch) == ("vacuity", 1.0, 1.0, 0.0)
    ours = training_config(plan, plan.our_model()).loss
    assert (ours.ucl_target, ours.b2, ours.b3) == ("belief", 0.3, 0.3)


@pytest.mark.slow
def test_one_command_makes_the_report(rsicd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("EVIDEX_CACHE", str(tmp_path / "cache"))
    words = [word for change in [*TINY, f"dataset.path={rsicd}"] for word in ("--set", change)]
    done = CliRunner().invoke(app, [str(PLAN), "--output", str(tmp_path / "out"), *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader((tmp_path / "out" / "tables" / "comparison.csv").open()))
    assert {row["model"] for row in rows} == {model.name for model in load_plan(PLAN).model} | {"ELC"}
    scores = list(csv.DictReader((tmp_path / "out" / "tables" / "uncertainty.csv").open()))
    assert any(row["score"] == "own" for row in scores if row["model"] == "PAU")
    assert all(row["removed_class_auroc_mean"] for row in scores if row["score"] == "vacuity")
    content = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "UCL by belief, b2 = 0.3, b3 = 0.3" in content
    found = method_table.results_of(tmp_path / "out" / "tables" / "results.json", "RSICD")
    table = method_table.method_rows(found, "RSICD")
    assert [row["method"] for row in table] == [row["model"] for row in rows if row["condition"] == "clean"]
    assert all(row["clean_rsum"] and row["noisy_rsum"] and row["paper_rsum"] for row in table)
