"""A whole benchmark, small: two methods, one seed, one epoch on rendered scenes of 32 pixels."""

from __future__ import annotations

import csv
import json
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidex.data.datasets import load_dataset
from evidex.encoders.model import load_model
from evidex.errors import ConfigError, DataError, ModelError
from evidex.evaluation.noisy import NoisySplit
from evidex.evaluation.query_uncertainty import SCORE_NAMES
from evidex.evaluation.report import FinishedReport, load_plan, report_figures, run_benchmark
from evidex.evaluation.report.results import Number
from evidex.methods.protocol import Implementation
from evidex.retrieval.certainty.learned_score import LEARNED
from tests.encoders.clip.tiny_clip import write_vocabulary
from tests.scripts.test_paper_weights import open_clip_file

ANCHORS = {
    "how-to-read", "table-1", "table-2", "table-3", "table-5", "uncertainty-table", "lexicon",
    "figure-2", "figure-3", "figure-4", "figure-5", "figure-6", "figure-7", "figure-8", "figure-9", "figure-11",
    "risk-coverage", "settings",
}  # fmt: skip
PLAN = """
title = "A <small> benchmark & more"
seeds = [0]
jobs = 1
[dataset]
scenes = 93
scene_size = 32
[training.encoder]
image_size = 32
dim = 16
[training.data]
augment = false
[training.train]
epochs = 1
batch_size = 16
learning_rate = 1e-3
[start]
training.loss.objective = "infonce"
[[model]]
name = "InfoNCE"
training.loss.objective = "infonce"
[[model]]
name = "ELC0"
[[ablation.row]]
name = "EDL"
training.loss = { uncertainty_weighting = false, relation = false, ucl = false, kl = false }
[sensitivity]
b2 = [4.0]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("benchmark")
    (folder / "plan.toml").write_text(PLAN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVIDEX_CACHE", str(folder / "cache"))
        yield folder


@pytest.fixture(scope="module")
def finished(folder: Path) -> FinishedReport:
    return run_benchmark(load_plan(folder / "plan.toml"), folder / "out")


class Page(HTMLParser):
    """Collects what a page refers to and whether its tags close."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.addresses: list[str] = []
        self.pictures: list[str] = []
        self.open: list[str] = []
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids |= {values["id"] or ""} if "id" in values else set()
        self.addresses += [values[name] or "" for name in ("src", "href", "srcset", "action") if name in values]
        if tag == "img":
            self.pictures.append(values["alt"] or "")
        if tag not in ("img", "meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


class _Drawn:
    """Notes what the figures are drawn of."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.panels: list[str] = []
        self.beside: list[list[str]] = []
        self.steps: list[tuple[Any, Any]] = []
        notes: dict[str, Callable[..., None]] = {
            "uncertainty_histograms": lambda panels: self.panels.extend(panel.title for panel in panels),
            "write_figures": lambda *_, beside: self.beside.append([each.name for each in beside]),
            "degradation_steps": lambda *rows_and_captions: self.steps.append(rows_and_captions),
        }
        for name, note in notes.items():
            monkeypatch.setattr(report_figures, name, _noted(note, getattr(report_figures, name)))


def _noted(note: Callable[..., None], draw: Callable[..., Any]) -> Callable[..., Any]:
    def drawn(*given: Any, **named: Any) -> Any:
        note(*given, **named)
        return draw(*given, **named)

    return drawn


@pytest.mark.slow
def test_the_page_holds_everything_and_needs_nothing_else(finished: FinishedReport) -> None:
    content = finished.report.read_text(encoding="utf-8")
    page = Page(content)
    assert page.open == []
    assert page.ids >= ANCHORS
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in page.addresses)
    assert {address[1:] for address in page.addresses if address.startswith("#")} <= page.ids
    assert not re.search(r"https?://|url\(|@import|<script|<link", content)
    assert len(page.pictures) == 14
    assert all(page.pictures)
    assert "A &lt;small&gt; benchmark &amp; more" in content
    assert "prefers-color-scheme: dark" in content
    assert 'name="viewport"' in content
    assert str(finished.output) not in content
    assert not re.search(r"\bnan\b|None", re.sub(r"base64,[^\"]*|<pre>.*?</pre>", "", content, flags=re.S))


@pytest.mark.slow
def test_the_numbers_are_those_that_were_measured(finished: FinishedReport) -> None:
    """Against a fresh evaluation of the stored model by the protocol itself."""
    from evidex.evaluation.deferral import Refinements
    from evidex.evaluation.protocol import evaluate

    rows = list(csv.DictReader((finished.output / "tables" / "comparison.csv").open()))
    assert [(row["condition"], row["model"]) for row in rows] == [
        (condition, name) for condition in ("clean", "noisy") for name in ("InfoNCE", "ELC0", "ELC")
    ]
    (results,) = json.loads((finished.output / "tables" / "results.json").read_text())["datasets"].values()
    labels = {row["model"]: row["job"] for row in csv.DictReader((finished.output / "tables" / "seeds.csv").open())}
    model = load_model(finished.output / "models" / labels["ELC0, seed 0"] / "model.safetensors")
    dataset = load_dataset(next(finished.output.glob("archive-*")), "test")
    fresh = evaluate(model, dataset, noisy_seed=0, refinements=Refinements((0.1,)))
    assert fresh.clean_recall is not None
    by_row = {(row["condition"], row["model"]): float(row["rsum_mean"]) for row in rows}
    assert by_row["clean", "ELC0"] == pytest.approx(fresh.clean_recall.rsum, abs=1e-3)
    assert by_row["noisy", "ELC0"] == pytest.approx(fresh.recall.rsum, abs=1e-3)
    assert by_row["noisy", "ELC"] == pytest.approx(fresh.deferral[0].recall.rsum, abs=1e-3)
    assert {row["score"] for row in results["uncertainty"]} == {*SCORE_NAMES, LEARNED}
    assert [point["at"] for point in results["deferral"]["generic"]] == [0.0, 0.05, 0.1, 0.15, 0.2]
    assert f"{by_row['noisy', 'ELC']:.2f}" in finished.report.read_text(encoding="utf-8")
    ablation = list(csv.DictReader((finished.output / "tables" / "ablation.csv").open()))
    assert [(row["model"], row["UW"], row["KL"]) for row in ablation[:2]] == [
        ("EDL", "no", "no"),
        ("All", "yes", "yes"),
    ]


@pytest.mark.slow
def test_nothing_that_is_finished_is_done_again(folder: Path, finished: FinishedReport) -> None:
    first = finished.report.read_bytes()
    assert (finished.trained, finished.jobs) == (5, 4)  # and the common start
    again = run_benchmark(load_plan(folder / "plan.toml"), folder / "out")
    assert (again.trained, again.measured) == (0, 0)
    assert again.report.read_bytes() == first
    measured = sorted((folder / "out" / "measurements").rglob("noisy-*.json"))
    model = next((folder / "out" / "models").glob("*/trained.json"))
    measured[0].unlink()
    again = run_benchmark(load_plan(folder / "plan.toml"), folder / "out")
    assert (again.trained, again.measured) == (0, 1)
    assert again.report.read_bytes() == first
    assert model.is_file()
    (folder / "wider.toml").write_text(PLAN.replace("b2 = [4.0]", "b2 = [4.0, 9.0]"))
    wider = run_benchmark(load_plan(folder / "wider.toml"), folder / "out")
    assert (wider.trained, wider.measured, wider.jobs) == (1, 1, 5)


@pytest.mark.slow
def test_a_report_needs_measurements_and_no_models(
    folder: Path, finished: FinishedReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models may have stayed where they were trained."""
    out = tmp_path / "out"
    shutil.copytree(finished.output, out)
    plan = load_plan(folder / "plan.toml")
    whole = run_benchmark(plan, out).report.read_bytes()
    models = sorted((out / "models").glob("*/model.safetensors"))
    assert models
    for path in (*models, out / "report.html"):
        path.unlink()
    for made in ("tables", "figures"):
        shutil.rmtree(out / made)
    again = run_benchmark(plan, out)
    assert (again.trained, again.measured) == (0, 0)
    assert again.report.read_bytes() == whole
    monkeypatch.setattr(Implementation, "inner_product", False)  # a rival with a network between its rows
    with pytest.raises(ModelError, match=r"'InfoNCE, seed 0' compares.*is not there; bring that file") as told:
        run_benchmark(plan, out)
    assert "\n" not in str(told.value)
    for path in (out / "measurements").rglob("*.safetensors"):
        path.unlink()
    with pytest.raises(DataError, match=r"'clean-\w+\.json' beside it to measure again"):
        run_benchmark(plan, out)


@pytest.mark.slow
def test_a_killed_benchmark_goes_on_and_ends_alike(folder: Path, finished: FinishedReport, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from evidex.evaluation.report import load_plan, run_benchmark\n"
        "if __name__ == '__main__': run_benchmark(load_plan(Path(sys.argv[1])), Path(sys.argv[2]))"
    )
    (tmp_path / "run.py").write_text(script)
    (tmp_path / "plan.toml").write_text(PLAN.replace("jobs = 1", "jobs = 2"))
    out = tmp_path / "out"
    running = subprocess.Popen([sys.executable, str(tmp_path / "run.py"), str(tmp_path / "plan.toml"), str(out)])
    while running.poll() is None and not list((out / "models").glob("*/model.safetensors"))[1:]:
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert not (out / "report.html").exists()
    resumed = run_benchmark(load_plan(folder / "plan.toml"), out)
    assert resumed.jobs == finished.jobs
    assert resumed.trained < finished.trained  # the start at least was finished
    expected = (finished.output / "tables" / "seeds.csv").read_text().splitlines()
    got = (out / "tables" / "seeds.csv").read_text().splitlines()
    assert {line.split(",")[0] for line in got} == {line.split(",")[0] for line in expected[: len(got)]}
    assert not list(out.rglob("checkpoint.safetensors"))


@pytest.mark.slow
def test_a_loaded_model_is_measured_as_it_is(finished: FinishedReport, tmp_path: Path) -> None:
    model = next((finished.output / "models").glob("*/model.safetensors"))
    dataset = next(finished.output.glob("archive-*"))
    (tmp_path / "plan.toml").write_text(
        f"seeds = [0, 1]\nours = 'stored'\nabsent = false\njobs = 1\n[dataset]\npath = '{dataset}'\nsplit = 'val'\n"
        f"[refinement]\ngeneric = false\nratios = [0.0, 0.2]\n[[model]]\nname = 'stored'\npath = '{model}'\n"
    )
    done = run_benchmark(load_plan(tmp_path / "plan.toml"), tmp_path / "out")
    assert (done.jobs, done.trained, done.measured) == (1, 0, 2)
    page = Page(done.report.read_text(encoding="utf-8"))
    assert page.ids >= ANCHORS - {"table-3", "figure-9"}


@pytest.mark.slow
def test_a_published_clip_is_a_row_and_may_be_the_rival(finished: FinishedReport, tmp_path: Path) -> None:
    """A file in RemoteCLIP's layout, with the tokenizer of another CLIP beside it."""
    write_vocabulary(tmp_path / "words")
    model = next((finished.output / "models").glob("*/model.safetensors"))
    dataset = next(finished.output.glob("archive-*"))
    plan = (
        f"ours = 'ours'\nrival = 'RemoteCLIP'\njobs = 1\n[dataset]\npath = '{dataset}'\nsplit = 'val'\n"
        f"[refinement]\ngeneric = false\nratios = [0.0]\n[[model]]\nname = 'ours'\npath = '{model}'\n"
        f"[[model]]\nname = 'RemoteCLIP'\npath = '{open_clip_file(tmp_path)}'\n"
        f"tokenizer = '{tmp_path / 'words'}'\nactivation = 'gelu'\n"
    )
    (tmp_path / "plan.toml").write_text(plan)
    (tmp_path / "other.toml").write_text(plan.replace("'gelu'", "'quick_gelu'"))
    done = [run_benchmark(load_plan(tmp_path / name), tmp_path / "out") for name in ("plan.toml", "other.toml")]
    assert [each.measured for each in done] == [4, 2]  # another activation is another model
    rows = list(csv.DictReader((done[0].output / "tables" / "comparison.csv").open()))
    assert {row["model"] for row in rows} == {"ours", "ELC", "RemoteCLIP"}
    assert "Below them the answers of RemoteCLIP" in done[0].report.read_text(encoding="utf-8")


@pytest.mark.slow
def test_two_datasets_share_a_report(finished: FinishedReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = sorted((finished.output / "models").glob("*/model.safetensors"))[:2]
    dataset = next(finished.output.glob("archive-*"))
    plan = (
        "seeds = [0]\nours = 'one'\nrival = 'two'\nabsent = false\njobs = 1\n[refinement]\ngeneric = false\n"
        f"ratios = [0.0]\n[dataset]\nname = 'First <set>'\npath = '{dataset}'\nsplit = 'val'\n"
        f"[[further]]\npath = '{dataset}'\n[[model]]\nname = 'one'\npath = '{models[0]}'\n"
        f"[[model]]\nname = 'two'\npath = '{models[1]}'\n"
    )
    (tmp_path / "plan.toml").write_text(plan)
    drawn = _Drawn(monkeypatch)
    done = run_benchmark(load_plan(tmp_path / "plan.toml"), tmp_path / "out")
    assert (done.jobs, done.trained, done.measured) == (4, 0, 8)
    assert drawn.panels == [
        f"({letter}) {side} queries, noisy {name}"
        for letter, (side, name) in zip(
            "abcd", product(("Image", "Text"), ("First <set>", load_dataset(dataset, "test").name)), strict=True
        )
    ]
    assert drawn.beside == [["one", "two"]] * 4  # clean and noisy of both datasets
    splits = [NoisySplit(load_dataset(dataset, name), 0) for name in ("val", "test")]
    for split, (rows, captions) in zip(splits, drawn.steps, strict=True):
        measured = {split.open_image(int(index)).tobytes() for index in np.flatnonzero(split.noisy)}
        assert all(row[-1][1].tobytes() in measured for row in rows)
        assert all(caption.rpartition("noisy:  ")[2] in split.captions for caption in captions)
        assert all(caption.startswith("clean:  ") for caption in captions)
    content = done.report.read_text(encoding="utf-8")
    assert content.count('<h3 class="dataset">First &lt;set&gt;</h3>') == 5
    assert len(Page(content).pictures) == 3 + 2 * 9  # 2, 3 and 7 are common
    names = {row["dataset"] for row in csv.DictReader((done.output / "tables" / "comparison.csv").open())}
    assert len(names) == 2
    (tmp_path / "plan.toml").write_text(plan.replace("[[further]]", "[[further]]\nname = 'First <set>'"))
    with pytest.raises(ConfigError, match="two datasets"):
        run_benchmark(load_plan(tmp_path / "plan.toml"), tmp_path / "out")


@pytest.mark.slow
def test_two_benchmarks_never_share_a_folder(folder: Path, finished: FinishedReport) -> None:
    import fcntl

    with (finished.output / ".lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="in use"):
            run_benchmark(load_plan(folder / "plan.toml"), finished.output)


def test_mean_and_spread_of_seeds() -> None:
    values = [1.0, 4.0, 2.5, -7.0]
    number = Number.of(values)
    assert number.mean == pytest.approx(statistics.mean(values))
    assert number.spread == pytest.approx(statistics.stdev(values))
    assert Number.of([3.0]) == Number(3.0, None, 1)
    assert Number.of([None, 3.0]) == Number(3.0, None, 1)
    assert Number.of([None]) == Number(None, None, 0)
