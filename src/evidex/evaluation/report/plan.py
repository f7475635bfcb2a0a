"""What a benchmark does, read from one TOML file; unknown keys fail."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from evidex.config import Config, load_config, parse, to_table
from evidex.errors import ConfigError

if TYPE_CHECKING:
    Table: TypeAlias = dict[str, Any]
else:
    Table = dict  # parse() asks isinstance(), which a parametrised type forbids

WHOLE = "All"  # the ablation row of ours itself
VARIED = ("b1", "b2", "b3")


@dataclass(frozen=True)
class DatasetPlan:
    """What is measured, and learnt from."""

    path: str = ""  # folder with captions and images; empty = render a sample archive into the output folder
    split: str = "test"  # what is measured; checkpoints are always chosen on the training configuration's val split
    scenes: int = 713  # of the rendered archive
    scene_size: int = 64  # pixels
    scene_seed: int = 0


@dataclass(frozen=True)
class NoisePlan:
    """The degraded split."""

    seed: int = 0
    severity: float = 1.0


@dataclass(frozen=True)
class RefinementPlan:
    """How the most uncertain queries of ``ours`` are refined."""

    name: str = "ELC"  # row of the refined model; the row without refinement bears the model's own name
    generic_name: str = "ELC_nTTA"
    generic: bool = True  # needs WordNet: pip install evidex[benchmark]
    ratio: float = 0.1  # of the tables
    ratios: tuple[float, ...] = (0.0, 0.05, 0.1, 0.15, 0.2)  # of the curve
    seed: int = 0


@dataclass(frozen=True)
class StartPlan:
    """A training that comes first; its towers are where all others start, and their mentors."""

    training: Table = field(default_factory=dict)
    seed: int = 1000
    mentors: bool = True


@dataclass(frozen=True)
class ModelPlan:
    """A row of the comparison: trained here with every seed, or loaded from ``path``."""

    name: str = ""
    config: str = ""  # a training configuration; empty = the plan's own
    training: Table = field(default_factory=dict)  # changes, e.g. training.loss.objective = "infonce"
    path: str = ""  # a trained model: file, or name known to load_model
    seeds: tuple[int, ...] = ()  # empty = the plan's


@dataclass(frozen=True)
class AblationRow:
    """A variant of ``ours``."""

    name: str = ""
    training: Table = field(default_factory=dict)


@dataclass(frozen=True)
class AblationPlan:
    """Rows of Tables III and IV; the whole of ``ours`` is added as the last one."""

    seeds: tuple[int, ...] = ()
    row: tuple[AblationRow, ...] = ()


@dataclass(frozen=True)
class SensitivityPlan:
    """Values of the loss weights, varied one at a time around ``ours``."""

    seeds: tuple[int, ...] = ()
    b1: tuple[float, ...] = ()
    b2: tuple[float, ...] = ()
    b3: tuple[float, ...] = ()


@dataclass(frozen=True)
class Plan:
    """One benchmark."""

    title: str = "Benchmark"
    output: str = "runs/benchmark"
    seeds: tuple[int, ...] = (0, 1, 2)
    ours: str = "ELC0"  # the model that is refined, ablated and varied
    base: str = ""  # a training configuration that [training] changes
    training: Table = field(default_factory=dict)
    jobs: int = 0  # trainings at a time; 0 = one a core, or one on an accelerator
    batch_size: int = 64  # items encoded at a time when measuring
    absent: bool = True  # measure whether missing answers are noticed
    dataset: DatasetPlan = field(default_factory=DatasetPlan)
    noise: NoisePlan = field(default_factory=NoisePlan)
    refinement: RefinementPlan = field(default_factory=RefinementPlan)
    start: StartPlan | None = None
    model: tuple[ModelPlan, ...] = ()
    ablation: AblationPlan = field(default_factory=AblationPlan)
    sensitivity: SensitivityPlan = field(default_factory=SensitivityPlan)

    def our_model(self) -> ModelPlan:
        return next(model for model in self.model if model.name == self.ours)


def load_plan(path: Path) -> Plan:
    """Read and check ``path``; paths of configurations in it are relative to the working directory."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"'{path}' does not exist; give the path of a benchmark's TOML file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"'{path}' is not readable as TOML: {error}") from None
    start = table.pop("start", None)
    plan = parse(Plan, table, str(path))
    if start is not None:  # parse() knows no optional sections
        plan = replace(plan, start=parse(StartPlan, start, f"{path}: start"))
    _check(plan, str(path))
    return plan


