"""The evaluation protocol: a model and a split in, recall and the worth of its uncertainty out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evidex.errors import InputError
from evidex.evaluation.absent import out_of_domain_queries, removed_class, tell_apart
from evidex.evaluation.deferral import refine_and_rank
from evidex.evaluation.features import (
    Encoded,
    Encoder,
    Split,
    compare_of,
    encode_images,
    encode_texts,
    match,
)
from evidex.evaluation.foreign_pictures import foreign_pictures
from evidex.evaluation.judge import OWN, Judge, judge_of
from evidex.evaluation.noisy import NoisySplit
from evidex.evaluation.recall import Recall, Standing, recall, recall_of, standing_i2t, standing_t2i
from evidex.evaluation.reckoned import Asked, learnt_quality
from evidex.evaluation.result import Direction, Evaluation, ScoreQuality, Subject
from evidex.evaluation.scene_names import SceneNames, asked, scene_names
from evidex.evaluation.scores import SCORE_NAMES, uncertainty_scores
from evidex.evaluation.selective import auroc, selective
from evidex.evaluation.stages import Stages
from evidex.progress import Progress, silent
from evidex.retrieval.certainty.reckoning import RECKONED

if TYPE_CHECKING:
    from evidex.data.datasets import Dataset
    from evidex.retrieval.refine import Refiner

Features = NDArray[np.float32]
Mask = NDArray[np.bool_]

CUTOFFS = (1, 5, 10)
ERROR_CUTOFFS = (1, 10)
FOREIGN_PICTURES = 96
FOREIGN_SEED = 0


@dataclass(frozen=True, eq=False)
class Foreign:
    """Queries from another world, and their similarities (queries, gallery)."""

    rows: Features
    similarity: Features


def evaluate(
    model: Encoder,
    dataset: Dataset,
    *,
    noisy_seed: int | None = None,
    severity: float = 1.0,
    ratios: Sequence[float] = (),
    refiner: Refiner | None = None,
    refine_seed: int = 0,
    absent: bool = True,
    batch_size: int = 64,
    progress: Progress = silent,
) -> Evaluation:
    """Encode ``dataset`` with ``model`` and measure recall and uncertainty in both directions.

    ``noisy_seed`` degrades half of the images and their captions, the half chosen by the seed; recall of the clean
    split is then reported beside. Each of ``ratios`` is a share of the most uncertain queries to refine before ranking
    again, with RS-TTA unless ``refiner`` says otherwise. ``absent`` measures whether missing answers are noticed.
    """
    if ratios and not judge_of(model).inner:
        raise InputError("this model's rows cannot be averaged, so its queries cannot be refined; leave --defer out")
    noisy = None if noisy_seed is None else NoisySplit(dataset, noisy_seed, severity=severity)
    split: Split = dataset if noisy is None else noisy
    stages = Stages(progress, _work(dataset, noisy, ratios, absent))
    clean_images = encode_images(model, dataset, batch_size=batch_size, progress=stages.next(len(dataset)))
    # Clean and degraded captions together, so that a caption that did not change keeps its very features.
    sentences = dataset.captions if noisy is None else [*dataset.captions, *noisy.captions]
    texts = encode_texts(model, sentences, batch_size=batch_size, progress=stages.next(len(dataset.captions)))
    compare = compare_of(model)
    clean = Encoded(clean_images, texts[: len(dataset.captions)], dataset.image_of_caption, compare=compare)
    encoded = clean
    if noisy is not None:
        which = np.flatnonzero(noisy.noisy)
        images = clean_images.copy()
        if len(which):
            images[which] = encode_images(
                model, noisy, which.tolist(), batch_size=batch_size, progress=stages.next(len(which))
            )
        own = texts[len(dataset.captions) :]
        encoded = Encoded(images, own, dataset.image_of_caption, noisy.noisy, noisy.changed_captions, compare)
    labels = [record.label for record in dataset.records]
    foreign_images = foreign_texts = None
    if absent:
        pictures = foreign_pictures(FOREIGN_PICTURES, np.random.default_rng(FOREIGN_SEED))
        foreign_images = model.encode_images(pictures, batch_size=batch_size, progress=stages.next(len(pictures)))
        foreign_texts = encode_texts(model, out_of_domain_queries(), batch_size=batch_size)
    found = evaluate_features(
        encoded.images,
        encoded.texts,
        encoded.image_of_caption,
        model.temperature,
        encoded.degraded_images,
        degraded_captions=encoded.degraded_captions,
        labels=labels if absent and any(label is not None for label in labels) else None,
        foreign_images=foreign_images,
        foreign_texts=foreign_texts,
        judge=judge_of(model),
    )
    deferral = refine_and_rank(
        model,
        split,
        encoded,
        ratios,
        image_uncertainty=found.i2t.scores.vacuity,
        text_uncertainty=found.t2i.scores.vacuity,
        refiner=refiner,
        seed=refine_seed,
        progress=stages.next(_refined(dataset, ratios)),
    )
    stages.finish()
    return replace(
        found,
        subject=Subject(dataset.name, dataset.split, model.fingerprint, noisy_seed, len(dataset.skipped)),
        clean_recall=None if noisy is None else _recall(clean),
        deferral=deferral,
        scene_names=name_scenes(model, encoded.images, labels),
        encoded=encoded,
    )


def name_scenes(model: Encoder, images: Features, labels: Sequence[str | None]) -> SceneNames | None:
    """Ask for each label by its name among ``images``; None where there are no labels."""
    names = sorted({label for label in labels if label is not None})
    if not names:
        return None
    queries = encode_texts(model, [asked(name) for name in names])
    known = getattr(model, "acquaintance", None)
    floor = None if known is None else known.least_match
    return scene_names(match(images, queries, compare_of(model)).similarity.T, names, labels, floor)


def evaluate_features(
    image_features: Features,
    text_features: Features,
    image_of_caption: NDArray[np.integer[Any]],
    temperature: float,
    degraded_mask: Mask | None = None,
    *,
    degraded_captions: Mask | None = None,
    labels: Sequence[str | None] | None = None,
    foreign_images: Features | None = None,
    foreign_texts: Features | None = None,
    judge: Judge = Judge(),  # noqa: B008 - immutable
) -> Evaluation:
    """Evaluate unit features (images, dim) and (captions, dim); caption ``j`` is of image ``image_of_caption[j]``.

    ``degraded_mask`` (images,) marks degraded images; their captions count as degraded unless ``degraded_captions``
    (captions,) says which ones are. ``labels`` (images,) are scene classes for the removed-class test, and the foreign
    features are queries from another world. Each is optional, and what is not given is not measured.

    Beside the scores that need no learning stands the one that evidex reports, learnt from one half of the images and
    judged on the other (`evidex.evaluation.reckoned`), where the split is large enough for that. ``judge`` says how
    rows are compared, and adds the uncertainty of a method that has one of its own.
    """
    matching = match(image_features, text_features, judge.compare)
    owner = np.asarray(image_of_caption)
    i2t, t2i = standing_i2t(matching.similarity, owner), standing_t2i(matching.similarity, owner)
    if degraded_mask is not None and degraded_captions is None:
        degraded_captions = degraded_mask[owner]
    caption_labels = None if labels is None else [labels[i] for i in owner]
    images = np.arange(len(image_features))
    return Evaluation(
        temperature=temperature,
        images=len(image_features),
        captions=len(text_features),
        recall=recall_of(i2t, t2i, CUTOFFS),
        i2t=_direction(
            Asked(matching.similarity, image_features, text_features, images, temperature),
            i2t,
            identity=matching.text_identity,
            degraded=degraded_mask,
            labels=None if labels is None or caption_labels is None else (labels, caption_labels),
            foreign=None
            if foreign_images is None
            else Foreign(foreign_images, judge.compare(foreign_images, text_features)),
            own=lambda rows: judge.own(rows, "image"),
            learns=judge.inner,
        ),
        t2i=_direction(
            Asked(matching.similarity.T, text_features, image_features, owner.astype(np.int64), temperature),
            t2i,
            identity=matching.image_identity,
            degraded=degraded_captions,
            labels=None if labels is None or caption_labels is None else (caption_labels, labels),
            foreign=None
            if foreign_texts is None
            else Foreign(foreign_texts, judge.compare(image_features, foreign_texts).T),
            own=lambda rows: judge.own(rows, "text"),
            learns=judge.inner,
        ),
    )


def _direction(
    asked: Asked,
    standing: Standing,
    *,
    identity: NDArray[np.int64],
    degraded: Mask | None,
    labels: tuple[Sequence[str | None], Sequence[str | None]] | None,
    foreign: Foreign | None,
    own: Callable[[Features], NDArray[np.float64] | None],
    learns: bool,
) -> Direction:
    """One direction; ``labels`` of queries and gallery, ``own`` the uncertainty of a method that has one."""
    similarity, temperature = asked.similarity, asked.temperature
    scores = uncertainty_scores(similarity, temperature, identity=identity)
    hits = {k: standing.hits(k) for k in ERROR_CUTOFFS}
    removed = None
    if labels is not None:
        removed = removed_class(similarity, *labels, temperature, identity=identity, present=scores)
    outside = None
    if foreign is not None:
        strange = uncertainty_scores(foreign.similarity, temperature, identity=identity)
        outside = tell_apart(strange, scores)
    quality = {
        name: replace(
            _quality(scores[name], hits, degraded),
            removed_class_auroc=None if removed is None else removed.auroc[name],
            foreign_auroc=None if outside is None else outside.auroc[name],
        )
        for name in SCORE_NAMES
    }
    doubt = own(asked.queries)
    if doubt is not None:
        abroad = None if foreign is None else own(foreign.rows)
        quality[OWN] = replace(
            _quality(doubt, hits, degraded),
            removed_class_auroc=None if removed is None else 0.5,  # it looks at the query alone
            foreign_auroc=None if abroad is None else auroc(abroad, doubt),
        )
    rows = None if foreign is None else foreign.rows
    learnt = learnt_quality(asked, hits, degraded=degraded, labels=labels, foreign=rows) if learns else None
    if learnt is not None:
        quality[RECKONED] = learnt
    return Direction(scores=scores, hits=hits, quality=quality, degraded=degraded)


def _quality(
    score: NDArray[np.float64], hits: Mapping[int, NDArray[np.float64]], degraded: Mask | None
) -> ScoreQuality:
    """What a score is worth for telling wrong answers and degraded queries."""
    error = {k: selective(score[~np.isnan(hit)], hit[~np.isnan(hit)]) for k, hit in hits.items()}
    return ScoreQuality(
        error_auroc={k: result.auroc for k, result in error.items()},
        aurc={k: result.aurc for k, result in error.items()},
        degraded_auroc=None if degraded is None else auroc(score[degraded], score[~degraded]),
    )


def _recall(encoded: Encoded) -> Recall:
    return recall(match(encoded.images, encoded.texts, encoded.compare).similarity, encoded.image_of_caption, CUTOFFS)


def _work(dataset: Dataset, noisy: NoisySplit | None, ratios: Sequence[float], absent: bool) -> int:
    """How many items there are to encode, for progress."""
    once = len(dataset) + len(dataset.captions) + _refined(dataset, ratios)
    return once + (0 if noisy is None else int(noisy.noisy.sum())) + (FOREIGN_PICTURES if absent else 0)


def _refined(dataset: Dataset, ratios: Sequence[float]) -> int:
    return round(max(ratios, default=0.0) * (len(dataset) + len(dataset.captions)))
