"""How far an answer can be trusted, decided once: a standing with its reasons. Everybody else only renders it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from evidex.retrieval.certainty.policy import Judged
from evidex.retrieval.out_of_domain import NO_BAR, READ_WHOLE, Bar, Reading, Words
from evidex.retrieval.refine import REFINE_RATIO
from evidex.retrieval.scan.partial import Partial

Verdict = Literal["answered", "refined", "abstained"]
Tone = Literal["answered", "refined", "abstained", "unknown"]
MIDDLE = 0.5
"""Percentile up to which a query is as certain as usual ones."""
FEW = 0.85
"""Percentile from which on little in the archive is like a query, if its best match is no usual one either."""


class Level(StrEnum):
    """What an answer is worth."""

    EMPTY = "empty"
    NOTHING_ASKED = "nothing_asked"
    OUT_OF_DOMAIN = "out_of_domain"
    NO_MATCH = "no_match"
    UNSURE = "unsure"
    UNJUDGED = "unjudged"
    LOOK_TWICE = "look_twice"
    PLAUSIBLE = "plausible"
    GOOD = "good"

    @property
    def refused(self) -> bool:
        """Whether the hits are no answer."""
        return self in (Level.EMPTY, Level.NOTHING_ASKED, Level.OUT_OF_DOMAIN, Level.NO_MATCH, Level.UNSURE)

    @property
    def tone(self) -> Tone:
        """The colour it is shown in: that of an answer, of a doubtful one, of a refusal, or none."""
        if self.refused:
            return "abstained"
        if self is Level.UNJUDGED:
            return "unknown"
        return "refined" if self is Level.LOOK_TWICE else "answered"


class Reason(StrEnum):
    """What speaks against relying on an answer, the weightiest first."""

    NOTHING_SEARCHED = "nothing_searched"
    NOTHING_ASKED = "nothing_asked"
    NEW_WORDS = "new_words"
    BELOW_FLOOR = "below_floor"
    LITTLE_EVIDENCE = "little_evidence"
    BEYOND_GUARANTEE = "beyond_guarantee"
    SEVERAL_PARTS = "several_parts"
    NOT_CALIBRATED = "not_calibrated"
    UNCERTAIN_AT_FIRST = "uncertain_at_first"
    IGNORED_WORDS = "ignored_words"
    NEGATED = "negated"
    COUNTED = "counted"
    STATE = "state"
    READ_IN_PART = "read_in_part"
    FEW_ALIKE = "few_alike"
    FAINT = "faint"
    OTHERS_SURER = "others_surer"


_LEVELS = {
    Reason.NOTHING_SEARCHED: Level.EMPTY,
    Reason.NOTHING_ASKED: Level.NOTHING_ASKED,
    Reason.NEW_WORDS: Level.OUT_OF_DOMAIN,
    Reason.BELOW_FLOOR: Level.NO_MATCH,
    Reason.LITTLE_EVIDENCE: Level.NO_MATCH,
    Reason.BEYOND_GUARANTEE: Level.UNSURE,
    Reason.SEVERAL_PARTS: Level.UNJUDGED,
    Reason.NOT_CALIBRATED: Level.UNJUDGED,
    Reason.UNCERTAIN_AT_FIRST: Level.LOOK_TWICE,
    Reason.IGNORED_WORDS: Level.LOOK_TWICE,
    Reason.NEGATED: Level.LOOK_TWICE,
    Reason.COUNTED: Level.LOOK_TWICE,
    Reason.STATE: Level.LOOK_TWICE,
    Reason.READ_IN_PART: Level.LOOK_TWICE,
    Reason.FEW_ALIKE: Level.LOOK_TWICE,
    Reason.FAINT: Level.LOOK_TWICE,
    Reason.OTHERS_SURER: Level.PLAUSIBLE,
}


@dataclass(frozen=True)
class Standing:
    """The reasons, the weightiest first, and the numbers and words that stand behind them."""

    reasons: tuple[Reason, ...] = ()
    refined: bool = False
    """Whether the query was asked again in other forms."""
    percentile: float | None = None
    """Share of the calibration's queries that were more certain; None without a calibration, and where it does not
    apply: what is out of domain is left out of it, and what finds no match is nothing it knows about."""
    chance: float | None = None
    """That a right row is among the first ``chance_top``, learned from queries with known answers; None where none were
    given, where far more or fewer rows were searched than then, and for a query that was asked again."""
    chance_top: int | None = None
    reading: Reading = READ_WHOLE
    bar: Bar = NO_BAR
    lapsed: bool = False
    """Whether a guarantee was made of rows that are others by now."""

    @property
    def level(self) -> Level:
        return _LEVELS[self.reasons[0]] if self.reasons else Level.GOOD

    @property
    def verdict(self) -> Verdict:
        return "abstained" if self.level.refused else "refined" if self.refined else "answered"

    @property
    def floor(self) -> float | None:
        """Where even the best match is none: the least similarity that one has."""
        return self.bar.floor if Reason.BELOW_FLOOR in self.reasons else None

    @property
    def is_calibrated(self) -> bool:
        return self.percentile is not None

    @property
    def may_guarantee(self) -> bool:
        """Whether what the calibration guarantees of answers is about this one."""
        return self.is_calibrated and not self.level.refused


@dataclass(frozen=True)
class Case:
    """One query after the first scan: what was found, how the question reads, what the calibration says of it."""

    first: Partial
    reading: Reading
    judged: Judged | None
    """None without a calibration, and where nothing was searched."""
    bar: Bar
    several_parts: bool = False
    """Whether it was composed, which no calibration knows."""

    @property
    def _is_out_of_domain(self) -> bool:
        """What is unlike anything taught; not where most of its words are known and its best hit is a match.

        Nor is it in domain where words say little to the model and it is less sure of it than of nearly all questions:
        where there are several, or where its best hit is no usual match.
        """
        read, scores = self.reading, self.first.scores
        found = read.mostly_known and self.bar.is_fair(scores)
        unlike = bool(read.new_words and not found) or bool(read.hardly_known and self.bar.is_faint(scores))
        if unlike or self.judged is None or self.bar.usual is None or self.bar.excludes(scores):
            return unlike
        strange = len(self._strange)
        return self.judged.percentile >= FEW and (strange > 1 or (strange == 1 and self.bar.is_unusual(scores)))

    @property
    def _strange(self) -> Words:
        """Words that were never taught, or hardly."""
        return (*(self.reading.new_words or self.reading.ignored_words), *self.reading.in_passing)

    @property
    def _is_unsupported(self) -> bool:
        """What is rare in an archive has little evidence in all; it may be there if its best match is one."""
        little = self.judged is not None and self.judged.unsupported
        return little and not self.bar.is_nearly_fair(self.first.scores)

    @property
    def _has_few_alike(self) -> bool:
        """Whether little in the archive is like it, and its best match may be one nonetheless."""
        if self.judged is None or self._is_unsupported:
            return False
        unusual = self.bar.is_unusual(self.first.scores)
        return self.judged.unsupported or (self.judged.percentile >= FEW and unusual)

    @property
    def _is_below(self) -> bool:
        said = self._is_out_of_domain or self.reading.names_nothing
        return not said and self.bar.excludes(self.first.scores)

    @property
    def _is_apart(self) -> bool:
        """Whether it is refused whatever the calibration, which is of usual questions, would say of it."""
        return self._is_out_of_domain or self._is_below or self.reading.names_nothing

    @property
    def asks_again(self) -> bool:
        """Whether the calibration wants it asked in other forms, and it is not refused whatever these find."""
        refused = self._is_apart if self.bar.refuses else self._is_below or self.reading.names_nothing
        return self.judged is not None and self.judged.unsure and not refused

    def standing(self, final: Partial) -> Standing:
        """Of the answer with the rows of ``final``: the first scan's, or those of the query asked again."""
        # Calibrations leave out what is out of domain, also what is answered for its good match.
        judged = None if self._is_apart or self.reading.new_words else self.judged
        chance = None if self.asks_again else judged
        reasons = tuple(reason for reason, holds in self._reasons(final, judged).items() if holds)
        excluded = Reason.NEW_WORDS in reasons  # otherwise they are words that the hits may leave out
        strange = self._strange
        new, ignored = (strange, ()) if excluded else ((), strange)
        read = replace(self.reading, new_words=new, ignored_words=ignored)
        return Standing(
            reasons=reasons,
            refined=self.asks_again,
            percentile=None if judged is None else judged.percentile,
            chance=None if chance is None else chance.chance,
            chance_top=None if chance is None else chance.chance_top,
            reading=read,
            bar=self.bar,
            lapsed=judged is not None and judged.lapsed,
        )

    def _reasons(self, final: Partial, judged: Judged | None) -> dict[Reason, bool]:
        empty = self.first.count == 0
        if self.reading.names_nothing and not empty:
            return {Reason.NOTHING_ASKED: True}
        unsupported = self._is_unsupported
        out_of_domain = self._is_out_of_domain and not empty and (self.bar.refuses or unsupported)
        percentile = 0.0 if judged is None else judged.percentile
        unjudged = self.judged is None and not (empty or out_of_domain or self._is_below)
        return {
            Reason.NOTHING_SEARCHED: empty,
            Reason.NEW_WORDS: out_of_domain,
            Reason.BELOW_FLOOR: self._is_below,
            Reason.LITTLE_EVIDENCE: unsupported and judged is not None and not judged.unpromised,
            Reason.BEYOND_GUARANTEE: unsupported and judged is not None and judged.unpromised,
            Reason.SEVERAL_PARTS: unjudged and self.several_parts,
            Reason.NOT_CALIBRATED: unjudged and not self.several_parts,
            Reason.UNCERTAIN_AT_FIRST: self.asks_again and percentile >= 1 - REFINE_RATIO,
            Reason.IGNORED_WORDS: not out_of_domain and bool(self._strange),
            Reason.NEGATED: self.reading.negated is not None,
            Reason.COUNTED: self.reading.counted is not None,
            Reason.STATE: self.reading.state is not None,
            Reason.READ_IN_PART: self.reading.in_part,
            Reason.FEW_ALIKE: judged is not None and self._has_few_alike,
            Reason.FAINT: self.bar.is_faint(final.scores),
            Reason.OTHERS_SURER: percentile > MIDDLE,
        }
