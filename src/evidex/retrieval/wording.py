"""What an answer says to people: a headline, and a sentence that explains it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from evidex.encoders.domain import FAINT, WEAK
from evidex.retrieval.certainty.calibration import LEAST_QUERIES
from evidex.retrieval.hits import Hit, Refinement
from evidex.retrieval.out_of_domain import Reading
from evidex.retrieval.standing import Level, Reason, Standing

HEADLINES = {
    Level.EMPTY: "There was nothing to search",
    Level.OUT_OF_DOMAIN: "The model does not know this",
    Level.NO_MATCH: "Probably nothing here matches",
    Level.UNJUDGED: "The nearest things in the archive",
    Level.LOOK_TWICE: "Perhaps: look twice",
    Level.PLAUSIBLE: "Plausible matches",
    Level.GOOD: "Good matches",
}
_NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NEAREST = "The hits below are the nearest things in the archive, not an answer."


def share_in_words(share: float) -> str:
    """The nearest share that ten can be counted in: .75 is "three of four"."""
    nearest = Fraction(share).limit_denominator(len(_NUMBERS) - 1)
    return f"{_NUMBERS[nearest.numerator]} of {_NUMBERS[nearest.denominator]}"


NEARLY_ALL, MOST = share_in_words(1 - WEAK), share_in_words(1 - FAINT)
"""Right answers that are no weak match, and no faint one."""


def explanation(
    standing: Standing, hits: Sequence[Hit], searched: int, change: Refinement | None, emptiness: str | None
) -> str:
    """The standing in a sentence; ``emptiness`` says why nothing was searched, where somebody looked."""
    reading = standing.reading
    match standing.reasons[:1]:
        case (Reason.NOTHING_SEARCHED,):
            return f"Nothing was searched: {emptiness or 'the gallery is empty or no row passes the filters'}."
        case (Reason.NEW_WORDS,):
            return (
                f"The model was never taught {_named(reading.new_words)}, nor anything like this question. "
                f"{_meant(reading) or 'Try other words. '}{_NEAREST}"
            )
        case (Reason.BELOW_FLOOR,):
            return (
                f"No match: even the nearest thing is less like the question ({hits[0].shown_score:.2f}) than "
                f"{NEARLY_ALL} right answers are ({standing.floor:.2f}). {_meant(reading)}{_NEAREST}"
            )
        case (Reason.LITTLE_EVIDENCE,):
            return f"No trustworthy match: {_surer(standing)}. {_meant(reading)}{_NEAREST}"
        case (Reason.NOT_CALIBRATED,):
            few = searched <= LEAST_QUERIES
            remedy = "so few rows need known queries for that" if few else "run 'evidex calibrate'"
            return (
                "Answered, but how far to trust it is not known: this gallery is not calibrated for such queries; "
                f"{remedy}.{_caution(standing)}"
            )
    return _given(standing, len(hits), change)


def _given(standing: Standing, hits: int, change: Refinement | None) -> str:
    """Of an answer that is neither refused nor beyond the calibration."""
    if change is None:
        others = _surer(standing)
        others = f", though {others}" if Reason.OTHERS_SURER in standing.reasons else f" ({others})"
        return f"Answered: the archive supports this well enough{others}.{_chance(standing)}{_caution(standing)}"
    changed = len(change.entered)
    what = f"{changed} of {hits} hits changed" if changed else "the hits stayed the same"
    if Reason.UNCERTAIN_AT_FIRST not in standing.reasons:
        return (
            "The archive supports this well enough. It was asked again all the same, as you wished; "
            f"{what}.{_caution(standing)}"
        )
    return (
        f"Uncertain at first ({_surer(standing)}), so the question was "
        f"asked again in {change.copies} similar forms; {what}. Look twice.{_caution(standing)}"
    )


def apart_line(count: int, below: float, *, usual: bool) -> str:
    """That the last ``count`` hits are not what the answer stands on; ``usual``: below what right answers reach."""
    hits, stands = ("The last hit is", "it") if count == 1 else (f"The last {count} hits are", "them")
    often = f"less like the question than {NEARLY_ALL} right answers are"
    why = often if usual else "less than half as like the question as the best"
    return f"{hits} {why} (below {below:.2f}); the answer does not stand on {stands}."


def _surer(standing: Standing) -> str:
    return f"{standing.percentile:.0%} of the calibration's questions were more certain"


def _caution(standing: Standing) -> str:
    """What speaks against an answer that is given: of several reasons the weightiest."""
    if Reason.IGNORED_WORDS in standing.reasons:
        words = _named(standing.reading.ignored_words)
        left_out = f" The model was never taught {words}; the hits may leave that out."
        return f"{left_out} {_meant(standing.reading)}".rstrip()
    if Reason.READ_IN_PART in standing.reasons:
        return " Only its beginning was read: the question is longer than what the model takes."
    if Reason.FAINT in standing.reasons:
        return f" Even the best hit is less like the question than {MOST} right answers are."
    return ""


def _named(words: tuple[str, ...]) -> str:
    named = [f"'{word}'" for word in words[:3]] + (["more"] if len(words) > 3 else [])
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def _meant(reading: Reading) -> str:
    return f"Did you mean {_named(reading.did_you_mean)}? " if reading.did_you_mean else ""


def _chance(standing: Standing) -> str:
    if standing.chance is None:
        return ""
    return (
        f" Of known questions like it, about {standing.chance:.0%} had the very one asked for among the first "
        f"{standing.chance_top}; others may fit as well."
    )
