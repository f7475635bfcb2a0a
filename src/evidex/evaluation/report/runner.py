"""The whole benchmark: data, start, trainings and measurements side by side, report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from evidex.checked import to_table
from evidex.evaluation.engine.digests import config_digest
from evidex.evaluation.engine.tasks import alone, results
from evidex.evaluation.report.jobs import Job, Start, Work, dataset_digest, expand
from evidex.evaluation.report.plan import ModelPlan, Plan, training_config
from evidex.evaluation.report.work import Done, ReportPlace, finished, run_job
from evidex.files import check_folder, write_json_atomic
from evidex.progress import Progress, silent

Watcher = Callable[[str], None]


def _unheard(line: str) -> None:
    """The watcher of a benchmark that nobody watches."""


@dataclass(frozen=True)
class FinishedReport:
    """Where the report is, and how much of its work was done now."""

    report: Path
    output: Path
    jobs: int
    trained: int
    measured: int


def run_benchmark(
    plan: Plan, output: Path | None = None, *, watch: Watcher = _unheard, progress: Progress = silent
) -> FinishedReport:
    """Do what ``plan`` says in ``output`` and write the report; what is there already is not done again.

    ``watch`` hears a line about each finished piece of work, ``progress`` counts the jobs.
    """
    from evidex.evaluation.report.page import write_report

    output = output or Path(plan.output)
    check_folder(output)
    output = output.resolve()
    with alone(output):
        write_json_atomic(output / "plan.json", to_table(plan))
        place = _place(plan, output, watch)
        start, started = _start(plan, place, watch)
        work = expand(plan, place.dataset_path, place.dataset_digest, start)
        done = [*started, *_run_all(work, place, plan.jobs, watch, progress)]
        report = write_report(plan, work, place)
    return FinishedReport(
        report, output, len(work.jobs), sum(part.trained for part in done), sum(part.measured for part in done)
    )


def _place(plan: Plan, output: Path, watch: Watcher) -> ReportPlace:
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
    return ReportPlace(output, path, data.split, dataset_digest([load_dataset(path, name) for name in names]))


def _start(plan: Plan, place: ReportPlace, watch: Watcher) -> tuple[Start | None, list[Done]]:
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
        done = list(results([job], partial(run_job, place=place), plan.jobs))
        model = load_model(place.folder(job) / "model.safetensors")
        export_start(model, load_dataset(place.dataset_path, config.data.train_split), folder)
        watch(_line(done[0]))
    noted = read_start(folder)
    assert noted is not None
    return Start(digest, folder, str(noted["image_tower"]), plan.start.mentors), done


def _run_all(work: Work, place: ReportPlace, jobs: int, watch: Watcher, progress: Progress) -> list[Done]:
    waiting = [job for job in work.jobs.values() if not finished(job, place)]
    total, count = len(work.jobs), len(work.jobs) - len(waiting)
    progress(count, total)
    done = []
    for part in results(waiting, partial(run_job, place=place), jobs):
        done.append(part)
        watch(_line(part))
        progress(count + len(done), total)
    return done


def _line(done: Done) -> str:
    parts = (["trained"] if done.trained else []) + ([f"{done.measured} measurements"] if done.measured else [])
    return f"{done.label}: {', '.join(parts) or 'nothing left to do'}"
