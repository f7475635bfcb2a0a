"""Train a list of variants of one configuration and tabulate them: ``python scripts/study.py configs/study/NAME.toml``.

A study is a TOML file: ``base`` (a configuration), ``common`` (overrides of all runs), ``seeds``, a list of ``[[run]]``
with ``name`` and ``set`` (overrides), and a list of ``[[committee]]`` with ``name`` and ``members`` (names of runs),
put together once the runs are there. Every run goes through the same code as ``evidex train``; each finished
one adds a line to the results, and one that is there already is not repeated, unless it failed. In overrides and
member names ``{seed}`` and ``{runs}`` stand for the seed and the folder of the runs. ``measure = "scores"`` adds the
worth of the uncertainty to the recall of the clean and the noisy split, ``"all"`` that of test-time augmentation too.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import multiprocessing
import sys
import time
import tomllib
import traceback
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evidex.files import write_atomic

if TYPE_CHECKING:
    from evidex.encoders.model import Model
    from evidex.evaluation.features import Encoded

RATIOS = (0.0, 0.1)
MEASURES = ("recall", "scores", "all")


@dataclass(frozen=True)
class Job:
    """One run, as a worker gets it."""

    name: str
    run: str
    base: str
    overrides: tuple[str, ...]
    folder: Path
    dataset: str
    measure: str
    deadline: float
    keep: bool
    members: tuple[Path, ...] = ()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path)
    parser.add_argument("--output", type=Path, default=Path("runs/study"), help="folder of the runs and the results")
    parser.add_argument("--results", type=Path, help="results file (default: OUTPUT/results.jsonl)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--until", type=float, default=float("inf"), help="start no run after this many seconds")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these runs or committees alone")
    parser.add_argument("--dataset", help="folder of the dataset, if not the study's")
    parser.add_argument("--keep", action="store_true", help="keep checkpoints of finished runs")
    parser.add_argument("set", nargs="*", metavar="section.key=value", help="further overrides of all runs")
    arguments = parser.parse_intermixed_args()

    if arguments.jobs < 1:
        parser.error(f"--jobs {arguments.jobs}: give 1 or more")
    try:
        study = tomllib.loads(arguments.study.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        parser.error(f"'{arguments.study}' is no readable study: {error}")
    missing = [key for key in ("base", "dataset", "run") if key not in study]
    if missing:
        parser.error(f"'{arguments.study}' is no study: it lacks '{missing[0]}'")
    every = _jobs(study, arguments)
    for job in every:
        if job.measure not in MEASURES:
            parser.error(f"measure = '{job.measure}': give one of {', '.join(MEASURES)}")
    names = {name for job in every for name in (job.name, job.run)}
    if unknown := set(arguments.only) - names:
        parser.error(f"--only {min(unknown)}: the study has no such run")
    results = arguments.results or arguments.output / "results.jsonl"
    results.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    finished = [line for line in lines if "error" not in line]
    _check_same(every, finished, results, parser)
    write_atomic(results, "".join(json.dumps(line) + "\n" for line in finished).encode())  # what failed is tried again
    done = {line["name"] for line in finished}
    failed = 0
    with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
        for kind in ("run", "committee"):
            jobs = _jobs(study, arguments, kind)
            wanted = [job for job in jobs if not arguments.only or {job.name, job.run} & set(arguments.only)]
            waiting = [pool.submit(_work, job) for job in wanted if job.name not in done]
            failed += _write(waiting, results)
    if failed:
        print(f"{failed} of the study failed; {results} says why", file=sys.stderr)
    return 1 if failed else 0


def _check_same(
    jobs: list[Job], finished: list[dict[str, Any]], results: Path, parser: argparse.ArgumentParser
) -> None:
    """Refuse results of runs that have the names of these and another meaning: they would be taken for these."""
    meant = {job.name: _meaning(job) for job in jobs}
    for line in finished:
        if line["name"] in meant and line.get("meaning") != meant[line["name"]]:
            parser.error(
                f"'{results}' has a '{line['name']}' from another configuration; give another --output and --results"
            )


def _meaning(job: Job) -> dict[str, Any]:
    """What a run's result depends on: its configuration but for places, or the members of a committee."""
    if job.members:
        return {"members": [path.parent.name for path in job.members]}
    from evidex.checked import to_table
    from evidex.config import load_config
    from evidex.errors import ConfigError

    try:
        table = to_table(load_config(Path(job.base), job.overrides))
    except ConfigError as error:  # the run will say so
        return {"error": str(error)}
    del table["output"], table["data"]["path"]
    for kind in ("image", "text"):
        table["mentors"][kind] = "/".join(Path(table["mentors"][kind]).parts[-2:])
    return table


