"""The evaluation protocol: a model and a split in, recall and the worth of its uncertainty out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from evidex.data.labels import spelt_apart
from evidex.errors import InputError
from evidex.evaluation.absent import out_of_domain_queries, removed_class, tell_apart
from evidex.evaluation.deferral import NO_REFINEMENTS, Refinements, refine_and_rank
from evidex.evaluation.features import (
    Encoded,
    EvaluatedModel,
    Split,
    compare_of,
    encode_images,
    encode_texts,
    match,
)
from evidex.evaluation.fine_grain import fine_grain
from evidex.evaluation.judge import OWN, Judge, judge_of
from evidex.evaluation.learned_quality import DirectionQueries, learned_quality
from evidex.evaluation.noisy import NoisySplit
from evidex.evaluation.out_of_domain_pictures import out_of_domain_pictures
from evidex.evaluation.query_uncertainty import SCORE_NAMES, uncertainty_scores
from evidex.evaluation.recall import BestRanks, Recall, best_ranks_i2t, best_ranks_t2i, recall, recall_of
from evidex.evaluation.reranking import reranked_recall
from evidex.evaluation.result import DirectionResult, Evaluation, ScoreQuality, Subject
from evidex.evaluation.scene_names import SceneNames, scene_names
from evidex.evaluation.selective import auroc, selective
from evidex.evaluation.stages import Stages
from evidex.progress import Progress, silent
from evidex.retrieval.certainty.learned_score import LEARNED

if TYPE_CHECKING:
    from PIL.Image import Image

    from evidex.data.datasets import Dataset

Features = NDArray[np.float32]
Mask = NDArray[np.bool_]

CUTOFFS = (1, 5, 10)
ERROR_CUTOFFS = (1, 10)
OUT_OF_DOMAIN_PICTURES = 96
OUT_OF_DOMAIN_SEED = 0


def evaluate(
    model: EvaluatedModel,
    dataset: Dataset,
    *,
    noisy_seed: int | None = None,
    severity: float = 1.0,
    refinements: Refinements = NO_REFINEMENTS,
    absent: bool = True,
    batch_size: int = 64,
    progress: Progress = silent,
) -> Evaluation:
    """Encode ``dataset`` with ``model`` and measure recall and uncertainty in both directions.

    ``noisy_seed`` degrades half of the images and their captions, the half chosen by the seed; recall of the clean
    split is then reported beside. ``refinements`` say which shares of the most uncertain queries are refined before
    ranking again. ``absent`` measures whether missing answers are noticed.
    """
    judge = judge_of(model)
    if refinements.ratios and not judge.inner:
        raise InputError("this model's rows cannot be averaged, so its queries cannot be refined; leave --defer out")
    if refinements.ratios and getattr(model, "object_graphs", False):
        raise InputError("a varied picture has no objects of its own to look at; leave --defer out for this model")
    noisy = None if noisy_seed is None else NoisySplit(dataset, noisy_seed, severity=severity)
    split: Split = dataset if noisy is None else noisy
    stages = Stages(progress, _work(dataset, noisy, refinements.ratios, absent))
    clean, encoded = _encoded(model, dataset, noisy, stages, batch_size)
    labels = [record.label for record in dataset.records]
    found = evaluate_encoded(
        encoded,
        judge,
        labels=labels if absent and any(label is not None for label in labels) else None,
        out_of_domain=_out_of_domain(model, stages, batch_size) if absent else None,
    )
    deferral = refine_and_rank(
        model,
        split,
        encoded,
        refinements,
        image_scores=found.i2t.scores,
        text_scores=found.t2i.scores,
        progress=stages.next(_refined(dataset, refinements.ratios)),
    )
    stages.finish()
    return replace(
        found,
        subject=Subject(
            dataset.name, dataset.split, model.fingerprint, noisy_seed, len(dataset.skipped), dataset.drawn
        ),
        clean_recall=None if noisy is None else _recall(clean),
        deferral=deferral,
        scene_names=name_scenes(model, encoded.images, labels),
        encoded=encoded,
        reranked=reranked_recall(model, encoded),
    )


def _encoded(
    model: EvaluatedModel, dataset: Dataset, noisy: NoisySplit | None, stages: Stages, batch_size: int
) -> tuple[Encoded, Encoded]:
    """The clean split, and the one that is measured: the same, or the degraded."""
    clean_images = encode_images(model, dataset, batch_size=batch_size, progress=stages.next(len(dataset)))
    # Clean and degraded captions together, so that a caption that did not change keeps its very features.
    sentences = dataset.captions if noisy is None else [*dataset.captions, *noisy.captions]
    texts = encode_texts(model, sentences, batch_size=batch_size, progress=stages.next(len(dataset.captions)))
    owner, compare = dataset.image_of_caption, compare_of(model)
    clean = Encoded(clean_images, texts[: len(dataset.captions)], owner, compare=compare)
    if noisy is None:
        return clean, clean
    which = np.flatnonzero(noisy.noisy)
    images = clean_images.copy()
    if len(which):
        images[which] = encode_images(
            model, noisy, which.tolist(), batch_size=batch_size, progress=stages.next(len(which))
        )
    own = texts[len(dataset.captions) :]
    return clean, Encoded(images, own, owner, noisy.noisy, noisy.changed_captions, compare)


def out_of_domain_features(
    model: EvaluatedModel, *, batch_size: int = 64, progress: Progress = silent
) -> tuple[Features, Features]:
    """Features of the pictures and of the texts from another world."""
    images = model.encode_images(_usual_pictures(), batch_size=batch_size, progress=progress)
    return images, encode_texts(model, out_of_domain_queries(), batch_size=batch_size)


@cache
def _usual_pictures() -> list[Image]:
    """Always the same ones, drawn once for all models that are measured in a row."""
    return out_of_domain_pictures(OUT_OF_DOMAIN_PICTURES, np.random.default_rng(OUT_OF_DOMAIN_SEED))


def _out_of_domain(model: EvaluatedModel, stages: Stages, batch_size: int) -> tuple[Features, Features]:
    return out_of_domain_features(model, batch_size=batch_size, progress=stages.next(OUT_OF_DOMAIN_PICTURES))


def with_fine_grain(found: Evaluation, model: EvaluatedModel, dataset: Dataset) -> Evaluation:
    """``found`` of ``model`` on ``dataset``, with captions put against their twins with one thing exchanged.

    Rows that only a method of their own can compare are left out.
    """
    if found.encoded is None:
        raise ValueError("the evaluation kept no features; take one that evaluate() made")
    if not judge_of(model).inner:
        return found
    return replace(found, fine_grain=fine_grain(model, found.encoded.images, dataset.records))


def name_scenes(model: EvaluatedModel, images: Features, labels: Sequence[str | None]) -> SceneNames | None:
    """Ask for each label by its name among ``images``; None where there are no labels."""
    names = sorted({label for label in labels if label is not None})
    if not names:
        return None
    words = frozenset(getattr(getattr(getattr(model, "encoder", None), "tokenizer", None), "vocabulary", ()))
    queries = encode_texts(model, [spelt_apart(name, words) for name in names])
    known = getattr(model, "domain", None)
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
    out_of_domain: tuple[Features, Features] | None = None,
) -> Evaluation:
    """Evaluate unit features (images, dim) and (captions, dim); caption ``j`` is of image ``image_of_caption[j]``.

    ``degraded_mask`` (images,) marks degraded images; their captions count as degraded unless ``degraded_captions``
    (captions,) says which ones are. ``labels`` (images,) are scene classes for the removed-class test, and
    ``out_of_domain`` features of images and of texts from another world. What is not given is not measured.

    Beside the scores that need no learning stands the one that evidex reports, learned from one half of the images and
    judged on the other (`evidex.evaluation.learned_quality`), where the split is large enough for that.
    """
    if degraded_mask is not None and degraded_captions is None:
        degraded_captions = degraded_mask[image_of_caption]
    owner = np.asarray(image_of_caption, np.int64)
    encoded = Encoded(image_features, text_features, owner, degraded_mask, degraded_captions)
    return evaluate_encoded(encoded, Judge(temperature), labels=labels, out_of_domain=out_of_domain)


def evaluate_encoded(
    encoded: Encoded,
    judge: Judge,
    *,
    labels: Sequence[str | None] | None = None,
    out_of_domain: tuple[Features, Features] | None = None,
) -> Evaluation:
    """The same of a split whose rows may be compared in a way of their own; ``judge`` knows the model."""
    images, texts, owner = encoded.images, encoded.texts, encoded.image_of_caption
    matching = match(images, texts, encoded.compare)
    i2t, t2i = best_ranks_i2t(matching.similarity, owner), best_ranks_t2i(matching.similarity, owner)
    caption_labels = None if labels is None else [labels[i] for i in owner]
    both = None if labels is None or caption_labels is None else (labels, caption_labels)
    other_images = other_texts = None
    if out_of_domain is not None:
        other_images = _Other(out_of_domain[0], encoded.compare(out_of_domain[0], texts))
        other_texts = _Other(out_of_domain[1], encoded.compare(images, out_of_domain[1]).T)
    return Evaluation(
        temperature=judge.temperature,
        images=len(images),
        captions=len(texts),
        recall=recall_of(i2t, t2i, CUTOFFS),
        i2t=_direction(
            DirectionQueries(matching.similarity, images, texts, np.arange(len(images)), judge.temperature),
            i2t,
            _Side("image", judge, matching.text_identity, encoded.degraded_images),
            labels=both,
            other=other_images,
        ),
        t2i=_direction(
            DirectionQueries(matching.similarity.T, texts, images, owner, judge.temperature),
            t2i,
            _Side("text", judge, matching.image_identity, encoded.degraded_captions),
            labels=None if both is None else (both[1], both[0]),
            other=other_texts,
        ),
    )


@dataclass(frozen=True, eq=False)
class _Other:
    """Queries out of the domain, and their similarities (queries, gallery)."""

    rows: Features
    similarity: Features


@dataclass(frozen=True, eq=False)
class _Side:
    """Which direction it is: what asks, who judges, which items of the gallery are equal, which queries degraded."""

    modality: Literal["image", "text"]
    judge: Judge
    identity: NDArray[np.int64]
    degraded: Mask | None

    def own(self, rows: Features) -> NDArray[np.float64] | None:
        return self.judge.own(rows, self.modality)


def _direction(
    asked: DirectionQueries,
    ranks: BestRanks,
    side: _Side,
    *,
    labels: tuple[Sequence[str | None], Sequence[str | None]] | None,
    other: _Other | None,
) -> DirectionResult:
    """One direction; ``labels`` of queries and gallery."""
    temperature, identity, degraded = asked.temperature, side.identity, side.degraded
    scores = uncertainty_scores(asked.similarity, temperature, identity=identity)
    hits = {k: ranks.hits(k) for k in ERROR_CUTOFFS}
    removed = outside = None
    if labels is not None:
        removed = removed_class(asked.similarity, *labels, temperature, identity=identity, present=scores)
    if other is not None:
        outside = tell_apart(uncertainty_scores(other.similarity, temperature, identity=identity), scores)
    quality = {
        name: replace(
            _quality(scores[name], hits, degraded),
            removed_class_auroc=None if removed is None else removed.auroc[name],
            out_of_domain_auroc=None if outside is None else outside.auroc[name],
        )
        for name in SCORE_NAMES
    }
    doubt = side.own(asked.queries)
    if doubt is not None:
        abroad = None if other is None else side.own(other.rows)
        quality[OWN] = replace(
            _quality(doubt, hits, degraded),
            removed_class_auroc=None if removed is None else 0.5,  # it looks at the query alone
            out_of_domain_auroc=None if abroad is None else auroc(abroad, doubt),
        )
    if side.judge.inner:
        rows = None if other is None else other.rows
        learned = learned_quality(asked, hits, degraded=degraded, labels=labels, out_of_domain=rows)
        if learned is not None:
            quality[LEARNED] = learned
    return DirectionResult(scores=scores, hits=hits, quality=quality, degraded=degraded)


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
    return once + (0 if noisy is None else int(noisy.noisy.sum())) + (OUT_OF_DOMAIN_PICTURES if absent else 0)


def _refined(dataset: Dataset, ratios: Sequence[float]) -> int:
    return round(max(ratios, default=0.0) * (len(dataset) + len(dataset.captions)))
