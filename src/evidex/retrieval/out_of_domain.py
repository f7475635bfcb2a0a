"""How a question stands to what the model was taught: words it never met, what may have been meant, faint matches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evidex.data.function_words import FUNCTION_WORDS
from evidex.encoders.domain import MOSTLY_UNKNOWN, OUT_OF_DOMAIN, Domain, words_of
from evidex.retrieval.content import names_something
from evidex.retrieval.denial import denied
from evidex.retrieval.filters import Target
from evidex.retrieval.queries import Asking, Direction, Query
from evidex.retrieval.short_questions import thing_of
from evidex.retrieval.spelling import MORE_OFTEN, Mended, question_of
from evidex.retrieval.told_apart import counted, state

if TYPE_CHECKING:
    from evidex.encoders.model import Model

Words = tuple[str, ...]
_MOST_WORDS = 3  # looked up for a question
_LEAST_LETTERS = 4  # shorter words are close to many
_WORD = re.compile(r"[^\W\d_]+")
_CANDIDATES = 5
_CLOSE = 0.8  # of difflib's ratio: "rivr" and "river" have .89


@dataclass(frozen=True)
class Reading:
    """What the model makes of a question."""

    new_words: Words = ()
    """Words that make the question out of domain: the model was never taught them, nor anything like the question."""
    ignored_words: Words = ()
    """Words that the hits may leave out: never taught, or hardly, in a question that is in domain all the same."""
    did_you_mean: Words = ()
    """Words it was taught that are spelt nearly like these or those."""
    in_part: bool = False
    """Whether the question is longer than what the model reads."""
    mended: tuple[Mended, ...] = ()
    """Slips of the pen that were read as what was probably meant."""
    mostly_known: bool = False
    """Whether at least half of the words that name something are known or near, where that can be told."""
    hardly_known: bool = False
    """Whether it hangs on words that were taught in passing or never: what is faintly like it is no answer then."""
    in_passing: Words = ()
    """Those of such words that were taught in passing."""
    negated: str | None = None
    """Words that deny, as they were typed, or a dash that may: the model looks for what is denied all the same."""
    counted: str | None = None
    """How many of what there should be, in the question's words: the model finds them however many there are."""
    state: str | None = None
    """A word for a state that the model hardly knows: it finds the things in any."""
    names_nothing: bool = False
    """Whether there is nothing in the question that could be looked for."""


READ_WHOLE = Reading()


@dataclass(frozen=True)
class Bar:
    """How similar a match has to be, as far as the model knows of right answers; None where it does not."""

    least: float | None = None
    """What all but the share `domain.WEAK` of right answers reach."""
    floor: float | None = None
    """The same where it decides: a query whose best match does not reach it is refused."""
    fair: float | None = None
    """What all but the share `domain.FAINT` of right answers reach, where the floor decides."""
    usual: float | None = None
    """What half of the right answers reach, likewise."""
    refuses: bool = True
    """Whether a question is refused at all for being out of domain."""

    @classmethod
    def of(cls, known: Domain | None, direction: Asking, target: Target, *, decides: bool, refuses: bool) -> Bar:
        """``decides``: whether no known answers say more than the model does."""
        if known is None or (direction, target) != ("text", "images"):
            return cls(refuses=refuses)
        least = known.least_match
        if not (decides and refuses):
            return cls(least, refuses=refuses)
        return cls(least, least, known.fair_match, known.usual_match, refuses)

    def excludes(self, scores: NDArray[np.floating]) -> bool:
        """Whether the best of ``scores``, if there is any, is no match."""
        return self.floor is not None and len(scores) > 0 and not scores[0] >= self.floor

    def is_fair(self, scores: NDArray[np.floating]) -> bool:
        """Whether the best of ``scores`` is a match as most right answers have it, where the bar decides."""
        return self.fair is not None and len(scores) > 0 and bool(scores[0] >= self.fair)

    def is_nearly_fair(self, scores: NDArray[np.floating]) -> bool:
        """Whether the best of ``scores`` is nearer to such a match than to none, where the bar decides."""
        if self.fair is None or self.floor is None or not len(scores):
            return False
        return bool(scores[0] >= (self.floor + self.fair) / 2)

    def is_unusual(self, scores: NDArray[np.floating]) -> bool:
        """Whether the best of ``scores``, if there is any, is less than half of the right answers have."""
        return self.usual is not None and len(scores) > 0 and not scores[0] >= self.usual

    def is_faint(self, scores: NDArray[np.floating]) -> bool:
        """Whether the best of ``scores``, if there is any, is less than most right answers have."""
        return self.fair is not None and len(scores) > 0 and not scores[0] >= self.fair


NO_BAR = Bar()


def readings(
    model: Model, queries: Sequence[Query], vectors: NDArray[np.float32], direction: Direction
) -> list[Reading]:
    """How each of ``queries``, encoded as ``vectors``, reads to the model; there is nothing to say of pictures."""
    if direction == "image":
        return [READ_WHOLE] * len(queries)
    known = model.domain
    outlying = [0.0] * len(queries) if known is None else known.outlying(vectors).tolist()
    return [_reading(model, query, share) for query, share in zip(queries, outlying, strict=True)]


