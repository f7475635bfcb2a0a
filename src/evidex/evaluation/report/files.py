"""The report's numbers as CSV and JSON, for other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evidex.checked import to_table
from evidex.evaluation.report.results import PARTS, RECALL_COLUMNS, SCORE_COLUMNS, Number, RecallRow, Results
from evidex.files import write_atomic, write_json_atomic

FORMAT = 3
_CONDITIONS = ("clean", "noisy")


def write_files(parts: Sequence[Results], folder: Path) -> list[Path]:
    """Write the tables as CSV, one row a seed in ``seeds.csv``, and everything together as ``results.json``.

    The first column of each table is the dataset.
    """
    tables: dict[str, list[list[Any]]] = {}
    for part in parts:
        for name, (heading, *lines) in _tables(part).items():
            table = tables.setdefault(name, [["dataset", *heading]])
            table += [[part.place.title, *line] for line in lines]
    paths = [_write_csv(folder / f"{name}.csv", lines) for name, lines in tables.items()]
    everything = {
        "format": FORMAT,
        "plan": to_table(parts[0].plan),
        "columns": {"recall": list(RECALL_COLUMNS), "uncertainty": list(SCORE_COLUMNS), "parts": list(PARTS)},
        "datasets": {part.place.title: _everything(part) for part in parts},
    }
    write_json_atomic(folder / "results.json", everything)
    return [*paths, folder / "results.json"]


def _tables(results: Results) -> dict[str, list[list[Any]]]:
    """Each table of one dataset, its heading first."""
    sensitivity = {condition: results.sensitivity(condition) for condition in _CONDITIONS}
    return {
        "comparison": _recall_lines({condition: results.comparison(condition) for condition in _CONDITIONS}),
        "ablation": _recall_lines({condition: results.ablation(condition) for condition in _CONDITIONS}, parts=True),
        "refinement": _recall_lines({"noisy": results.refinement()}),
        "uncertainty": [
            ["model", "condition", "direction", "score", *_pairs(SCORE_COLUMNS), "seeds"],
            *(
                [row.model, row.condition, row.direction, row.score, *_cells(row.cells), row.cells[0].seeds]
                for row in results.scores()
            ),
        ],
        "deferral": [
            ["refinement", "ratio", "rsum_mean", "rsum_spread", "seeds"],
            *(
                _curve(name, at, values)
                for name, curve in results.deferral().items()
                for at, values in sorted(curve.items())
            ),
        ],
        "sensitivity": [
            ["condition", "weight", "value", "rsum_mean", "rsum_spread", "seeds"],
            *(
                [condition, *_curve(name, at, values)]
                for condition, curves in sensitivity.items()
                for name, curve in curves.items()
                for at, values in sorted(curve.items())
            ),
        ],
        "seeds": _seed_lines(results),
    }


def _everything(results: Results) -> dict[str, Any]:
    return {
        "dataset_digest": results.place.dataset_digest,
        "comparison": {condition: [asdict(row) for row in results.comparison(condition)] for condition in _CONDITIONS},
        "ablation": {condition: [asdict(row) for row in results.ablation(condition)] for condition in _CONDITIONS},
        "refinement": [asdict(row) for row in results.refinement()],
        "uncertainty": [asdict(row) for row in results.scores()],
        "deferral": {name: _points(curve) for name, curve in results.deferral().items()},
        "sensitivity": {
            condition: {name: _points(curve) for name, curve in results.sensitivity(condition).items()}
            for condition in _CONDITIONS
        },
    }


def _recall_lines(blocks: dict[str, list[RecallRow]], *, parts: bool = False) -> list[list[Any]]:
    names = list(PARTS) if parts else []
    lines: list[list[Any]] = [["condition", "model", *names, *_pairs(RECALL_COLUMNS), "seeds"]]
    for condition, rows in blocks.items():
        for row in rows:
            ticks = ["yes" if part else "no" for part in row.parts] if parts else []
            lines.append([condition, row.name, *ticks, *_cells(row.cells), row.seeds])
    return lines


def _seed_lines(results: Results) -> list[list[Any]]:
    """Recall of every single model."""
    from evidex.evaluation.report.results import recall_values

    lines: list[list[Any]] = [["job", "model", "seed", "condition", *RECALL_COLUMNS]]
    for digest, job in results.work.jobs.items():
        found = results.measured(digest, "noisy")
        for condition, key in (("clean", "clean_recall"), ("noisy", "recall")):
            values = [f"{value:.4f}" for value in recall_values(found[key])]
            lines.append([digest, job.label, job.seed, condition, *values])
    return lines


def _curve(name: str, at: float, values: Sequence[float]) -> list[Any]:
    number = Number.of(values)
    return [name, f"{at:g}", *_cells([number]), number.seeds]


def _points(curve: dict[float, list[float]]) -> list[dict[str, Any]]:
    return [{"at": at, "rsum": values} for at, values in sorted(curve.items())]


def _pairs(columns: Iterable[str]) -> list[str]:
    return [f"{column}_{part}" for column in columns for part in ("mean", "spread")]


def _cells(numbers: Iterable[Number]) -> list[str]:
    values = (value for number in numbers for value in (number.mean, number.spread))
    return ["" if value is None else f"{value:.4f}" for value in values]


def _write_csv(path: Path, lines: Iterable[Sequence[Any]]) -> Path:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(lines)
    write_atomic(path, buffer.getvalue())
    return path
