"""The evaluation protocol: a model and a split in, recall and the worth of its uncertainty out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evidex.data.labels import as_typed
from evidex.evaluation.absent import out_of_domain_queries, removed_class, tell_apart
from evidex.evaluation.deferral import NO_REFINEMENTS, Refinements, refine_and_rank
from evidex.evaluation.features import Encoded, EvaluatedModel, Split, encode_images, encode_texts, match
from evidex.evaluation.fine_grain import fine_grain
from evidex.evaluation.learned_quality import DirectionQueries, learned_quality
from evidex.evaluation.noisy import NoisySplit
from evidex.evaluation.out_of_domain_pictures import out_of_domain_pictures
from evidex.evaluation.query_uncertainty import SCORE_NAMES, uncertainty_scores
from evidex.evaluation.recall import BestRanks, Recall, best_ranks_i2t, best_ranks_t2i, recall, recall_of
from evidex.evaluation.result import DirectionResult, Evaluation, ScoreQuality, Subject
from evidex.evaluation.scene_names import SceneNames, scene_names
from evidex.evaluation.selective import auroc, selective
from evidex.evaluation.stages import Stages
from evidex.progress import Progress, silent
from evidex.retrieval.certainty.learned_score import LEARNED

if TYPE_CHECKING:
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
    noisy = None if noisy_seed is None else NoisySplit(dataset, noisy_seed, severity=severity)
    split: Split = dataset if noisy is None else noisy
    stages = Stages(progress, _work(dataset, noisy, refinements.ratios, absent))
    clean, encoded = _encoded(model, dataset, noisy, stages, batch_size)
    labels = [record.label for record in dataset.records]
    found = evaluate_features(
        encoded.images,
        encoded.texts,
        encoded.image_of_caption,
        model.temperature,
        encoded.degraded_images,
        degraded_captions=encoded.degraded_captions,
        labels=labels if absent and any(label is not None for label in labels) else None,
        out_of_domain=_out_of_domain(model, stages, batch_size) if absent else None,
    )
    deferral = refine_and_rank(
        model,
        split,
        encoded,
        refinements,
        image_uncertainty=found.i2t.scores.vacuity,
        text_uncertainty=found.t2i.scores.vacuity,
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
    )


def _encoded(
    model: EvaluatedModel, dataset: Dataset, noisy: NoisySplit | None, stages: Stages, batch_size: int
) -> tuple[Encoded, Encoded]:
    """The clean split, and the one that is measured: the same, or the degraded."""
    clean_images = encode_images(model, dataset, batch_size=batch_size, progress=stages.next(len(dataset)))
    # Clean and degraded captions together, so that a caption that did not change keeps its very features.
    sentences = dataset.captions if noisy is None else [*dataset.captions, *noisy.captions]
    texts = encode_texts(model, sentences, batch_size=batch_size, progress=stages.next(len(dataset.captions)))
    clean = Encoded(clean_images, texts[: len(dataset.captions)], dataset.image_of_caption)
    if noisy is None:
        return clean, clean
    which = np.flatnonzero(noisy.noisy)
    images = clean_images.copy()
    if len(which):
        images[which] = encode_images(
            model, noisy, which.tolist(), batch_size=batch_size, progress=stages.next(len(which))
        )
    degraded = Encoded(
        images, texts[len(dataset.captions) :], dataset.image_of_caption, noisy.noisy, noisy.changed_captions
    )
    return clean, degraded


def out_of_domain_features(
    model: EvaluatedModel, *, batch_size: int = 64, progress: Progress = silent
) -> tuple[Features, Features]:
    """Features of the pictures and of the texts from another world."""
    pictures = out_of_domain_pictures(OUT_OF_DOMAIN_PICTURES, np.random.default_rng(OUT_OF_DOMAIN_SEED))
    images = model.encode_images(pictures, batch_size=batch_size, progress=progress)
    return images, encode_texts(model, out_of_domain_queries(), batch_size=batch_size)


def _out_of_domain(model: EvaluatedModel, stages: Stages, batch_size: int) -> tuple[Features, Features]:
    return out_of_domain_features(model, batch_size=batch_size, progress=stages.next(OUT_OF_DOMAIN_PICTURES))


def with_fine_grain(found: Evaluation, model: EvaluatedModel, dataset: Dataset) -> Evaluation:
    """``found`` of ``model`` on ``dataset``, with captions put against their twins with one thing exchanged."""
    if found.encoded is None:
        raise ValueError("the evaluation kept no features; take one that evaluate() made")
    return replace(found, fine_grain=fine_grain(model, found.encoded.images, dataset.records))


def name_scenes(model: EvaluatedModel, images: Features, labels: Sequence[str | None]) -> SceneNames | None:
    """Ask for each label by its name among ``images``; None where there are no labels."""
    names = sorted({label for label in labels if label is not None})
    if not names:
        return None
    queries = encode_texts(model, [as_typed(name) for name in names])
    known = getattr(model, "domain", None)
    floor = None if known is None else known.least_match
    return scene_names(match(queries, images).similarity, names, labels, floor)


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
    matching = match(image_features, text_features)
    owner = np.asarray(image_of_caption)
    i2t, t2i = best_ranks_i2t(matching.similarity, owner), best_ranks_t2i(matching.similarity, owner)
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
            DirectionQueries(matching.similarity, image_features, text_features, images, temperature),
            i2t,
            identity=matching.text_identity,
            degraded=degraded_mask,
            labels=None if labels is None or caption_labels is None else (labels, caption_labels),
            out_of_domain=None if out_of_domain is None else out_of_domain[0],
        ),
        t2i=_direction(
            DirectionQueries(matching.similarity.T, text_features, image_features, owner.astype(np.int64), temperature),
            t2i,
            identity=matching.image_identity,
            degraded=degraded_captions,
            labels=None if labels is None or caption_labels is None else (caption_labels, labels),
            out_of_domain=None if out_of_domain is None else out_of_domain[1],
        ),
    )


def _direction(
    asked: DirectionQueries,
    ranks: BestRanks,
    *,
    identity: NDArray[np.int64],
    degraded: Mask | None,
    labels: tuple[Sequence[str | None], Sequence[str | None]] | None,
    out_of_domain: Features | None,
) -> DirectionResult:
    """One direction; ``labels`` of queries and gallery, ``out_of_domain`` features of other queries."""
    similarity, temperature = asked.similarity, asked.temperature
    scores = uncertainty_scores(similarity, temperature, identity=identity)
    hits = {k: ranks.hits(k) for k in ERROR_CUTOFFS}
    removed = None
    if labels is not None:
        removed = removed_class(similarity, *labels, temperature, identity=identity, present=scores)
    outside = None
    if out_of_domain is not None:
        other = uncertainty_scores(out_of_domain @ asked.gallery.T, temperature, identity=identity)
        outside = tell_apart(other, scores)
    quality = {}
    for name in SCORE_NAMES:
        error = {k: selective(scores[name][~np.isnan(hit)], hit[~np.isnan(hit)]) for k, hit in hits.items()}
        quality[name] = ScoreQuality(
            error_auroc={k: result.auroc for k, result in error.items()},
            aurc={k: result.aurc for k, result in error.items()},
            degraded_auroc=None if degraded is None else auroc(scores[name][degraded], scores[name][~degraded]),
            removed_class_auroc=None if removed is None else removed.auroc[name],
            out_of_domain_auroc=None if outside is None else outside.auroc[name],
        )
    learned = learned_quality(asked, hits, degraded=degraded, labels=labels, out_of_domain=out_of_domain)
    if learned is not None:
        quality[LEARNED] = learned
    return DirectionResult(scores=scores, hits=hits, quality=quality, degraded=degraded)


def _recall(encoded: Encoded) -> Recall:
    return recall(match(encoded.images, encoded.texts).similarity, encoded.image_of_caption, CUTOFFS)


def _work(dataset: Dataset, noisy: NoisySplit | None, ratios: Sequence[float], absent: bool) -> int:
    """How many items there are to encode, for progress."""
    once = len(dataset) + len(dataset.captions) + _refined(dataset, ratios)
    return once + (0 if noisy is None else int(noisy.noisy.sum())) + (OUT_OF_DOMAIN_PICTURES if absent else 0)


def _refined(dataset: Dataset, ratios: Sequence[float]) -> int:
    return round(max(ratios, default=0.0) * (len(dataset) + len(dataset.captions)))
