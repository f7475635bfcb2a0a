"""The table of methods is made of the benchmark's results: a row a method, the printed loss beside ours."""

import csv
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import method_table
import pytest
import tables

from evidex.evaluation.report.files import FORMAT
from evidex.evaluation.report.results import RECALL_COLUMNS, SCORE_COLUMNS, Number, RecallRow, ScoreRow

ROOT = Path(__file__).parents[2]


def _recalls(name: str, rsum: list[float], note: str = "") -> dict[str, Any]:
    others = [Number(0.0)] * (len(RECALL_COLUMNS) - 1)
    return asdict(RecallRow(name, (*others, Number.of(rsum)), len(rsum), note=note))


def _score(model: str, score: str, auroc: float | None, condition: str = "noisy") -> dict[str, Any]:
    cells = tuple(Number(auroc if column == "error_auroc_10" else 0.1) for column in SCORE_COLUMNS)
    return asdict(ScoreRow(model, condition, "t2i", score, cells))


def _results(**changes: Any) -> dict[str, Any]:
    """As ``tables/results.json`` has them."""
    comparison = {
        condition: [
            _recalls("ELC0", [140.0 - less, 142.0 - less], "UCL by belief, b2 = 0.3, b3 = 3"),
            _recalls("ELC", [143.0 - less, 143.0 - less], "UCL by belief, b2 = 0.3, b3 = 3"),
            _recalls("ELC0 as printed", [120.0 - less]),
            _recalls("PAU", [100.0 - less]),
        ]
        for condition, less in (("clean", 0.0), ("noisy", 10.0))
    }
    scores = [
        _score("ELC0", "belief", None), _score("PAU", "own", 0.7), _score("PAU", "own", 0.9, "clean"),
        _score("PAU", "vacuity", 0.5), _score("PAU", "entropy", 0.6),
    ]  # fmt: skip
    return {
        "format": FORMAT,
        "columns": {"recall": list(RECALL_COLUMNS), "uncertainty": list(SCORE_COLUMNS)},
        "datasets": {"RSICD": {"comparison": comparison, "uncertainty": scores}},
        **changes,
    }


def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: dict[str, Any], *words: str) -> int:
    (tmp_path / "results.json").write_text(json.dumps(results))
    out = str(tmp_path / "methods.csv")
    monkeypatch.setattr(sys, "argv", ["method_table.py", str(tmp_path / "results.json"), "--out", out, *words])
    return method_table.main()


def test_rows_are_those_of_the_comparison_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run(tmp_path, monkeypatch, _results()) == 0
    rows = list(csv.DictReader((tmp_path / "methods.csv").open()))
    assert [row["method"] for row in rows] == ["ELC0", "ELC", "ELC0 as printed", "PAU"]
    ours, refined, printed, pau = rows
    assert (ours["clean_rsum"], ours["clean_sd"], ours["noisy_rsum"], ours["seeds"]) == ("141.0", "1.4", "131.0", "2")
    assert ours["loss"] == "UCL by belief, b2 = 0.3, b3 = 3"
    assert (printed["loss"], printed["paper_rsum"], refined["paper_rsum"]) == ("", "213.47", "215.20")
    assert (pau["clean_sd"], pau["text_own"], pau["text_vacuity"], pau["image_own"]) == ("", ".700", ".500", "")
    assert (ours["text_belief"], pau["paper_rsum"]) == ("", "198.39")


def test_its_columns_are_those_that_the_documentation_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run(tmp_path, monkeypatch, _results()) == 0
    made, kept = ((folder / "methods.csv").read_text() for folder in (tmp_path, ROOT / "docs" / "results"))
    assert made.splitlines()[0] == kept.splitlines()[0]


@pytest.mark.parametrize(
    ("changes", "words", "told"),
    [({"format": 1}, [], "run evidex benchmark again"), ({}, ["--dataset", "UCM"], "choose --dataset among RSICD")],
)
def test_other_results_are_told_and_nothing_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, Any],
    words: list[str],
    told: str,
) -> None:
    assert _run(tmp_path, monkeypatch, _results(**changes), *words) == 1
    assert told in capsys.readouterr().err
    assert not (tmp_path / "methods.csv").exists()


def test_a_table_without_rows_keeps_its_heading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    (tmp_path / "methods.csv").write_text("method,rsum\n")
    head = "<!-- table: methods.csv\nmethod: {method}\n-->\n"
    assert tables.filled(f"{head}<!-- end -->") == f"{head}| method |\n| --- |\n<!-- end -->"
