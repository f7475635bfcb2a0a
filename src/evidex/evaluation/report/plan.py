"""What a benchmark does, read from one TOML file; unknown keys fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from evidex.checked import Checked, Count, Name, NameOrEmpty, NotNegative, Positive, Range, Seed, Share, parse, to_table
from evidex.config import Config, apply_override, load_config, merged
from evidex.documents import read_toml
from evidex.errors import ConfigError
from evidex.scenes.scene import LARGEST, SMALLEST

Table = dict[str, Any]
Scenes = Annotated[int, Range(1, 1_000_000, "1 to 1000000 scenes")]
SceneSize = Annotated[int, Range(SMALLEST, LARGEST, f"{SMALLEST} to {LARGEST} pixels")]
Jobs = Annotated[int, Range(0, 4096, "0 to 4096")]

WHOLE = "All"  # the ablation row of ours itself
VARIED = ("b1", "b2", "b3")


@dataclass(frozen=True)
class DatasetPlan(Checked):
    """What is measured, and learned from."""

    name: NameOrEmpty = ""  # in the report; empty = as the captions file says
    path: NameOrEmpty = ""  # folder with captions and images; empty = render a sample archive into the output folder
    split: Name = "test"  # what is measured; checkpoints are always chosen on the training configuration's val split
    scenes: Scenes = 713  # of the rendered archive
    scene_size: SceneSize = 64  # pixels
    scene_seed: Seed = 0


@dataclass(frozen=True)
class NoisePlan(Checked):
    """The degraded split."""

    seed: Seed = 0
    severity: Annotated[float, Range(0.0, 1e6, "0 or more, at most 1e6")] = 1.0


@dataclass(frozen=True)
class RefinementPlan(Checked):
    """How the most uncertain queries of ``ours`` are refined."""

    name: Name = "ELC"  # row of the refined model; the row without refinement bears the model's own name
    generic_name: Name = "ELC_nTTA"
    generic: bool = True  # needs WordNet: pip install evidex[benchmark]
    ratio: Share = 0.1  # of the tables
    ratios: tuple[Share, ...] = (0.0, 0.05, 0.1, 0.15, 0.2)  # of the curve
    seed: Seed = 0


@dataclass(frozen=True)
class StartPlan(Checked):
    """A training that comes first; its towers are where all others start, and their mentors."""

    training: Table = field(default_factory=dict)
    seed: Seed = 1000
    mentors: bool = True


@dataclass(frozen=True)
class ModelPlan(Checked):
    """A row of the comparison: trained here with every seed, or loaded from ``path``."""

    name: str = ""
    config: NameOrEmpty = ""  # a training configuration; empty = the plan's own
    training: Table = field(default_factory=dict)  # changes, e.g. training.loss.objective = "infonce"
    path: NameOrEmpty = ""  # a trained model: file, or name known to load_model
    tokenizer: NameOrEmpty = ""  # any CLIP's folder or hub name, where path is a file of open_clip or OpenAI
    activation: Literal["quick_gelu", "gelu"] = "quick_gelu"  # of such a file: gelu in open_clip's and RemoteCLIP
    seeds: tuple[Seed, ...] = ()  # empty = the plan's


@dataclass(frozen=True)
class AblationRow(Checked):
    """A variant of ``ours``."""

    name: str = ""
    training: Table = field(default_factory=dict)


@dataclass(frozen=True)
class AblationPlan(Checked):
    """Rows of Tables III and IV; the whole of ``ours`` is added as the last one."""

    seeds: tuple[Seed, ...] = ()
    row: tuple[AblationRow, ...] = ()


@dataclass(frozen=True)
class SensitivityPlan(Checked):
    """Values of the loss weights, varied one at a time around ``ours``."""

    seeds: tuple[Seed, ...] = ()
    b1: tuple[Positive, ...] = ()
    b2: tuple[NotNegative, ...] = ()
    b3: tuple[NotNegative, ...] = ()


@dataclass(frozen=True)
class Plan(Checked):
    """One benchmark."""

    title: str = "Benchmark"
    output: Name = "runs/benchmark"
    seeds: tuple[Seed, ...] = (0, 1, 2)
    ours: str = "ELC0"  # the model that is refined, ablated and varied
    rival: str = ""  # the model whose answers Figures 5 and 6 show beside ours; empty = the first other one
    base: NameOrEmpty = ""  # a training configuration that [training] changes
    training: Table = field(default_factory=dict)
    jobs: Jobs = 0  # trainings at a time; 0 = one a core, or one on an accelerator
    batch_size: Count = 64  # items encoded at a time when measuring
    absent: bool = True  # measure whether missing answers are noticed
    dataset: DatasetPlan = field(default_factory=DatasetPlan)
    further: tuple[DatasetPlan, ...] = ()  # [[further]]: other datasets, on each of which all is trained and measured
    noise: NoisePlan = field(default_factory=NoisePlan)
    refinement: RefinementPlan = field(default_factory=RefinementPlan)
    start: StartPlan | None = None
    model: tuple[ModelPlan, ...] = ()
    ablation: AblationPlan = field(default_factory=AblationPlan)
    sensitivity: SensitivityPlan = field(default_factory=SensitivityPlan)

    def our_model(self) -> ModelPlan:
        return next(model for model in self.model if model.name == self.ours)

    def rival_model(self) -> ModelPlan | None:
        """Who is shown beside ours; None where ours is alone."""
        others = [model for model in self.model if model.name != self.ours]
        return next((model for model in others if model.name == self.rival or not self.rival), None)

    @property
    def datasets(self) -> tuple[DatasetPlan, ...]:
        return (self.dataset, *self.further)


def load_plan(path: Path, overrides: Sequence[str] = ()) -> Plan:
    """Read and check ``path``; paths of configurations in it are relative to the working directory.

    ``overrides`` are ``section.key=value``, e.g. ``training.train.epochs=2``.
    """
    table = read_toml(path, ConfigError)
    for override in overrides:
        apply_override(table, override)
    plan = parse(Plan, table, str(path))
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
    if plan.rival and plan.rival_model() is None:
        raise ConfigError(f"{where}: rival = '{plan.rival}' is no other model; choose one of {', '.join(names)}")
    taken = {plan.refinement.name, plan.refinement.generic_name} & set(names)
    if taken:
        raise ConfigError(f"{where}: model '{min(taken)}' bears the name of a refined row; rename one of them")
    for model in plan.model:
        if model.path and (model.config or model.training):
            raise ConfigError(f"{where}: model '{model.name}' has both a path and a training; keep one")
        if model.tokenizer and not model.path:
            raise ConfigError(f"{where}: model '{model.name}' has a tokenizer and no path; name its file")
    if not plan.seeds:
        raise ConfigError(f"{where}: seeds is empty; give at least one")
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