def _reading(model: Model, query: str, outlying: float) -> Reading:
    """``outlying``: the share of the texts that did not train which lie less far outside of what was taught."""
    if not names_something(query):
        return Reading(names_nothing=True)
    known = model.domain
    question = question_of(query, known)
    in_part = not model.reads_all(question.text)
    negated = denied(question.text, query)
    if known is None:
        return Reading(in_part=in_part, negated=negated, counted=counted(question.text, query))
    new = known.new_words(question.text)
    unknown = known.words_out_of_domain(new)
    out_of_domain = _words_that_exclude(known, question.text, unknown, outlying)
    # A word that is near to what was taught, in a question like it, is understood well enough unless it is a name.
    left_out = {*unknown, *_names(question.text, new)} if outlying <= OUT_OF_DOMAIN else new
    ignored = () if out_of_domain else tuple(word for word in new if word in left_out)
    hardly = _hardly_known(known, question.text, outlying)
    return Reading(
        out_of_domain,
        ignored,
        meant(known, out_of_domain or ignored),
        in_part,
        question.mended,
        mostly_known=known.nearness is not None and not _is_mostly_unknown(known, question.text, unknown),
        hardly_known=bool(hardly),
        in_passing=tuple(word for word in hardly if word not in new),
        negated=negated,
        counted=counted(question.text, query),
        # Neither of a word that is told as such, nor beside a denial, which is doubt enough.
        state=state(question.text, known, {*out_of_domain, *ignored, *hardly}) if negated is None else None,
    )


def _names(text: str, new: Words) -> list[str]:
    """Those of the ``new`` words that are written as names: no picture shows that a river is in Germany."""
    others = _WORD.findall(text)[1:]
    if all(word[0].isupper() for word in others):  # nor is every word a name where all are written so
        return []
    return [word.lower() for word in others if word[0].isupper() and word.lower() in new]


def _hardly_known(known: Domain, text: str, outlying: float) -> Words:
    """Words that were taught in passing or never, where they name the thing, or most of what is named."""
    named = [word for word in dict.fromkeys(_WORD.findall(text.lower())) if word not in FUNCTION_WORDS]
    hardly = known.hardly_taught(named)
    hangs = 2 * len(hardly) > len(named) or thing_of(text) in hardly
    return hardly if hangs and not outlying <= MOSTLY_UNKNOWN else ()


def _is_mostly_unknown(known: Domain, text: str, unknown: Words) -> bool:
    """Whether most words of ``text`` that name something are ``unknown``, where a table tells which are near."""
    return known.nearness is not None and 2 * len(unknown) > len(words_of([text]) - FUNCTION_WORDS)


def _words_that_exclude(known: Domain, text: str, unknown: Words, outlying: float) -> Words:
    """``unknown``, the words that are neither taught nor near, where they put ``text`` out of domain.

    Where few of its words are unknown the text itself must be unlike what was taught; where most are, there is little
    in it to be like anything. That needs a table of the words that are near: without one every new word is unknown.
    """
    mostly = _is_mostly_unknown(known, text, unknown)
    # What is no number lies outside.
    return () if outlying <= (MOSTLY_UNKNOWN if mostly else OUT_OF_DOMAIN) else unknown


def out_of_domain_words(
    known: Domain | None, queries: Sequence[Query], vectors: NDArray[np.float32], direction: Direction
) -> list[Words]:
    """For each text outside the model's domain the words that do, for others none."""
    if known is None or direction == "image":
        return [()] * len(queries)
    texts = [question_of(query, known).text for query in queries]
    return [
        _words_that_exclude(known, text, known.words_out_of_domain(known.new_words(text)), share)
        for text, share in zip(texts, known.outlying(vectors).tolist(), strict=True)
    ]


def meant(known: Domain | None, words: Iterable[str]) -> Words:
    """Taught words that are spelt nearly like ``words``, as a slip of the pen would."""
    if known is None:
        return ()
    close = []
    for word in [word for word in words if len(word) >= _LEAST_LETTERS][:_MOST_WORDS]:
        # A slip seldom hits the first letter; so few candidates cost nothing beside the encoder.
        near = sorted(taught for taught in known.words if taught[0] == word[0] and abs(len(taught) - len(word)) <= 2)
        alike = get_close_matches(word, near, n=_CANDIDATES, cutoff=_CLOSE)
        close += [taught for taught in alike if not _is_slip(taught, alike, known)][:1]
    return tuple(dict.fromkeys(close))


def _is_slip(taught: str, others: Sequence[str], known: Domain) -> bool:
    """Whether ``taught`` is a slip of captions: hardly there, or for one of ``others`` that is there far oftener."""
    if known.nearness is None or known.is_common(taught):
        return False
    if known.hardly_taught([taught]):
        return True
    often = MORE_OFTEN * (known.times_taught(taught) or 0)
    return any(known.is_common(other) and often <= (known.times_taught(other) or 0) for other in others)
