"""The table of methods is made of the study's results: a row a run, the printed loss beside ours."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import method_table
import pytest
import tables

ROOT = Path(__file__).parents[2]


def _line(name: str, rsum: float, own: float | None = None) -> dict[str, Any]:
    scores = {"vacuity": {"error_auroc": {"10": 0.5}}, "belief": {"error_auroc": {"10": None}}}
    if own is not None:
        scores["own"] = {"error_auroc": {"10": own}}
    found = {"recall": {"rsum": rsum}, "uncertainty": {side: {"scores": scores} for side in ("i2t", "t2i")}}
    return {"name": name, "clean": found, "noisy": {**found, "recall": {"rsum": rsum - 10}}}


def test_rows_are_means_of_the_seeds_in_the_studys_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        _line("pau-s0", 100.0, 0.7), _line("elc-as-printed-s0", 120.0), _line("elc-s1", 142.0), _line("elc-s0", 140.0),
        {"name": "poly-s0", "error": "died"}, _line("other-s0", 1.0),
    ]  # fmt: skip
    results = tmp_path / "results.jsonl"
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["method_table.py", str(results), "--out", str(tmp_path / "methods.csv")])
    assert method_table.main() == 0
    rows = list(csv.DictReader((tmp_path / "methods.csv").open()))
    assert [row["method"] for row in rows] == ["ELC0", "ELC0, Eq. 12 as printed", "PAU"]
    ours, printed, pau = rows
    assert (ours["clean_rsum"], ours["clean_sd"], ours["noisy_rsum"], ours["seeds"]) == ("141.0", "1.4", "131.0", "2")
    assert ours["loss"] == "UCL by belief, b2 = 0.3, no RL"
    assert printed["loss"] == "no RL"
    assert (pau["clean_sd"], pau["text_own"], pau["image_belief"], pau["paper_rsum"]) == ("", ".700", "", "198.39")
    assert "poly: nothing measured" in capsys.readouterr().err
    head = (ROOT / "docs" / "results" / "methods.csv").read_text().splitlines()[0]
    assert list(rows[0]) == head.split(",")  # what the documentation's table reads


def test_a_table_without_rows_keeps_its_heading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    (tmp_path / "methods.csv").write_text("method,rsum\n")
    head = "<!-- table: methods.csv\nmethod: {method}\n-->\n"
    assert tables.filled(f"{head}<!-- end -->") == f"{head}| method |\n| --- |\n<!-- end -->"
