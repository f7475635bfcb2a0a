"""The whole benchmark: data, start, trainings and measurements side by side, report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evidex.checked import to_table
from evidex.errors import ConfigError
from evidex.evaluation.engine.digests import config_digest
from evidex.evaluation.engine.tasks import alone, results
from evidex.evaluation.report.jobs import Job, Start, dataset_digest, expand
from evidex.evaluation.report.plan import DatasetPlan, ModelPlan, Plan, training_config
from evidex.evaluation.report.work import Done, ReportPlace, finished, run_job
from evidex.files import check_folder, write_json_atomic
from evidex.progress import Progress, silent

if TYPE_CHECKING:
    from evidex.evaluation.report.results import Results

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
    from evidex.evaluation.report.results import Results

    output = output or Path(plan.output)
    check_folder(output)
    output = output.resolve()
    with alone(output):
        write_json_atomic(output / "plan.json", to_table(plan))
        places = [_place(plan, data, output, watch) for data in plan.datasets]
        _check_titles(places)
        parts, done = [], []
        for place in places:
            start, started = _start(plan, place, watch)
            parts.append(Results(plan, expand(plan, place.dataset_path, place.dataset_digest, start), place))
            done += started
        done += _run_all(parts, plan.jobs, watch, progress)
        report = write_report(plan, parts)
    jobs = sum(len(part.work.jobs) for part in parts)
    return FinishedReport(report, output, jobs, sum(part.trained for part in done), sum(part.measured for part in done))


def _place(plan: Plan, data: DatasetPlan, output: Path, watch: Watcher) -> ReportPlace:
    """The dataset, rendered if the plan names none."""
    from evidex.data.datasets import load_dataset
    from evidex.scenes import render_archive

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
    splits = [load_dataset(path, name) for name in names]
    return ReportPlace(output, path, data.split, dataset_digest(splits), data, data.name or splits[0].name)


def _check_titles(places: Sequence[ReportPlace]) -> None:
    titles = [place.title for place in places]
    if double := sorted({title for title in titles if titles.count(title) > 1}):
        raise ConfigError(f"two datasets of the plan are called '{double[0]}'; give each a name = \"…\"")


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


def _run_all(parts: Sequence[Results], jobs: int, watch: Watcher, progress: Progress) -> list[Done]:
    waiting = [[job for job in part.work.jobs.values() if not finished(job, part.place)] for part in parts]
    total = sum(len(part.work.jobs) for part in parts)
    count = total - sum(map(len, waiting))
    progress(count, total)
    done: list[Done] = []
    for part, left in zip(parts, waiting, strict=True):
        for piece in results(left, partial(run_job, place=part.place), jobs):
            done.append(piece)
            watch(_line(piece))
            progress(count + len(done), total)
    return done


def _line(done: Done) -> str:
    parts = (["trained"] if done.trained else []) + ([f"{done.measured} measurements"] if done.measured else [])
    return f"{done.label}: {', '.join(parts) or 'nothing left to do'}"
