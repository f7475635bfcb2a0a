"""A plan as work: which models to train or load, what to measure of each, and which rows of the report need it.

A job's name is a digest of everything that shapes its result. So nothing that is there already is done again, a
changed setting never meets an old result, and rows that need the same model share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from evidex.config import Config
from evidex.data.datasets import Dataset
from evidex.documents import is_file
from evidex.evaluation.engine.digests import FORMAT, config_digest, digest_of
from evidex.evaluation.report.plan import VARIED, WHOLE, ModelPlan, Plan, training_config
from evidex.files import sha256_of


@dataclass(frozen=True)
class Measure:
    """One measurement of a model."""

    name: Literal["clean", "noisy", "generic"]
    noisy_seed: int | None = None
    severity: float = 1.0
    ratios: tuple[float, ...] = ()
    refine_seed: int = 0
    absent: bool = False
    keep_features: bool = False
    batch_size: int = 64


@dataclass(frozen=True)
class Start:
    """Where all trainings begin: the folder of towers and mentors that ``start.py`` writes, and its name."""

    digest: str
    folder: Path
    image_tower: str
    mentors: bool


@dataclass(frozen=True)
class Job:
    """A model with what is to be measured of it; ``config`` to train, or ``path`` to load."""

    digest: str
    label: str
    seed: int
    measures: tuple[Measure, ...]
    config: Config | None = None
    path: str = ""
    tokenizer: str = ""  # of a published CLIP, with its activation
    activation: str = ""
    needs: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.digest


@dataclass(frozen=True)
class Work:
    """All jobs by digest, and for every row of the report the jobs that it is the mean of."""

    jobs: Mapping[str, Job]
    comparison: Mapping[str, tuple[str, ...]]
    ablation: Mapping[str, tuple[str, ...]]
    sensitivity: Mapping[str, Mapping[float, tuple[str, ...]]]


def expand(plan: Plan, dataset_path: Path, dataset_digest: str, start: Start | None) -> Work:
    """Everything that ``plan`` asks for; what an earlier row has is not asked for again."""
    jobs: dict[str, Job] = {}
    given = _Given(plan, dataset_path, dataset_digest, start)

    def add(
        model: ModelPlan,
        seeds: Sequence[int],
        measures: tuple[Measure, ...],
        variant: str = "",
        changes: dict[str, Any] | None = None,
    ) -> tuple[str, ...]:
        digests = []
        for seed in (0,) if model.path else seeds:
            label = model.name if model.path else f"{model.name}{variant and f' ({variant})'}, seed {seed}"
            job = given.job(model, seed, label, measures, changes or {})
            jobs.setdefault(job.digest, job)
            digests.append(job.digest)
        return tuple(digests)

    ours = plan.our_model()
    comparison = {
        model.name: add(model, model.seeds or plan.seeds, _measures(plan, model))
        for model in sorted(plan.model, key=lambda model: model is not ours)  # ours asks for the most
    }
    brief = _brief(plan)
    ablation: dict[str, tuple[str, ...]] = {}
    if plan.ablation.row:
        seeds = plan.ablation.seeds or plan.seeds
        ablation = {row.name: add(ours, seeds, brief, row.name, row.training) for row in plan.ablation.row}
        ablation[WHOLE] = add(ours, seeds, brief)
    varied_seeds = plan.sensitivity.seeds or plan.seeds
    sensitivity: dict[str, dict[float, tuple[str, ...]]] = {}
    for name in VARIED:
        values = getattr(plan.sensitivity, name)
        if values:
            chosen = float(getattr(training_config(plan, ours).loss, name))
            sensitivity[name] = {
                value: add(ours, varied_seeds, brief, f"{name} = {value:g}", {"loss": {name: value}})
                for value in sorted({*values, chosen})
            }
    in_order = {model.name: comparison[model.name] for model in plan.model}
    return Work(jobs, in_order, ablation, sensitivity)


def dataset_digest(splits: Sequence[Dataset]) -> str:
    """A digest of the splits' names, captions and image sizes; the images themselves are not read."""
    content = [
        [data.name, data.split, *([record.filename, record.label, record.captions, _size(place)] for record, place in
         zip(data.records, data.locations, strict=True))]
        for data in splits
    ]  # fmt: skip
    return digest_of(content)


def measure_digest(measure: Measure, data: str, split: str) -> str:
    return digest_of([FORMAT, asdict(measure), data, split])


@dataclass(frozen=True)
class _Given:
    """What all jobs of a plan share."""

    plan: Plan
    dataset_path: Path
    data: str
    start: Start | None

    def job(
        self, model: ModelPlan, seed: int, label: str, measures: tuple[Measure, ...], changes: dict[str, Any]
    ) -> Job:
        if model.path:
            place = Path(model.path)
            content = sha256_of(place) if is_file(place) else model.path
            published = [Path(model.tokenizer).name, model.activation] if model.tokenizer else []
            digest = digest_of([FORMAT, "loaded", content, *published])
            return Job(digest, label, 0, measures, None, model.path, model.tokenizer, model.activation)
        config = replace(training_config(self.plan, model, changes), seed=seed)
        config = replace(config, data=replace(config.data, path=str(self.dataset_path)))
        digest = config_digest(config, self.data, None if self.start is None else self.start.digest)
        started = config if self.start is None else _started(config, self.start)
        return Job(digest, label, seed, measures, config=started)


def _started(config: Config, start: Start) -> Config:
    """``config`` from the start's towers, with its mentors where it names none."""
    encoder = replace(
        config.encoder, kind="towers", source=str(start.folder), image_tower=start.image_tower, text_tower="words"
    )
    mentors = config.mentors
    if start.mentors:
        image = mentors.image or str(start.folder / f"{start.image_tower}.safetensors")
        mentors = replace(mentors, image=image, text=mentors.text or str(start.folder / "text_mentor.safetensors"))
    return replace(config, encoder=encoder, mentors=mentors)


def _measures(plan: Plan, model: ModelPlan) -> tuple[Measure, ...]:
    """Ours is refined, and like its rival's its features are kept for the figures."""
    refined = model is plan.our_model()
    ratios = tuple(sorted({0.0, plan.refinement.ratio, *plan.refinement.ratios})) if refined else ()
    clean = Measure(
        "clean",
        ratios=(plan.refinement.ratio,) if refined else (),
        refine_seed=plan.refinement.seed,
        absent=plan.absent,
        keep_features=refined or model is plan.rival_model(),
        batch_size=plan.batch_size,
    )
    noisy = replace(clean, name="noisy", noisy_seed=plan.noise.seed, severity=plan.noise.severity, ratios=ratios)
    if not (refined and plan.refinement.generic):
        return clean, noisy
    return clean, noisy, replace(noisy, name="generic", absent=False, keep_features=False)


def _brief(plan: Plan) -> tuple[Measure, ...]:
    """Clean and noisy recall alone, which the noisy measurement has both of."""
    noise = plan.noise
    return (Measure("noisy", noisy_seed=noise.seed, severity=noise.severity, batch_size=plan.batch_size),)


def _size(place: Any) -> int:
    return int(place.stat().st_size if isinstance(place, Path) else place.size)
