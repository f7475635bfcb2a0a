"""The whole benchmark: data, start, trainings and measurements side by side, report."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from evidex.checked import to_table
from evidex.errors import ConfigError, TrainingError
from evidex.evaluation.report.jobs import Job, Start, Work, config_digest, dataset_digest, expand
from evidex.evaluation.report.plan import ModelPlan, Plan, training_config
from evidex.evaluation.report.work import Done, Place, finished, run_job
from evidex.files import check_folder, write_json_atomic
from evidex.progress import Progress, silent

Watcher = Callable[[str], None]


def _unheard(line: str) -> None:
    """The watcher of a benchmark that nobody watches."""


@dataclass(frozen=True)
class Finished:
    """Where the report is, and how much of its work was done now."""

    report: Path
    output: Path
    jobs: int
    trained: int
    measured: int


def run_benchmark(
    plan: Plan, output: Path | None = None, *, watch: Watcher = _unheard, progress: Progress = silent
) -> Finished:
    """Do what ``plan`` says in ``output`` and write the report; what is there already is not done again.

    ``watch`` hears a line about each finished piece of work, ``progress`` counts the jobs.
    """
    from evidex.evaluation.report.page import write_report

    output = output or Path(plan.output)
    check_folder(output)
    output = output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    with _alone(output):
        write_json_atomic(output / "plan.json", to_table(plan))
        place = _place(plan, output, watch)
        start, started = _start(plan, place, watch)
        work = expand(plan, place.dataset_path, place.dataset_digest, start)
        done = [*started, *_run_all(work, place, plan.jobs, watch, progress)]
        report = write_report(plan, work, place)
    return Finished(
        report, output, len(work.jobs), sum(part.trained for part in done), sum(part.measured for part in done)
    )


def _place(plan: Plan, output: Path, watch: Watcher) -> Place:
    """The dataset, rendered if the plan names none."""
    from evidex.data.datasets import load_dataset
    from evidex.scenes import render_archive

    data = plan.dataset
    path = Path(data.path).resolve()
    if not data.path:
        path = output / f"archive-{data.scenes}-{data.scene_size}px-seed{data.scene_seed}"
        if not path.exists():
            render_archive(path, count=data.scenes, size=data.scene_size, seed=data.scene_seed)
            watch(f"rendered {data.scenes} scenes")
    settings = training_config(plan, plan.our_model() if not plan.our_model().path else ModelPlan("data"))
    names = dict.fromkeys([settings.data.train_split, settings.data.val_split, data.split])
    if all(model.path for model in plan.model):
        names = {data.split: None}
    return Place(output, path, data.split, dataset_digest([load_dataset(path, name) for name in names]))


def _start(plan: Plan, place: Place, watch: Watcher) -> tuple[Start | None, list[Done]]:
    """The common start, trained and exported if it is not there yet."""
    from evidex.data.datasets import load_dataset
    from evidex.evaluation.report.start import export_start, read_start

    if plan.start is None:
        return None, []
    config = replace(training_config(plan, ModelPlan("start"), plan.start.training), seed=plan.start.seed)
    config = replace(config, data=replace(config.data, path=str(place.dataset_path)))
    digest = config_digest(config, place.dataset_digest, None)
    folder = place.output / "start" / digest
    done = []
    if read_start(folder) is None:
        from evidex.encoders.model import load_model

        job = Job(digest, "common start", config.seed, (), config=config)
        done = list(_results([job], place, plan.jobs or _parallel()))
        model = load_model(place.folder(job) / "model.safetensors")
        export_start(model, load_dataset(place.dataset_path, config.data.train_split), folder)
        watch(_line(done[0]))
    noted = read_start(folder)
    assert noted is not None
    return Start(digest, folder, str(noted["image_tower"]), plan.start.mentors), done


def _run_all(work: Work, place: Place, jobs: int, watch: Watcher, progress: Progress) -> list[Done]:
    waiting = [job for job in work.jobs.values() if not finished(job, place)]
    total, count = len(work.jobs), len(work.jobs) - len(waiting)
    progress(count, total)
    done = []
    for part in _results(waiting, place, jobs or _parallel()):
        done.append(part)
        watch(_line(part))
        progress(count + len(done), total)
    return done


def _results(waiting: list[Job], place: Place, jobs: int) -> Iterator[Done]:
    """Results in the order in which they come, of ``jobs`` processes that share the cores."""
    if jobs == 1 or not waiting:
        yield from (run_job(job, place) for job in waiting)
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    threads = max(1, _cores() // jobs)
    workers = min(jobs, len(waiting))
    with ProcessPoolExecutor(workers, get_context("spawn"), _prepare_worker, (threads, os.getpid())) as pool:
        futures = [pool.submit(run_job, job, place) for job in waiting]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool:
            raise TrainingError(
                "a training process died, perhaps for want of memory; lower jobs and run again, what is finished stays"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _prepare_worker(threads: int, parent: int) -> None:
    """Share the cores: as many threads as cores in every process would wait for each other most of the time."""
    import torch

    torch.set_num_threads(threads)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """A worker whose benchmark was killed must not go on beside the next one."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _parallel() -> int:
    import torch

    return 1 if torch.cuda.is_available() else _cores()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _alone(output: Path) -> Iterator[None]:
    """Hold the output folder; the lock ends with the process, however that ends."""
    with (output / ".lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(f"'{output}' is in use by another benchmark; wait for it or choose --output") from None
        yield


def _line(done: Done) -> str:
    parts = (["trained"] if done.trained else []) + ([f"{done.measured} measurements"] if done.measured else [])
    return f"{done.label}: {', '.join(parts) or 'nothing left to do'}"
