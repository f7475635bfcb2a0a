"""What a study does, read from one TOML file; unknown keys fail.

Overrides are ``section.key=value`` as for ``evidex train --set``. In them and in names of members ``{seed}`` and
``{runs}`` stand for the seed and the folder of the runs, so that a run may name another one's model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evidex.checked import Checked, Name, NameOrEmpty, Seed, parse
from evidex.documents import read_toml
from evidex.errors import ConfigError

Measure = Literal["recall", "scores", "all"]
"""Of the clean and the noisy split: recall; the worth of the uncertainty too; refinement as well."""


@dataclass(frozen=True)
class RunPlan(Checked):
    """A variant, trained with every seed."""

    name: str = ""
    base: NameOrEmpty = ""  # empty = the study's
    set: tuple[str, ...] = ()
    seeds: tuple[Seed, ...] = ()  # empty = the study's
    measure: Literal["", "recall", "scores", "all"] = ""  # empty = the study's


@dataclass(frozen=True)
class CommitteePlan(Checked):
    """Runs put together as one model: their features side by side, or the mean of their weights."""

    name: str = ""
    members: tuple[Name, ...] = ()  # names of runs with their seeds, e.g. "elc-s0" or "elc-s{seed}"
    join: Literal["features", "weights"] = "features"  # weights: of one start, encoder.seed; no larger than one of them
    seeds: tuple[Seed, ...] = ()
    measure: Literal["", "recall", "scores", "all"] = ""


@dataclass(frozen=True)
class StudyPlan(Checked):
    """One study."""

    base: NameOrEmpty = ""  # a configuration, relative to the working directory
    dataset: NameOrEmpty = ""
    common: tuple[str, ...] = ()  # overrides of all runs
    seeds: tuple[Seed, ...] = (0,)
    measure: Measure = "recall"
    run: tuple[RunPlan, ...] = ()
    committee: tuple[CommitteePlan, ...] = ()


def load_study(path: Path) -> StudyPlan:
    """Read and check ``path``."""
    study = parse(StudyPlan, read_toml(path, ConfigError), str(path))
    if not study.run:
        raise ConfigError(f"{path}: no run; add a [[run]] with a name")
    for committee in study.committee:
        if not committee.members:
            raise ConfigError(f"{path}: committee '{committee.name}' has no members; name its runs")
    for run in study.run:
        if not (run.base or study.base):
            raise ConfigError(f"{path}: run '{run.name}' has no base; name a configuration")
    if "" in [*(run.name for run in study.run), *(committee.name for committee in study.committee)]:
        raise ConfigError(f'{path}: a run or committee has no name; add name = "…"')
    return study
