"""The documentation's tables are those of the results."""

import re
from pathlib import Path

import pytest
import tables


def test_every_table_of_the_documentation_shows_its_results() -> None:
    for path in tables.documents(tables.ROOT):
        text = path.read_text(encoding="utf-8")
        assert tables.filled(text) == text, f"{path.name} differs from docs/results: run scripts/tables.py"


def test_a_table_is_made_of_the_rows_and_columns_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    (tmp_path / "runs.csv").write_text('run,kind,mean,sd\n"a, b",x,150.0,1.6\nc,x,139.2,\nd,y,1.0,2.0\n')
    head = "<!-- table: runs.csv\nrun: **{run}**\nRSUM: {mean} ± {sd}\nwhere: kind = x\n-->\n"
    text = f"before\n{head}old\n<!-- end -->\nafter"
    rows = "| run | RSUM |\n| --- | --- |\n| **a, b** | 150.0 ± 1.6 |\n| **c** | 139.2 |\n"
    assert tables.filled(text) == f"before\n{head}{rows}<!-- end -->\nafter"
    head = "<!-- table: runs.csv\nRSUM: {mean:.0f} ± {sd:.2f}\n-->\n"
    assert tables.filled(f"{head}<!-- end -->").endswith("| 150 ± 1.60 |\n| 139 |\n| 1 ± 2.00 |\n<!-- end -->")


def test_the_model_card_tells_what_was_measured_in_tables_alone() -> None:
    card = (tables.ROOT / "docs" / "model_card.md").read_text(encoding="utf-8").partition("## Scores")[2]
    assert card
    prose = re.sub(r"<!-- table: .*?<!-- end -->", "", card, flags=re.DOTALL)
    assert re.findall(r"(?<![\w-])\d*\.\d+|\d+ %", prose) == []
