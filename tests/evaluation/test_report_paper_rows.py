from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from evidex.evaluation.report.markup import paper_table
from evidex.evaluation.report.paper_rows import PaperRow, paper_rows, rows_of

PAPER = Path(__file__).resolve().parents[2].parent / "shared" / "paper" / "elc.md"


def rsum(table: str, dataset: str, method: str) -> str:
    (row,) = (row for row in rows_of(table) if (row.dataset, row.method) == (dataset, method))
    return row.values[6]


def test_the_totals_that_the_text_names_are_there() -> None:
    assert rsum("I", "RSICD", "RemoteCLIP") == "211.57"
    assert rsum("I", "RSICD", "ELC0") == rsum("III", "RSICD", "EDL + UW + RL + UCL") == "213.47"
    assert rsum("I", "RSITMD", "ELC0") == rsum("IV", "RSITMD", "EDL + UW + RL + UCL") == "291.84"
    assert rsum("I", "RSICD", "ELC") == "215.20"
    assert rsum("II", "RSICD", "ELC0") == rsum("V", "RSICD", "ELC0") == "175.46"
    assert rsum("II", "RSITMD", "ELC") == rsum("VI", "RSITMD", "ELC") == "256.64"
    assert rsum("II", "RSICD", "RemoteCLIP") == "169.72"
    assert rsum("VI", "RSITMD", "ELC_nTTA") == "253.36"


def test_every_table_is_whole() -> None:
    sizes = Counter((row.table, row.dataset) for row in paper_rows())
    assert sizes == {
        ("I", "RSICD"): 19,
        ("I", "RSITMD"): 19,
        ("II", "RSICD"): 12,
        ("II", "RSITMD"): 12,
        ("III", "RSICD"): 5,
        ("IV", "RSITMD"): 5,
        ("V", "RSICD"): 3,
        ("VI", "RSITMD"): 3,
    }
    assert all(len(row.values) == 7 for row in paper_rows())
    assert {row.backbone for row in paper_rows() if row.method.startswith("ELC")} == {"CLIP ViT-B/32"}


def test_rsum_is_the_sum_of_the_six_as_far_as_rounding_goes() -> None:
    for row in paper_rows():
        difference = sum(float(value) for value in row.values[:6]) - float(row.values[6])
        assert row.consistent == (abs(difference) < 0.0201), row
    assert [row for row in paper_rows() if not row.consistent] == []


def test_a_row_that_does_not_add_up_is_flagged_and_left_as_printed() -> None:
    row = PaperRow("I", "RSICD", "M", "CLIP ViT-B/32", (), ("1.00", "2.00", "3.00", "4.00", "5.00", "6.00", "21.05"))
    assert not row.consistent
    page = paper_table([row])
    assert "21.05" in page
    assert "≠ sum" in page
    assert "≠ sum" not in paper_table(rows_of("I"))


@pytest.mark.data
def test_the_rows_are_those_of_the_paper() -> None:
    if not PAPER.is_file():
        pytest.skip("the paper's text is not beside the repository")
    printed: Counter[tuple[str, ...]] = Counter()
    for line in PAPER.read_text(encoding="utf-8").splitlines():
        numbers = re.findall(r"(?<![\d.\[])\d+\.\d\d(?![\d.])", line) if line.startswith("|") else []
        if len(numbers) in (7, 14):
            printed.update(tuple(numbers[start : start + 7]) for start in range(0, len(numbers), 7))
    assert printed == Counter(row.values for row in paper_rows())