def _jobs(study: dict[str, Any], arguments: argparse.Namespace, *kinds: str) -> list[Job]:
    return [
        _job(run, seed, study, arguments)
        for kind in kinds or ("run", "committee")
        for run in study.get(kind, [])
        for seed in _seeds(run, study)
    ]


def _seeds(run: dict[str, Any], study: dict[str, Any]) -> list[int]:
    seeds: list[int] = run.get("seeds", study.get("seeds", [0]))
    return seeds


def _job(run: dict[str, Any], seed: int, study: dict[str, Any], arguments: argparse.Namespace) -> Job:
    name = f"{run['name']}-s{seed}"
    folder = arguments.output / name

    def filled(text: str) -> str:
        return text.replace("{seed}", str(seed)).replace("{runs}", str(arguments.output))

    dataset = arguments.dataset or study["dataset"]
    chosen = [*study.get("common", []), *run.get("set", []), *arguments.set]
    overrides = [*chosen, f"data.path={dataset}", f"seed={seed}", f"output={folder}"]
    return Job(
        name,
        run["name"],
        run.get("base", study["base"]),
        tuple(map(filled, overrides)),
        folder,
        dataset,
        run.get("measure", study.get("measure", "recall")),
        time.time() + arguments.until,
        arguments.keep,
        tuple(arguments.output / filled(member) / "model.safetensors" for member in run.get("members", [])),
    )


def _write(waiting: list[Future[dict[str, Any] | None]], results: Path) -> int:
    """Append each result as it comes; how many of them are failures."""
    failed = 0
    for future in as_completed(waiting):
        line = future.result()
        if line is not None:
            with results.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
            failed += "error" in line
    return failed


def _work(job: Job) -> dict[str, Any] | None:
    """Train or put together, and measure; a failure is a line too."""
    if time.time() > job.deadline:
        return None
    begun = time.monotonic()
    line: dict[str, Any] = {"name": job.name, "base": job.base, "set": list(job.overrides), "meaning": _meaning(job)}
    try:
        model = _committee(job, line) if job.members else _train(job, line)
        line["train_seconds"] = round(time.monotonic() - begun, 1)
        line |= _measure(model, job.dataset, job.measure)
    except Exception:  # one bad run must not end the study; what was wrong is in its line
        line["error"] = traceback.format_exc()[-2000:]
    _free_memory()
    return line | {"seconds": round(time.monotonic() - begun, 1)}


def _train(job: Job, line: dict[str, Any]) -> Model:
    from evidex.config import load_config
    from evidex.training.loop import train

    run = train(load_config(Path(job.base), job.overrides))
    line["curve"] = [round(epoch["val_rsum"], 2) for epoch in run.history if "val_rsum" in epoch]
    line["last"] = run.history[-1]
    if not job.keep:
        (job.folder / "checkpoint.safetensors").unlink(missing_ok=True)
    return run.model


def _committee(job: Job, line: dict[str, Any]) -> Model:
    from evidex.encoders.committee import CommitteeEncoder
    from evidex.encoders.model import Model, load_model
    from evidex.encoders.towers import TowerEncoder
    from evidex.errors import ModelError

    models = [load_model(path) for path in job.members]
    towers = [model.encoder for model in models if isinstance(model.encoder, TowerEncoder)]
    if len(towers) < len(models):
        raise ModelError("a member is no model of towers; only those can be put together")
    line["members"] = [path.parent.name for path in job.members]
    temperature = float(np.mean([model.temperature for model in models]))
    model = Model(CommitteeEncoder(towers), temperature, card={"members": line["members"]})
    job.folder.mkdir(parents=True, exist_ok=True)
    model.save(job.folder / "model.safetensors")
    return model


