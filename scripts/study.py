"""Train a list of variants of one configuration and tabulate them: ``python scripts/study.py configs/study/NAME.toml``.

A study is a TOML file: ``base`` (a configuration), ``common`` (overrides of all runs), ``seeds``, and a list
of ``[[run]]`` with ``name`` and ``set`` (overrides). Every run goes through the same code as ``evidex train``;
each finished one adds a line to ``results.jsonl``, and a run that is there already is not repeated.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path)
    parser.add_argument("--output", type=Path, default=Path("runs/study"), help="folder of the runs and the results")
    parser.add_argument("--results", type=Path, help="results file (default: OUTPUT/results.jsonl)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--until", type=float, default=float("inf"), help="start no run after this many seconds")
    parser.add_argument("--keep", action="store_true", help="keep checkpoints of finished runs")
    parser.add_argument("set", nargs="*", metavar="section.key=value", help="further overrides of all runs")
    arguments = parser.parse_intermixed_args()

    study = tomllib.loads(arguments.study.read_text())
    results = arguments.results or arguments.output / "results.jsonl"
    results.parent.mkdir(parents=True, exist_ok=True)
    done = {json.loads(line)["name"] for line in results.read_text().splitlines()} if results.exists() else set()
    started, lock = time.monotonic(), Lock()

    def one(run: dict[str, Any], seed: int) -> None:
        name = f"{run['name']}-s{seed}"
        if name in done or time.monotonic() - started > arguments.until:
            return
        folder = arguments.output / name
        overrides = [*study.get("common", []), *run.get("set", []), *arguments.set, f"seed={seed}", f"output={folder}"]
        begun = time.monotonic()
        command = [sys.executable, "-m", "evidex.training", run.get("base", study["base"]), *overrides]
        trained = subprocess.run(command, capture_output=True, text=True, check=False)
        line: dict[str, Any] = {"name": name, "set": overrides, "seconds": round(time.monotonic() - begun, 1)}
        if trained.returncode:
            line["error"] = trained.stderr[-2000:]
        else:
            history = json.loads((folder / "history.json").read_text())
            line |= {"curve": [round(e["val_rsum"], 2) for e in history if "val_rsum" in e], "last": history[-1]}
            command = [sys.executable, "-m", "evidex.evaluation", str(folder / "model.safetensors"), study["dataset"]]
            measured = subprocess.run(command, capture_output=True, text=True, check=False)
            line |= json.loads(measured.stdout) if measured.returncode == 0 else {"error": measured.stderr[-2000:]}
            if not arguments.keep:
                (folder / "checkpoint.safetensors").unlink(missing_ok=True)
        with lock, results.open("a") as stream:
            stream.write(json.dumps(line) + "\n")

    with ThreadPoolExecutor(arguments.jobs) as pool:
        for future in [pool.submit(one, run, seed) for seed in study.get("seeds", [0]) for run in study["run"]]:
            future.result()
    return 0


if __name__ == "__main__":
    sys.exit(main())
