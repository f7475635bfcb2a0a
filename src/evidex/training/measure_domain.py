"""Tell a model what it was taught about, from the captions that trained it and others of their kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evidex.config import EncoderConfig
from evidex.data.datasets import Dataset
from evidex.data.function_words import FUNCTION_WORDS
from evidex.encoders.domain import DIRECTIONS, Domain, count_words, fit_domain, words_of
from evidex.encoders.model import Model, load_model
from evidex.encoders.nearness import Nearness
from evidex.evaluation.features import encode_images
from evidex.training.batches import spread

MOST_PICTURES = 2000
MOST_TEXTS = 20_000
"""More add no direction, only time and memory."""
LEAST_TEXTS = 10 * DIRECTIONS
LEAST_OTHERS = 100
"""The limit leaves a twentieth of them beyond; of fewer, a handful would place it."""
# To a model of few words most questions are out of domain. Of 108 common questions about overhead imagery one of the
# rendered sample archive (270 words) would refuse 73 %. The compact model's towers with the words and directions of
# parts of RSICD and RSITMD would refuse 9 to 16 % with 450 to 1,750 words, 6 to 7 % with 2,000 to 2,300, 3 % with
# all 2,324 of RSICD and none with all 3,237 of RSITMD. The number of texts says less: the sample archive's 2,371
# come from one grammar.
LEAST_WORDS = 2000


def measure_domain(
    model: Model,
    taught: Iterable[str],
    others: Iterable[str],
    before: Domain | None = None,
    pictured: Mapping[str, int] | None = None,
) -> Domain | None:
    """What ``model`` knows after training with ``taught``; ``others`` are captions of the same kind that did not train.

    Words that it knew ``before`` it still knows. A word that is a label's name was taught as often as it was
    ``pictured``, however few texts have it. None where the rest cannot be told: of too few captions or words, or
    where the model gives them all one vector.
    """
    trained = sorted(set(taught))
    new = sorted(set(others).difference(trained))
    met = count_words(trained) | Counter(pictured or {})
    words = frozenset(met) | (frozenset() if before is None else before.words)
    if len(words) < LEAST_WORDS or len(trained) < LEAST_TEXTS or len(new) < LEAST_OTHERS:
        return None
    words |= words_of(FUNCTION_WORDS).union(*map(words_of, _exchangeable()))
    try:
        known = fit_domain(words, model.encode_texts(_some(trained)), model.encode_texts(_some(new)))
    except ValueError:  # also how numpy says that there is no basis
        return None
    if before is not None and before.counts is None:
        return known
    return replace(known, counts=_counts(words, met if before is None else met + Counter(before.counts)))


def with_counts(known: Domain, taught: Iterable[str], pictured: Mapping[str, int] | None = None) -> Domain:
    """``known``, of a model that is trained already, with the counts of its words in the texts that ``taught`` it."""
    return replace(known, counts=_counts(known.words, count_words(taught) | Counter(pictured or {})))


def _counts(words: frozenset[str], met: Counter[str]) -> dict[str, int]:
    """How often each of ``words`` was taught: as often as it was ``met``, or as what it may stand in the place of."""
    counts = {word: met[word] for word in words}
    for phrases in _exchangeable():
        often = max(min((met[word] for word in words_of([phrase])), default=0) for phrase in phrases)
        for word in words_of(phrases) & words:
            counts[word] = max(counts[word], often)
    return counts


def _exchangeable() -> list[tuple[str, ...]]:
    """Phrases of the lexicon, those together that may stand for each other: a model is taught them all."""
    from evidex.degrade import Lexicon

    return [(entry.phrase, *entry.alternatives) for entry in Lexicon.load().entries]


def own_similarity(model: Model, dataset: Dataset) -> NDArray[np.float32]:
    """Of each caption of the pictures, or of some of them evenly spread, to its own picture."""
    chosen = spread(len(dataset), MOST_PICTURES)
    images = encode_images(model, dataset, chosen.tolist())
    owners = [(row, text) for row, place in enumerate(chosen) for text in dataset.records[place].captions]
    texts = model.encode_texts([text for _, text in owners])
    return np.asarray((texts * images[[row for row, _ in owners]]).sum(axis=1), np.float32)


def measure_saved_domain(
    path: Path,
    device: str,
    taught: Iterable[str],
    val: Dataset,
    text_tower: Path | None = None,
    before: Domain | None = None,
    pictured: Mapping[str, int] | None = None,
) -> None:
    """The same for the model at ``path``, which is replaced in one step, unless it has a domain already.

    Fitted anew on another machine it would differ in the last digits, and calibrations be taken for outdated.
    ``text_tower`` is the folder of the pretrained tower that says how near other words are to what was taught; what
    it said of the words of a model that is trained on, whose domain was ``before``, goes on to hold.
    """
    model = load_model(path, device=device, engine="torch")
    if model.domain is not None:
        return
    texts = list(taught)
    known = measure_domain(model, texts, val.captions, before, pictured)
    if known is not None:
        nearness = nearness_to(texts, text_tower, device) if before is None else before.nearness
        model.domain = replace(known.with_matches(own_similarity(model, val)), nearness=nearness)
        model.save(path)


def nearness_to(
    taught: Iterable[str], text_tower: Path | None, device: str, rarer: Sequence[str] = ()
) -> Nearness | None:
    """How near common words are to what was taught, for the tower in ``text_tower``; None where there is none.

    Of ``rarer`` words the near ones are told too.
    """
    from evidex.encoders.frozen_text import judge_words

    return None if text_tower is None else judge_words(text_tower, sorted(set(taught)), device, rarer)


def pretrained_text_tower(config: EncoderConfig) -> Path | None:
    """The folder of the text tower that a run starts from."""
    return Path(config.source) / config.text_tower if config.kind == "towers" else None


def _some(texts: list[str]) -> list[str]:
    return [texts[place] for place in spread(len(texts), MOST_TEXTS)]
