"""What a model was taught about, told from its training texts: the words they use and the directions they span.

Vacuity compares a query with a gallery; it cannot see that the question itself means nothing to the model. A text is
out of domain if it uses a word that no training text has, nor one near to what they speak of
(`evidex.encoders.nearness`), *and* its vector lies further outside of the directions in which training texts differ
than nearly all texts of their kind that did not train. Either alone says nothing: "cars" alone is no caption but known,
and a new word may be one for a known thing.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evidex.encoders.nearness import Nearness
from evidex.errors import InputError

Vectors = NDArray[np.float32]
Numbers = NDArray[np.float64]

DIRECTIONS = 64
OUT_OF_DOMAIN = 0.95
"""Share of the texts that did not train which must lie less far outside."""
MOSTLY_UNKNOWN = 0.5
"""The same share for a text of which most words that name something are neither taught nor near."""
WEAK = 0.1
"""Share of the right pictures that are less similar to their text than what counts as a match at all."""
FAINT = 0.25
"""The same share for a match that may be one, but is none to rely on."""
USUAL = 0.5
"""The same share for a match as right answers usually have it."""
IN_PASSING = 0.65
"""Share of all taught words that texts have in passing, too seldom to teach how the thing looks."""
OFTEN = 0.9
"""What was taught more often than this share of all words was taught well."""
_STEPS = 201
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, eq=False)
class Domain:
    """What a model knows, and how far texts of its own kind lie outside of it."""

    words: frozenset[str]
    mean: Vectors
    """(dim,)"""
    directions: Vectors
    """(directions, dim), orthonormal."""
    lengths: Vectors
    """Quantiles, from 0 to 1 in equal steps, of what lies outside in texts that did not train."""
    matches: Vectors | None = None
    """Quantiles likewise of the similarity of such texts to their own pictures; None where not measured."""
    nearness: Nearness | None = None
    """Of words that the model was not taught; None where no pretrained tower judged them."""
    counts: Mapping[str, int] | None = None
    """For each of ``words`` how many distinct texts taught it; None where nobody counted."""

    def __post_init__(self) -> None:
        arrays = self.mean, self.directions, self.lengths, *(() if self.matches is None else (self.matches,))
        if not all(values.dtype == np.float32 and np.isfinite(values).all() for values in arrays):
            raise ValueError("the domain holds numbers that are none")
        fits = self.mean.ndim == self.lengths.ndim == 1 and self.directions.ndim == 2 and len(self.lengths) > 1
        if not (fits and self.directions.shape[1:] == self.mean.shape and 0 < len(self.directions) < len(self.mean)):
            raise ValueError("the domain's vectors do not fit together")
        if np.abs(self.directions @ self.directions.T - np.eye(len(self.directions))).max() > 1e-3:
            raise ValueError("the domain's directions are not orthonormal")
        if (np.diff(self.lengths) < 0).any() or self.lengths[0] < 0 or self.lengths[-1] == 0:
            raise ValueError("the domain's lengths do not rise from 0 or more")
        if self.matches is not None and (
            self.matches.ndim != 1 or len(self.matches) < 2 or (np.diff(self.matches) < 0).any()
        ):
            raise ValueError("the domain's matches do not rise")
        if self.counts is not None and (self.counts.keys() != self.words or min(self.counts.values()) < 0):
            raise ValueError("the domain's counts are not those of its words")

    @cached_property
    def digest(self) -> str:
        """The same for the same domain alone: what left texts out must know by which."""
        digest = hashlib.sha256("\n".join(sorted(self.words)).encode())
        for values in (self.mean, self.directions, self.lengths, self.matches):
            digest.update(b"" if values is None else np.ascontiguousarray(values).tobytes())
        if self.nearness is not None:
            digest.update("\n".join(self.nearness.words).encode() + self.nearness.ranks.tobytes())
        if self.counts is not None:
            digest.update(" ".join(str(self.counts[word]) for word in sorted(self.words)).encode())
        return digest.hexdigest()

    def with_matches(self, similarity: Vectors) -> Domain:
        """The same, knowing how similar texts that did not train are to their own pictures."""
        return replace(self, matches=_quantiles(similarity.astype(np.float64)))

    @property
    def least_match(self) -> float | None:
        """A best match less similar than this is none, as nearly all right answers are more similar."""
        return self._match(WEAK)

    @property
    def fair_match(self) -> float | None:
        """A best match less similar than this is a faint one."""
        return self._match(FAINT)

    @property
    def usual_match(self) -> float | None:
        """Half of the right answers are more similar than this."""
        return self._match(USUAL)

    def _match(self, share: float) -> float | None:
        if self.matches is None:
            return None
        return float(np.interp(share, np.linspace(0.0, 1.0, len(self.matches)), self.matches.astype(np.float64)))

    def matched(self, similarity: Vectors) -> Numbers | None:
        """Share of right pictures that are less similar to their text than these are; 0 where it is no match at all.

        None where right pictures were not measured.
        """
        if self.matches is None:
            return None
        shares = np.interp(similarity, self.matches.astype(np.float64), np.linspace(0.0, 1.0, len(self.matches)))
        return np.where(shares < WEAK, 0.0, shares)

    def outside(self, vectors: Vectors) -> Numbers:
        """Length of the part of each vector (n, dim) that lies outside the known directions."""
        apart = vectors.astype(np.float64) - self.mean
        within = apart @ self.directions.T.astype(np.float64)
        return np.asarray(np.sqrt(np.maximum((apart**2).sum(axis=1) - (within**2).sum(axis=1), 0.0)))

    def outlying(self, vectors: Vectors) -> Numbers:
        """Share of the texts that did not train which lie less far outside; NaN for what is no number."""
        steps = np.linspace(0.0, 1.0, len(self.lengths))
        return np.asarray(np.interp(self.outside(vectors), self.lengths.astype(np.float64), steps))

    def new_words(self, text: str) -> tuple[str, ...]:
        """The words of ``text`` that the model was never taught, each once; plurals of known ones are known."""
        words = dict.fromkeys(_WORD.findall(text.lower()))
        return tuple(word for word in words if not self.words & word_forms(word))

    def words_out_of_domain(self, words: Iterable[str]) -> tuple[str, ...]:
        """Those of ``words`` that are not near to what the model was taught either; all where that is not known."""
        near = self.nearness
        return tuple(word for word in words if near is None or not any(map(near.is_near, word_forms(word))))

    def times_taught(self, word: str) -> int | None:
        """How many texts taught ``word``, for one or for many; None where nobody counted."""
        return None if self.counts is None else sum(self.counts.get(form, 0) for form in word_forms(word))

    def taught_more(self, word: str) -> float | None:
        """Share of all taught words that were taught less often than ``word``; None where nobody counted."""
        often = self.times_taught(word)
        return None if often is None else bisect_left(self._ordered_counts, often) / len(self._ordered_counts)

    @cached_property
    def _ordered_counts(self) -> list[int]:
        return sorted((self.counts or {}).values())

    def hardly_taught(self, words: Iterable[str]) -> tuple[str, ...]:
        """Those of ``words`` that are not near, and were taught in passing or never; none where either is not known."""
        if self.counts is None or self.nearness is None:
            return ()
        return self.words_out_of_domain(word for word in words if (self.taught_more(word) or 0.0) <= IN_PASSING)

    def is_common(self, word: str) -> bool:
        """Whether ``word`` is one that people usually write, as far as that is known; captions have slips too."""
        near = self.nearness
        return near is not None and any(form in near for form in word_forms(word))


_SHORTEST_STEM = 3  # "toes" is no plural of "to"
_LONG_PLURALS = ("ses", "xes", "zes", "ches", "shes", "oes")


def word_forms(word: str) -> set[str]:
    """The word with and without the endings of a plural."""
    forms = {word, f"{word}s", f"{word}es"}
    if len(word) > _SHORTEST_STEM and word.endswith("s") and not word.endswith("ss"):
        forms.add(word[:-1])
    if len(word) > _SHORTEST_STEM + 1 and word.endswith(_LONG_PLURALS):
        forms.add(word[:-2])
    if word.endswith("y"):
        forms.add(f"{word[:-1]}ies")
    if word.endswith("ies"):
        forms.add(f"{word[:-3]}y")
    return forms


def words_of(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word for text in texts for word in _WORD.findall(text.lower()))


def count_words(texts: Iterable[str]) -> Counter[str]:
    """In how many distinct texts each word stands."""
    return Counter(word for text in set(texts) for word in words_of([text]))


def fit_domain(words: frozenset[str], trained: Vectors, others: Vectors) -> Domain:
    """From vectors (n, dim) of distinct texts that trained, and of ``others`` of their kind that did not."""
    if len(trained) <= DIRECTIONS or len(others) < 2:
        raise InputError(
            f"{len(trained)} training texts and {len(others)} others are too few to tell what a model knows; "
            f"give more than {DIRECTIONS}, and at least two"
        )
    mean = trained.mean(axis=0, dtype=np.float64)
    apart = trained.astype(np.float64) - mean
    count = min(DIRECTIONS, apart.shape[1] // 2)  # some of the space must be left to lie outside of
    basis = np.ascontiguousarray(np.linalg.eigh(apart.T @ apart)[1][:, ::-1][:, :count].T, np.float32)
    rough = Domain(words, mean.astype(np.float32), basis, np.array([0.0, 1.0], np.float32))
    return replace(rough, lengths=_quantiles(rough.outside(others)))


def _quantiles(values: Numbers) -> Vectors:
    return np.quantile(values, np.linspace(0.0, 1.0, _STEPS)).astype(np.float32)
