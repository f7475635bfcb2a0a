"""Rows and columns of a table in many pieces, some of whose rows are gone."""

from __future__ import annotations

from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from evidex.retrieval import taking
from evidex.retrieval.taking import column, take


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    place = str(tmp_path_factory.mktemp("table") / "rows.lance")
    for first, stop in ((0, 40), (40, 50), (50, 120)):
        numbers = list(range(first, stop))
        part = pa.table({"number": numbers, "list": [[float(n)] * (n % 3) for n in numbers]})
        lance.write_dataset(part, place, mode="append" if first else "create")
    lance.dataset(place).delete("number % 7 = 3 or (number >= 40 and number < 50)")
    return lance.dataset(place)


def test_rows_come_in_the_order_asked_for(table: Any) -> None:
    whole, rng = table.to_table(), np.random.default_rng(0)
    for count in (1, 3, 50):
        positions = rng.integers(0, len(whole), count)  # some of them twice
        expected = whole.take(pa.array(positions)).to_pylist()
        assert take(table, positions.tolist(), ["number", "list"]).to_pylist() == expected


def test_a_row_that_is_not_there_is_an_error(table: Any) -> None:
    with pytest.raises(ValueError, match="there is none at 1000"):
        take(table, [3, 1000], ["number"])


@pytest.mark.parametrize("few", [1 << 14, 0])
def test_a_column_is_whole_and_in_order(table: Any, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "_FEW_ROWS", few)
    assert column(table, "number").to_pylist() == table.to_table().column("number").to_pylist()
