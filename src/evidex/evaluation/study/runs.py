"""A study as tasks: one a run and seed, each with the runs whose models it names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evidex.config import Config, load_config
from evidex.errors import ConfigError
from evidex.evaluation.engine.digests import FORMAT, config_digest, digest_of
from evidex.evaluation.engine.tasks import in_order
from evidex.evaluation.study.plan import CommitteePlan, Measure, RunPlan, StudyPlan


@dataclass(frozen=True)
class Run:
    """One model with what is measured of it: ``config`` to train, or ``members`` to put together."""

    key: str
    name: str
    digest: str
    measure: Measure
    base: str = ""
    overrides: tuple[str, ...] = ()
    config: Config | None = None
    members: tuple[str, ...] = ()
    averages: bool = False
    needs: tuple[str, ...] = ()


def expand(study: StudyPlan, output: Path, dataset: str, overrides: Sequence[str] = ()) -> list[Run]:
    """Every run of ``study`` in ``output``; every configuration must parse, and none may wait for itself."""
    runs = [
        _trained(plan, seed, study, output, dataset, overrides)
        for plan in study.run
        for seed in plan.seeds or study.seeds
    ]
    runs += [_committee(plan, seed, study) for plan in study.committee for seed in plan.seeds or study.seeds]
    keys = [run.key for run in runs]
    if double := sorted({key for key in keys if keys.count(key) > 1}):
        raise ConfigError(f"two runs of the study are '{double[0]}'; choose another name")
    homes = {(output / key).resolve(): key for key in keys}
    runs = [replace(run, needs=run.members or _named(run, homes)) for run in runs]
    in_order(runs)
    return runs


def chosen(runs: Sequence[Run], only: Iterable[str]) -> list[Run]:
    """The runs that ``only`` names, with or without a seed; all if it names none."""
    wanted = set(only)
    if unknown := wanted - {name for run in runs for name in (run.key, run.name)}:
        raise ConfigError(f"--only {min(unknown)}: the study has no such run")
    return [run for run in runs if not wanted or wanted & {run.key, run.name}]


def _trained(plan: RunPlan, seed: int, study: StudyPlan, output: Path, dataset: str, overrides: Sequence[str]) -> Run:
    key, base = f"{plan.name}-s{seed}", plan.base or study.base
    texts = [*study.common, *plan.set, *overrides, f"data.path={dataset}", f"seed={seed}", f"output={output / key}"]
    filled = tuple(_filled(text, seed, output) for text in texts)
    config = load_config(Path(base), filled)
    return Run(key, plan.name, _digest(config), plan.measure or study.measure, base, filled, config)


def _committee(plan: CommitteePlan, seed: int, study: StudyPlan) -> Run:
    members = tuple(member.replace("{seed}", str(seed)) for member in plan.members)
    averages = plan.join == "weights"
    digest = digest_of([FORMAT, "average" if averages else "committee", members])
    measure = plan.measure or study.measure
    return Run(f"{plan.name}-s{seed}", plan.name, digest, measure, members=members, averages=averages)


def _filled(text: str, seed: int, output: Path) -> str:
    return text.replace("{seed}", str(seed)).replace("{runs}", str(output))


def _digest(config: Config) -> str:
    """The name of a run's result: its configuration, with mentors named by their run instead of their place."""
    mentors = config.mentors
    image, text = ("/".join(Path(name).parts[-2:]) for name in (mentors.image, mentors.text))
    return config_digest(replace(config, mentors=replace(mentors, image=image, text=text)))


def _named(run: Run, homes: dict[Path, str]) -> tuple[str, ...]:
    """The runs whose models the configuration of ``run`` names."""
    if run.config is None:
        return ()
    names = (run.config.mentors.image, run.config.mentors.text, run.config.encoder.source)
    found = (homes.get(Path(name).resolve().parent) for name in names if name)
    return tuple(dict.fromkeys(key for key in found if key is not None))
