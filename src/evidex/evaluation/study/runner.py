"""The whole study: its runs side by side, results as lines of JSON; what is there already is not done again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evidex.documents import parse_json, read_text
from evidex.errors import ConfigError, DataError
from evidex.evaluation.engine.tasks import alone, results
from evidex.evaluation.study.runs import Run, chosen
from evidex.evaluation.study.work import StudyPlace, do_run
from evidex.files import check_folder, write_atomic


@dataclass(frozen=True)
class Studied:
    """Where the results are, and how many runs were done now and how many of them failed."""

    results: Path
    done: int
    failed: int


def run_study(
    runs: Sequence[Run], place: StudyPlace, *, only: Sequence[str] = (), jobs: int = 1, lines: Path | None = None
) -> Studied:
    """Do ``runs``, or ``only`` some of them; each adds its line to ``lines`` (default: results.jsonl in the output)."""
    wanted = chosen(runs, only)
    lines = lines or place.output / "results.jsonl"
    check_folder(place.output)
    count = failed = 0
    with alone(place.output):
        finished = [line for line in _read(lines) if "error" not in line]  # what failed is tried again
        _check_same(runs, finished, lines)
        done = {line["name"] for line in finished}
        waiting = [run for run in wanted if run.key not in done]
        lines.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(lines, "".join(json.dumps(line) + "\n" for line in finished))
        for line in results(waiting, partial(do_run, place=place), jobs):
            if line is None:
                continue
            with lines.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
            count, failed = count + 1, failed + ("error" in line)
    return Studied(lines, count, failed)


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    try:
        found = [parse_json(line) for line in read_text(path, DataError).splitlines()]
    except ValueError as error:
        raise DataError(f"'{path}' is no list of results ({error}); give another --results") from None
    if not all(isinstance(line, dict) and "name" in line for line in found):
        raise DataError(f"'{path}' is no list of results; give another --results")
    return found


def _check_same(runs: Sequence[Run], finished: Sequence[dict[str, Any]], path: Path) -> None:
    """Refuse results of runs that have the names of these and another digest: they would be taken for these."""
    digests = {run.key: run.digest for run in runs}
    for line in finished:
        if line["name"] in digests and line.get("digest") != digests[line["name"]]:
            raise ConfigError(
                f"'{path}' has a '{line['name']}' from another configuration; give another --output and --results"
            )