def _measure(model: Model, dataset_path: str, measure: str) -> dict[str, Any]:
    """Recall on the clean and the noisy split; with "scores" the uncertainty, with "all" refinement as well."""
    from evidex.evaluation.absent import out_of_domain_queries
    from evidex.evaluation.features import Encoded, encode_texts, match
    from evidex.evaluation.foreign_pictures import foreign_pictures
    from evidex.evaluation.protocol import FOREIGN_PICTURES, FOREIGN_SEED, evaluate_features
    from evidex.evaluation.recall import recall

    found: dict[str, Any] = {}
    dataset, noisy = _splits(dataset_path)
    for name, split in (("clean", dataset), ("noisy", noisy)):
        images = model.encode_pixels(_pixels(dataset_path, name, model), batch_size=256)
        encoded = Encoded(images, encode_texts(model, split.captions, batch_size=256), dataset.image_of_caption)
        if measure == "recall":
            found[name] = recall(match(images, encoded.texts).similarity, dataset.image_of_caption).to_json()
            continue
        labels = [record.label for record in dataset.records]
        extra: dict[str, Any] = (
            {
                "labels": labels if all(labels) else None,
                "foreign_texts": encode_texts(model, out_of_domain_queries()),
                "foreign_images": model.encode_images(
                    foreign_pictures(FOREIGN_PICTURES, np.random.default_rng(FOREIGN_SEED))
                ),
            }
            if name == "clean"
            else {"degraded_mask": noisy.noisy, "degraded_captions": noisy.changed_captions}
        )
        found[name] = evaluate_features(images, encoded.texts, dataset.image_of_caption, model.temperature, **extra)
        found[name] = found[name].to_json() | (_refined(model, split, encoded) if measure == "all" else {})
    return found


def _refined(model: Model, split: Any, encoded: Encoded) -> dict[str, Any]:
    """RSUM with the most uncertain queries refined: by RS-TTA and, where WordNet is installed, by generic copies."""
    from evidex.evaluation.deferral import refine_and_rank
    from evidex.evaluation.features import match
    from evidex.evaluation.scores import uncertainty_scores
    from evidex.retrieval.refine import GenericRefiner, RsRefiner

    refiners = {"rs_tta": RsRefiner()} | ({"generic_tta": GenericRefiner()} if find_spec("wn") else {})
    similarity = match(encoded.images, encoded.texts).similarity
    image, text = (uncertainty_scores(s, model.temperature).vacuity for s in (similarity, similarity.T))
    table = {}
    for name, refiner in refiners.items():
        steps = refine_and_rank(
            model, split, encoded, RATIOS, image_uncertainty=image, text_uncertainty=text, refiner=refiner
        )
        table[name] = {str(step.ratio): round(step.recall.rsum, 3) for step in steps}
    return table


@functools.lru_cache(maxsize=1)
def _splits(path: str) -> tuple[Any, Any]:
    from evidex.data.datasets import load_dataset
    from evidex.evaluation.noisy import NoisySplit

    dataset = load_dataset(Path(path), "val")
    return dataset, NoisySplit(dataset, seed=0)


_PREPARED: dict[tuple[str, str, int], np.ndarray] = {}  # a study's models see the same pictures


def _pixels(path: str, name: str, model: Model) -> np.ndarray:
    key = (path, name, model.encoder.image_size)
    if key not in _PREPARED:
        dataset, noisy = _splits(path)
        split = noisy if name == "noisy" else dataset

        def prepared(index: int) -> np.ndarray:
            return model.encoder.prepare_image(split.open_image(index))

        with ThreadPoolExecutor(4) as pool:
            _PREPARED[key] = np.stack(list(pool.map(prepared, range(len(dataset)))))
    return _PREPARED[key]


def _free_memory() -> None:
    import torch

    gc.collect()
    torch.cuda.empty_cache()


if __name__ == "__main__":
    sys.exit(main())
