"""How soon evidex is there: ``import torch``, ``evidex --help`` and a cold ``evidex search`` for a text, in one run.

    python benchmarks/start.py [--gallery DIR] [--repeats 7] [--json]

Each is a process of its own, run in turns so that a busy moment hits all alike; medians of wall time, and the most
memory that a process held. Without a gallery one of 1,000 rendered scenes is made first. Exit status 1 where a target
is missed: a search in 0.8 of the time of ``import torch`` and in 250 MB, help in 0.15 s.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

QUESTION = "many planes are parked next to a long building"
SEARCH_SHARE, HELP_SECONDS, SEARCH_MB = 0.8, 0.15, 250.0


@dataclass(frozen=True)
class Cost:
    """Of one process."""

    seconds: float
    cpu_seconds: float
    megabytes: float


@dataclass(frozen=True)
class Target:
    """What is to be reached: ``reached`` at most ``most``."""

    what: str
    reached: float
    most: float

    @property
    def met(self) -> bool:
        return self.reached <= self.most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gallery", type=Path)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        gallery = arguments.gallery or _made(Path(folder))
        costs = measured(gallery, arguments.repeats)
    targets = targets_of(costs)
    if arguments.json:
        print(json.dumps({"costs": {n: asdict(c) for n, c in costs.items()}, "targets": [asdict(t) for t in targets]}))
    else:
        show(costs, targets)
    return 0 if all(target.met for target in targets) else 1


def measured(gallery: Path, repeats: int) -> dict[str, Cost]:
    """The median cost of each command after one run that is not counted."""
    evidex = [sys.executable, "-m", "evidex"]
    commands = {
        "python": [sys.executable, "-c", "pass"],
        "import torch": [sys.executable, "-c", "import torch"],
        "evidex --help": [*evidex, "--help"],
        "evidex search TEXT": [*evidex, "search", QUESTION, "--gallery", str(gallery)],
    }
    for command in commands.values():
        cost_of(command)
    runs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            runs[name].append(cost_of(command))
    return {
        name: Cost(
            statistics.median(run.seconds for run in each),
            statistics.median(run.cpu_seconds for run in each),
            max(run.megabytes for run in each),
        )
        for name, each in runs.items()
    }


def cost_of(command: list[str]) -> Cost:
    """Run ``command`` to its end."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6)


def targets_of(costs: dict[str, Cost]) -> list[Target]:
    """What was reached beside what is to be reached."""
    search, torch = costs["evidex search TEXT"], costs["import torch"]
    return [
        Target("search / import torch", search.seconds / torch.seconds, SEARCH_SHARE),
        Target("help, seconds", costs["evidex --help"].seconds, HELP_SECONDS),
        Target("search, MB", search.megabytes, SEARCH_MB),
    ]


def show(costs: dict[str, Cost], targets: list[Target]) -> None:
    """Print both as tables."""
    print(f"{'':24}{'seconds':>9}{'CPU':>9}{'MB':>9}")
    for name, cost in costs.items():
        print(f"{name:24}{cost.seconds:9.3f}{cost.cpu_seconds:9.3f}{cost.megabytes:9.0f}")
    print()
    for target in targets:
        print(f"{target.what:24}{target.reached:9.3f}   {'at most' if target.met else 'MISSED:'} {target.most:g}")


def _made(folder: Path) -> Path:
    """A gallery of rendered scenes."""
    evidex = [sys.executable, "-m", "evidex"]
    scenes, gallery = folder / "scenes", folder / "gallery"
    for words in (["sample", scenes, "--count", 1000, "--size", 64], ["index", scenes, "--gallery", gallery]):
        subprocess.run([*evidex, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
    return gallery


if __name__ == "__main__":
    sys.exit(main())
