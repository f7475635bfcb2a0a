"""``python -m evidex.evaluation.study PLAN``, for machines where little but torch is installed; ``evidex study``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from evidex.errors import ConfigError, EvidexError, outcome
from evidex.evaluation.study.plan import load_study
from evidex.evaluation.study.runner import run_study
from evidex.evaluation.study.runs import expand
from evidex.evaluation.study.work import StudyPlace
from evidex.visible import visible

DESCRIPTION = """Train variants of one configuration and measure them, one line of results a run.

PLAN is TOML: base (a configuration), dataset, common (overrides of all runs), seeds, [[run]] with name and set
(overrides), [[committee]] with name and members. A run or committee that names another one's model waits for it. What
is finished is not done again, what failed is tried again."""


def parser(program: str) -> argparse.ArgumentParser:
    """The arguments of a study; the command and the module share them."""
    made = _Parser(program, description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("plan", type=Path, metavar="PLAN", help="the study as TOML, e.g. configs/study/sample.toml")
    made.add_argument("set", nargs="*", metavar="section.key=value", help="further overrides of all runs")
    made.add_argument("--output", type=Path, default=Path("runs/study"), help="folder of the runs and the results")
    made.add_argument("--results", type=Path, help="results file (default: OUTPUT/results.jsonl)")
    made.add_argument("--jobs", type=int, default=1, help="runs at a time")
    made.add_argument("--until", type=float, default=float("inf"), help="start no run after this many seconds")
    made.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these runs or committees alone")
    made.add_argument("--dataset", help="folder of the dataset, if not the study's")
    made.add_argument("--keep", action="store_true", help="keep checkpoints of finished runs")
    return made


def main(words: Sequence[str] | None = None, program: str = "python -m evidex.evaluation.study") -> int:
    """Run a study as ``words`` say; 1 where a run of it failed."""
    given = parser(program).parse_intermixed_args(words)
    try:
        return _study(given)
    except EvidexError as error:
        _say(f"evidex: error: {error}")
        return outcome(error).exit_code


def _study(given: argparse.Namespace) -> int:
    if given.jobs < 1:
        raise ConfigError(f"--jobs {given.jobs}: give 1 or more")
    study = load_study(given.plan)
    dataset = given.dataset or study.dataset
    if not dataset:
        raise ConfigError(f"{given.plan}: no dataset; name its folder with dataset or --dataset")
    runs = expand(study, given.output, dataset, given.set)
    place = StudyPlace(given.output, dataset, time.time() + given.until, given.keep)
    done = run_study(runs, place, only=given.only, jobs=given.jobs, lines=given.results)
    _say(f"{done.done} runs done now, {done.failed} of them failed; results: {done.results}")
    return 1 if done.failed else 0


class _Parser(argparse.ArgumentParser):
    """Tells what it does not understand without sending it to the terminal."""

    def error(self, message: str) -> NoReturn:
        super().error(visible(message))


def _say(line: str) -> None:
    print(visible(line), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
