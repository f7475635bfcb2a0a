"""What a study measures of a model: val, clean and degraded."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evidex.evaluation.study.plan import Measure

if TYPE_CHECKING:
    from evidex.encoders.model import Model
    from evidex.evaluation.deferral import GateName
    from evidex.evaluation.features import Encoded

RATIOS = (0.0, 0.1)
GATES: Final[dict[GateName, str]] = {"vacuity": "", "belief": "_by_belief"}
"""By which uncertainty the queries are chosen, and what is added to the refinement's name then."""


def measure(model: Model, dataset_path: str, kind: Measure) -> dict[str, Any]:
    """Recall on the clean and the noisy split; with "scores" the uncertainty, with "all" refinement as well."""
    from evidex.evaluation.features import Encoded, encode_texts, graphs_for, match
    from evidex.evaluation.judge import judge_of
    from evidex.evaluation.protocol import evaluate_encoded, out_of_domain_features
    from evidex.evaluation.recall import recall
    from evidex.evaluation.reranking import reranked_recall

    found: dict[str, Any] = {}
    dataset, noisy = _splits(dataset_path)
    for name, split in (("clean", dataset), ("noisy", noisy)):
        pixels = _pixels(dataset_path, name, model)
        images = model.encode_pixels(pixels, batch_size=256, graphs=graphs_for(model, dataset))
        texts, owner = encode_texts(model, split.captions, batch_size=256), dataset.image_of_caption
        encoded = Encoded(images, texts, owner, compare=model.similarity)
        if kind == "recall":
            similarity = match(images, texts, model.similarity).similarity
            found[name] = recall(similarity, dataset.image_of_caption).to_json()
        else:
            extra: dict[str, Any] = {}
            if name == "clean":
                labels = [record.label for record in dataset.records]
                extra = {"labels": labels if all(labels) else None, "out_of_domain": out_of_domain_features(model)}
            else:
                encoded = replace(encoded, degraded_images=noisy.noisy, degraded_captions=noisy.changed_captions)
            found[name] = evaluate_encoded(encoded, judge_of(model), **extra).to_json()
        again = reranked_recall(model, encoded)
        if again is not None:
            found[name]["reranked"] = again.to_json()
        if kind == "all" and model.inner_product and not model.object_graphs:
            found[name] |= _refined(model, split, encoded)
    return found


def _refined(model: Model, split: Any, encoded: Encoded) -> dict[str, Any]:
    """RSUM with the most uncertain queries refined: by RS-TTA and, where WordNet is installed, by generic copies."""
    from evidex.evaluation.deferral import Refinements, refine_and_rank
    from evidex.evaluation.features import match
    from evidex.evaluation.query_uncertainty import uncertainty_scores
    from evidex.retrieval.refiners import GenericRefiner, RsRefiner

    refiners = {"rs_tta": RsRefiner()} | ({"generic_tta": GenericRefiner()} if find_spec("wn") else {})
    similarity = match(encoded.images, encoded.texts).similarity
    image_scores, text_scores = (uncertainty_scores(each, model.temperature) for each in (similarity, similarity.T))
    table = {}
    for name, refiner in refiners.items():
        for gate, ending in GATES.items():
            steps = refine_and_rank(
                model,
                split,
                encoded,
                Refinements(RATIOS, refiner, by=gate),
                image_scores=image_scores,
                text_scores=text_scores,
            )
            table[name + ending] = {str(step.ratio): round(step.recall.rsum, 3) for step in steps}
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
