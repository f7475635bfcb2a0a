"""Lines of a study as a table of methods: ``python scripts/method_table.py RESULTS.jsonl``.

    evidex study configs/study/methods.toml --output runs/methods
    python scripts/method_table.py runs/methods/results.jsonl && python scripts/tables.py

writes ``docs/results/methods.csv`` from what was measured: a row a run, mean and standard deviation over its seeds, in
the order of the study. Runs without a result are left out, and said.
"""

from __future__ import annotations

import argparse
import csv
import io
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from evidex.config import Config
from evidex.documents import parse_json
from evidex.errors import EvidexError
from evidex.evaluation.report.paper_rows import rows_of
from evidex.evaluation.report.results import departures
from evidex.evaluation.study.plan import load_study
from evidex.evaluation.study.runs import expand
from evidex.files import write_atomic
from evidex.methods import METHODS

ROOT = Path(__file__).resolve().parents[1]
SCORES = ("vacuity", "belief", "own", "learned")
PRINTED = "elc-as-printed"
Line = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description="Write docs/results/methods.csv from the lines of a study.")
    parser.add_argument("results", type=Path, nargs="+", help="results.jsonl of the study, or several")
    parser.add_argument("--study", type=Path, default=ROOT / "configs" / "study" / "methods.toml")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "methods.csv")
    arguments = parser.parse_args()
    lines = [parse_json(text) for path in arguments.results for text in path.read_text("utf-8").splitlines()]
    try:
        configs = _configs(arguments.study)
    except EvidexError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    by_run = {name: _done(lines, name) for name in configs}
    for name in (name for name, found in by_run.items() if not found):
        print(f"{name}: nothing measured, left out", file=sys.stderr)
    rows = [_row(name, configs[name], found) for name, found in by_run.items() if found]
    if not rows:
        print("error: none of these lines belongs to the study; give its results.jsonl", file=sys.stderr)
        return 1
    write_atomic(arguments.out, as_csv(rows))
    return 0


def _configs(study: Path) -> dict[str, Config]:
    """The configuration of each run, in the study's order."""
    plan = load_study(study)
    return {run.name: run.config for run in expand(plan, Path("runs"), plan.dataset) if run.config is not None}


def _done(lines: Iterable[Line], name: str) -> list[Line]:
    """The results of all seeds of the run ``name``, the last of each."""
    seeds = {line["name"]: line for line in lines if "error" not in line and line["name"].rpartition("-s")[0] == name}
    return [seeds[key] for key in sorted(seeds)]


def _row(name: str, config: Config, lines: Sequence[Line]) -> dict[str, str]:
    method = METHODS.get(config.method_name)
    title = "ELC0" if method is None else method.title
    quoted = {row.method: row.values[-1] for row in rows_of("I") if row.dataset == "RSICD"}
    row = {
        "run": name,
        "method": "ELC0, Eq. 12 as printed" if name == PRINTED else title,
        "loss": departures(config),
        "seeds": str(len(lines)),
    }
    for condition in ("clean", "noisy"):
        values = [float(_recall(line[condition])["rsum"]) for line in lines]
        row[f"{condition}_rsum"] = f"{statistics.mean(values):.1f}"
        row[f"{condition}_sd"] = f"{statistics.stdev(values):.1f}" if len(values) > 1 else ""
    for side, direction in (("image", "i2t"), ("text", "t2i")):
        for score in SCORES:
            row[f"{side}_{score}"] = _auroc([line["noisy"] for line in lines], direction, score)
    return row | {"paper_rsum": quoted[title]}


def _recall(found: Line) -> Line:
    """Of a run that was measured for its scores, or for recall alone."""
    recall: Line = found.get("recall", found)
    return recall


def _auroc(found: Sequence[Line], direction: str, score: str) -> str:
    """Mean AUROC of wrong answers at R@10, as the other tables write it; empty where the score is not there."""
    qualities = [each["uncertainty"][direction]["scores"].get(score) for each in found if "uncertainty" in each]
    values = [quality["error_auroc"]["10"] for quality in qualities if quality is not None]
    known = [float(value) for value in values if value is not None]
    return f"{statistics.mean(known):.3f}".removeprefix("0") if known else ""


def as_csv(rows: Sequence[dict[str, str]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


if __name__ == "__main__":
    sys.exit(main())
