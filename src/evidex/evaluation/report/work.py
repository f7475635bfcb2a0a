"""One job: train the model if it is not there yet, then make the measurements that are missing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evidex.documents import read_json
from evidex.errors import DataError, ModelError
from evidex.evaluation.engine.training import is_trained, train_once
from evidex.evaluation.report.jobs import Job, Measure, measure_digest
from evidex.evaluation.report.plan import DatasetPlan
from evidex.files import write_atomic, write_json_atomic

if TYPE_CHECKING:
    from evidex.data.datasets import Dataset
    from evidex.encoders.model import Model
    from evidex.evaluation.features import Encoded
    from evidex.evaluation.result import Evaluation


@dataclass(frozen=True)
class ReportPlace:
    """Where jobs find the data and leave their results."""

    output: Path
    dataset_path: Path
    split: str
    dataset_digest: str
    data: DatasetPlan = field(default_factory=DatasetPlan)
    title: str = ""  # of the dataset

    def folder(self, job: Job) -> Path:
        return self.output / "models" / job.digest

    def model(self, job: Job) -> str:
        """Where the model of ``job`` is, or is going to be."""
        return job.path or str(self.folder(job) / "model.safetensors")

    def measured(self, job: Job, measure: Measure) -> Path:
        name = f"{measure.name}-{measure_digest(measure, self.dataset_digest, self.split)}"
        return self.output / "measurements" / job.digest / f"{name}.json"


@dataclass(frozen=True)
class Done:
    """What of a job was not there before."""

    label: str
    trained: bool
    measured: int


def finished(job: Job, place: ReportPlace) -> bool:
    trained = bool(job.path) or is_trained(place.folder(job), job.digest)
    return trained and all(place.measured(job, measure).is_file() for measure in job.measures)


def run_job(job: Job, place: ReportPlace) -> Done:
    """Do what of ``job`` is not done yet. Every result appears whole or not at all, so it may be killed at any time."""
    from evidex.data.datasets import load_dataset

    trained = False
    if job.config is not None:
        config = replace(job.config, output=str(place.folder(job)))
        _, trained = train_once(config, job.digest, job.label)
    missing = [measure for measure in job.measures if not place.measured(job, measure).is_file()]
    if missing:
        model, dataset = _loaded(job, place), load_dataset(place.dataset_path, place.split)
        for measure in missing:
            _measure(model, dataset, measure, place.measured(job, measure))
    return Done(job.label, trained, len(missing))


def _measure(model: Model, dataset: Dataset, measure: Measure, path: Path) -> None:
    from evidex.evaluation.deferral import Refinements
    from evidex.evaluation.protocol import evaluate
    from evidex.retrieval.refiners import GenericRefiner, RsRefiner

    refiner = GenericRefiner() if measure.name == "generic" else RsRefiner()
    found = evaluate(
        model,
        dataset,
        noisy_seed=measure.noisy_seed,
        severity=measure.severity,
        refinements=Refinements(measure.ratios, refiner, measure.refine_seed),
        absent=measure.absent,
        batch_size=measure.batch_size,
    )
    if measure.keep_features and found.encoded is not None:
        _write_features(found.encoded, path.with_suffix(".safetensors"))
    write_json_atomic(path, found.to_json())


def _write_features(encoded: Encoded, path: Path) -> None:
    from safetensors.numpy import save

    arrays: dict[str, Any] = {"images": encoded.images, "texts": encoded.texts, "owner": encoded.image_of_caption}
    if encoded.degraded_images is not None and encoded.degraded_captions is not None:
        arrays |= {"degraded_images": encoded.degraded_images, "degraded_captions": encoded.degraded_captions}
    write_atomic(path, save(arrays))


def comparing_model(job: Job, place: ReportPlace) -> Model | None:
    """The model of ``job`` where it takes one to compare stored rows; None where an inner product does.

    Models are large and may have stayed where they were trained: a report is then drawn from measurements alone.
    """
    from evidex.methods.protocol import implementation

    if job.config is not None:
        if implementation(job.config.method_name).inner_product:
            return None
        if not Path(place.model(job)).is_file():
            raise ModelError(
                f"'{job.label}' compares its rows by its own network, and '{place.model(job)}' is not there; "
                "bring that file or choose another rival"
            )
    return _loaded(job, place)


def _loaded(job: Job, place: ReportPlace) -> Model:
    if job.tokenizer:
        from evidex.encoders.clip_file import load_clip_file

        return load_clip_file(job.path, tokenizer=job.tokenizer, activation=job.activation)
    from evidex.encoders.model import load_model

    return load_model(place.model(job))


def stored_evaluation(path: Path, model: Model | None = None) -> Evaluation:
    """The evaluation whose JSON is at ``path``, with scores and hits of every query, from its stored features.

    ``model`` compares them in its own way; without one it is the inner product.
    """
    from safetensors.numpy import load_file

    from evidex.evaluation.features import Encoded, compare_of, inner_product
    from evidex.evaluation.judge import Judge, judge_of
    from evidex.evaluation.protocol import evaluate_encoded

    figures, features = read_json(path, DataError), path.with_suffix(".safetensors")
    if not features.is_file():
        raise DataError(
            f"'{features}' is not there, from which figures are drawn; bring it, or remove '{path.name}' beside it to "
            "measure again"
        )
    arrays = load_file(features)
    masks = arrays.get("degraded_images"), arrays.get("degraded_captions")
    compare = inner_product if model is None else compare_of(model)
    encoded = Encoded(arrays["images"], arrays["texts"], arrays["owner"], *masks, compare=compare)
    found = evaluate_encoded(encoded, Judge(figures["temperature"]) if model is None else judge_of(model))
    return replace(found, encoded=encoded)
