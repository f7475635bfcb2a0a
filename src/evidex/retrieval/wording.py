"""What an answer says to people: a headline, a sentence, and what that stands on, with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from evidex.encoders.domain import FAINT, WEAK
from evidex.retrieval.certainty.calibration import LEAST_QUERIES
from evidex.retrieval.denial import SCARCE, is_dash
from evidex.retrieval.hits import Hit, Refinement
from evidex.retrieval.out_of_domain import Reading
from evidex.retrieval.soundness.seal import Losses
from evidex.retrieval.standing import Level, Reason, Standing
from evidex.retrieval.told_apart import HOW_MANY

HEADLINES = {
    Level.EMPTY: "There was nothing to search",
    Level.NOTHING_ASKED: "There is nothing to look for in this",
    Level.OUT_OF_DOMAIN: "The model does not know this",
    Level.NO_MATCH: "Probably nothing here matches",
    Level.UNSURE: "Not sure enough for your guarantee",
    Level.UNJUDGED: "The nearest things in the archive",
    Level.LOOK_TWICE: "Perhaps: look twice",
    Level.PLAUSIBLE: "Plausible matches",
    Level.GOOD: "Good matches",
}
_NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NOTHING_ASKED = (
    "Your question names nothing that could be seen, so the hits mean nothing; "
    "name a thing, such as 'ships in a harbor'."
)
_UNPROMISED = (
    "Answers as unsure as this one are wrong more often than 'evidex calibrate' was asked to allow, so it is not "
    "given; the hits may be right all the same."
)
_LAPSED = (
    "What 'evidex calibrate' guaranteed was of other rows than the gallery holds now, so it holds no more; "
    "calibrate again."
)
_NEAREST = "The hits are the nearest things in the archive, not an answer."


def share_in_words(share: float) -> str:
    """The nearest share that ten can be counted in: .75 is "three of four"."""
    nearest = Fraction(share).limit_denominator(len(_NUMBERS) - 1)
    return f"{_NUMBERS[nearest.numerator]} of {_NUMBERS[nearest.denominator]}"


NEARLY_ALL, MOST = share_in_words(1 - WEAK), share_in_words(1 - FAINT)
"""Right answers that are no weak match, and no faint one."""


def explanation(standing: Standing, searched: int, emptiness: str | None) -> str:
    """The standing in a sentence; ``emptiness`` says why nothing was searched, where somebody looked."""
    if standing.reasons[:1] == (Reason.NOTHING_SEARCHED,):
        return f"Nothing was searched: {emptiness or 'the gallery is empty or no row passes the filters'}."
    if standing.reasons[:1] == (Reason.NOTHING_ASKED,):
        return _NOTHING_ASKED
    reading, level = standing.reading, standing.level
    parts = (
        mended_words(reading),
        _sentence(standing, searched),
        *(say(reading) for reason, say in _ALSO.items() if reason in standing.reasons[1:] and not level.refused),
        offered(reading),
        _NEAREST if level.refused and level is not Level.UNSURE else "",
    )
    return " ".join(filter(None, parts))


def _sentence(standing: Standing, searched: int) -> str:
    """By the weightiest reason; others stand in the details."""
    reading = standing.reading
    match standing.reasons[:1]:
        case (Reason.NEW_WORDS,):
            return f"{unlearned(reading, reading.new_words)}, nor anything like it."
        case (Reason.BELOW_FLOOR,):
            return "Even the nearest thing here is hardly like your question."
        case (reason,) if reason in _ALSO:
            return _ALSO[reason](reading)
        case (Reason.LITTLE_EVIDENCE,):
            return "Hardly anything here is like your question."
        case (Reason.BEYOND_GUARANTEE,):
            return _UNPROMISED
        case (Reason.SEVERAL_PARTS,):
            return (
                "How far to trust the hits is not known: no calibration is of questions in several parts, and what "
                "was marked or not wanted only moves pictures up or down. Look at them yourself."
            )
        case (Reason.NOT_CALIBRATED,):
            few = searched <= LEAST_QUERIES
            again = "if its indexing was stopped, index again, else run 'evidex calibrate'"
            remedy = "so few rows need known questions for that" if few else again
            return f"How far to trust the hits is not known: the gallery is not calibrated for such queries; {remedy}."
        case (Reason.UNCERTAIN_AT_FIRST,):
            return "Little here is like your question, so it was asked again in similar words; look at the hits."
        case (Reason.READ_IN_PART,):
            return "Only the beginning of your question was read; the model takes no longer ones."
        case (Reason.FEW_ALIKE,):
            return "The best hits are like your question, but little else here is; look at them yourself."
        case (Reason.FAINT,):
            return "Even the best hit is only faintly like your question."
        case (Reason.OTHERS_SURER,):
            return "The hits are like your question, though less than those of most usual questions."
    return "The hits are as like your question as good answers usually are."


def details(standing: Standing, hits: Sequence[Hit], change: Refinement | None) -> tuple[str, ...]:
    """What the standing rests on, a sentence each, for those who want to know."""
    if {Reason.NOTHING_SEARCHED, Reason.NOTHING_ASKED} & set(standing.reasons):
        return ()
    return tuple(
        filter(
            None,
            (
                _likeness(standing, hits),
                _usual(standing),
                _chance(standing),
                _again(standing, len(hits), change),
                _LAPSED if standing.lapsed else "",
                *(_DOUBTS[reason] for reason in standing.reasons[1:] if reason in _DOUBTS),
            ),
        )
    )


def _likeness(standing: Standing, hits: Sequence[Hit]) -> str:
    if not hits:
        return ""
    best = f"The best hit is {hits[0].shown_score:.2f} like the question, where 1 is the same"
    bar = standing.bar
    if bar.least is None:
        return f"{best}."
    most = "" if bar.fair is None else f" and {MOST} at least {bar.fair:.2f}"
    return f"{best}; of right answers {NEARLY_ALL} are at least {bar.least:.2f}{most}."


def _usual(standing: Standing) -> str:
    if standing.percentile is None:
        return ""
    return f"Of 100 usual questions about {100 * standing.percentile:.0f} find more in this archive."


def _chance(standing: Standing) -> str:
    if standing.chance is None or standing.level.refused:  # no promise stands beside a refusal
        return ""
    return (
        f"Of known questions like it, about {standing.chance:.0%} had the very one asked for among the first "
        f"{standing.chance_top}; others may fit as well."
    )


def _again(standing: Standing, hits: int, change: Refinement | None) -> str:
    if change is None:
        return ""
    changed = len(change.entered)
    what = f"{changed} of {hits} hits changed" if changed else "the hits stayed the same"
    wished = "" if Reason.UNCERTAIN_AT_FIRST in standing.reasons else ", as you wished"
    return f"It was asked again in {change.copies} similar forms{wished}; {what}."


_DOUBTS = {
    Reason.READ_IN_PART: "Only the beginning of the question was read.",
    Reason.FAINT: f"The best hit is less like the question than {MOST} right answers are.",
}


def apart_line(count: int, below: float, *, usual: bool) -> str:
    """That the last ``count`` hits are not what the answer stands on; ``usual``: below what right answers reach."""
    hits, stands = ("The last hit is", "it") if count == 1 else (f"The last {count} hits are", "them")
    often = f"less like the question than {NEARLY_ALL} right answers are"
    why = often if usual else "less than half as like the question as the best"
    return f"{hits} {why} (below {below:.2f}); the answer does not stand on {stands}."


def lacking(lost: Losses) -> str | None:
    """That a search cannot find what repairs gave up; None where all is back."""
    if not lost:
        return None
    return f"The gallery lacks rows that may be what you look for ({lost}); 'evidex verify' says what to do."


def named(words: tuple[str, ...]) -> str:
    """Words in a sentence, the first few of many."""
    told = [f"'{word}'" for word in words[:3]] + (["more"] if len(words) > 3 else [])
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"


def more_places(count: int) -> str:
    """Where else a picture lies, in words."""
    return f"{count} more place{'s' * (count != 1)}"


def _left_out(reading: Reading) -> str:
    return f"{unlearned(reading, reading.ignored_words)}; the hits may leave that out."


def _denied(reading: Reading) -> str:
    """That what is denied, or said to be scarce, is found all the same."""
    denied = reading.negated or ""
    if is_dash(denied):
        return dash_words(denied)
    said = f"The model does not understand '{denied}' and finds what follows it"
    if denied.lower().startswith(SCARCE):
        return f"{said}, however much there is of it."
    return f"{said}; put a minus before what is not wanted, as in '-river'."


def dash_words(dash: str) -> str:
    """That a dash with blanks around it is none of a minus, and how one is written."""
    return (
        f"'{dash}' with blanks around it takes nothing away, and what follows it is found too; put a minus right "
        "before what is not wanted, as in '-river'."
    )


def counted_words(reading: Reading) -> str:
    """That the number that was asked for is hardly told."""
    if reading.counted == HOW_MANY:
        return "The model hardly tells how many there are; count for yourself."
    return f"You asked for '{reading.counted}', and the model hardly tells how many there are; count for yourself."


def state_words(reading: Reading, found: str = "hits") -> str:
    """That what is ``found`` may be in another state than was asked for."""
    return f"The model hardly learned '{reading.state}'; the {found} may be in any state."


_ALSO = {
    Reason.IGNORED_WORDS: _left_out,
    Reason.NEGATED: _denied,
    Reason.COUNTED: counted_words,
    Reason.STATE: state_words,
}
"""Doubts that are told even beside one that weighs more."""


def unlearned(reading: Reading, words: tuple[str, ...]) -> str:
    """That the model does not know ``words``, as the beginning of a sentence."""
    return f"The model {'hardly' if set(words) & set(reading.in_passing) else 'never'} learned {named(words)}"


def mended_words(reading: Reading) -> str:
    """Slips of the pen and what they were read as; nothing where there were none."""
    read = [f"'{slip.typed}' as '{slip.read}'" for slip in reading.mended]
    return f"Read {' and '.join(read)}." if read else ""


def offered(reading: Reading) -> str:
    """Taught words that may have been meant; nothing where there are none."""
    return f"Did you mean {named(reading.did_you_mean)}?" if reading.did_you_mean else ""