def training_config(plan: Plan, model: ModelPlan, *changes: dict[str, Any], where: str = "") -> Config:
    """The training configuration of ``model``: base, [training], the model's own changes, then ``changes``."""
    table: dict[str, Any] = {}
    source = model.config or plan.base
    if source:
        table = to_table(load_config(Path(source)))
    if not model.config:
        table = merged(table, plan.training)
    for change in (model.training, *changes):
        table = merged(table, change)
    return parse(Config, table, where or f"model '{model.name}': training")


def merged(table: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """``table`` with ``changes`` put in, section by section."""
    result = dict(table)
    for key, value in changes.items():
        known = result.get(key)
        result[key] = merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return result


def _check(plan: Plan, where: str) -> None:
    names = [model.name for model in plan.model]
    if not names:
        raise ConfigError(f"{where}: no model; add a [[model]] with a name")
    for kind, listed in (("model", names), ("ablation row", [*(row.name for row in plan.ablation.row), WHOLE])):
        if "" in listed:
            raise ConfigError(f'{where}: a {kind} has no name; add name = "…"')
        double = sorted({name for name in listed if listed.count(name) > 1})
        if double:
            raise ConfigError(f"{where}: two {kind}s are named '{double[0]}'; choose another name")
    if plan.ours not in names:
        raise ConfigError(f"{where}: ours = '{plan.ours}' is no model; choose one of {', '.join(names)}")
    taken = {plan.refinement.name, plan.refinement.generic_name} & set(names)
    if taken:
        raise ConfigError(f"{where}: model '{min(taken)}' bears the name of a refined row; rename one of them")
    for model in plan.model:
        if model.path and (model.config or model.training):
            raise ConfigError(f"{where}: model '{model.name}' has both a path and a training; keep one")
    seeds = [*plan.seeds, *plan.ablation.seeds, *plan.sensitivity.seeds, *(s for m in plan.model for s in m.seeds)]
    if not plan.seeds:
        raise ConfigError(f"{where}: seeds is empty; give at least one")
    if min([*seeds, plan.noise.seed, plan.refinement.seed, plan.dataset.scene_seed]) < 0:
        raise ConfigError(f"{where}: a seed is negative; use 0 or more")
    ratios = [plan.refinement.ratio, *plan.refinement.ratios]
    if not all(0.0 <= ratio <= 1.0 for ratio in ratios):
        raise ConfigError(f"{where}: a refinement ratio is outside 0 to 1")
    if plan.jobs < 0 or plan.batch_size < 1:
        raise ConfigError(f"{where}: jobs = {plan.jobs} or batch_size = {plan.batch_size} is too small")
    if plan.our_model().path and (plan.ablation.row or any(getattr(plan.sensitivity, name) for name in VARIED)):
        raise ConfigError(f"{where}: '{plan.ours}' is loaded, so it cannot be ablated or varied; train it instead")
    _check_trainings(plan, where)


def _check_trainings(plan: Plan, where: str) -> None:
    """Every training must parse before the first one starts."""
    for model in plan.model:
        if not model.path:
            training_config(plan, model, where=f"{where}: model '{model.name}'")
    for row in plan.ablation.row:
        training_config(plan, plan.our_model(), row.training, where=f"{where}: ablation row '{row.name}'")
    if plan.start is not None:
        training_config(plan, ModelPlan("start"), plan.start.training, where=f"{where}: start")
