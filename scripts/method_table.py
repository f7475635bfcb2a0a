"""A benchmark's results as the table of methods: ``python scripts/method_table.py RESULTS.json``.

    evidex benchmark configs/benchmark_rsicd.toml
    python scripts/method_table.py runs/benchmark_rsicd/tables/results.json && python scripts/tables.py

writes ``docs/results/methods.csv`` from what was measured: a row a method, mean and standard deviation over its seeds,
in the order of the benchmark's comparison, with what the paper reports of it.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evidex.documents import read_json
from evidex.errors import DataError, EvidexError
from evidex.evaluation.report.files import FORMAT
from evidex.evaluation.report.paper_rows import rows_of
from evidex.files import write_atomic

ROOT = Path(__file__).resolve().parents[1]
SCORES = ("vacuity", "belief", "own", "learned")
DIRECTIONS = {"image": "i2t", "text": "t2i"}
AS_PRINTED = " as printed"
"""Ends the name of a row that has the paper's loss, and so its number to stand beside."""
Table = Mapping[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description="Write docs/results/methods.csv from the results of a benchmark.")
    parser.add_argument("results", type=Path, help="tables/results.json of the benchmark")
    parser.add_argument("--dataset", default="RSICD", help="which of its datasets, as the report calls it")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "methods.csv")
    arguments = parser.parse_args()
    try:
        rows = method_rows(results_of(arguments.results, arguments.dataset), arguments.dataset)
    except EvidexError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    write_atomic(arguments.out, as_csv(rows))
    return 0


def results_of(path: Path, dataset: str) -> Table:
    """The results of one dataset, and beside them where in a row of numbers which one stands."""
    everything = read_json(path, DataError)
    if not isinstance(everything, dict) or everything.get("format") != FORMAT:
        raise DataError(f"'{path}' is no results.json of this version's benchmark; run evidex benchmark again")
    found = everything["datasets"]
    if dataset not in found:
        raise DataError(f"'{path}' has no dataset '{dataset}'; choose --dataset among {', '.join(found)}")
    return {**found[dataset], "columns": everything["columns"]}


def method_rows(results: Table, dataset: str) -> list[dict[str, str]]:
    """A row of each method that was compared, in the benchmark's order."""
    rsum = results["columns"]["recall"].index("rsum")
    auroc = results["columns"]["uncertainty"].index("error_auroc_10")
    scores = {
        (row["model"], row["direction"], row["score"]): row["cells"][auroc]["mean"]
        for row in results["uncertainty"]
        if row["condition"] == "noisy"
    }
    quoted = {row.method: row.values[-1] for row in rows_of("I") if row.dataset == dataset}
    rows = []
    for clean, noisy in zip(results["comparison"]["clean"], results["comparison"]["noisy"], strict=True):
        name = clean["name"]
        row = {"method": name, "loss": clean["note"], "seeds": str(clean["seeds"])}
        for condition, found in (("clean", clean), ("noisy", noisy)):
            row[f"{condition}_rsum"] = _decimal(found["cells"][rsum]["mean"], 1)
            row[f"{condition}_sd"] = _decimal(found["cells"][rsum]["spread"], 1)
        for side, direction in DIRECTIONS.items():
            for score in SCORES:
                row[f"{side}_{score}"] = _decimal(scores.get((name, direction, score)), 3).removeprefix("0")
        rows.append(row | {"paper_rsum": quoted.get(name.removesuffix(AS_PRINTED), "")})
    return rows


def _decimal(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def as_csv(rows: Sequence[dict[str, str]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


if __name__ == "__main__":
    sys.exit(main())
