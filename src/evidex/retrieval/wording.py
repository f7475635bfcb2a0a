"""What an answer says to people: a headline, and a sentence that explains it."""

from __future__ import annotations

from evidex.retrieval.answers import Answer
from evidex.retrieval.certainty.calibrating import LEAST_QUERIES
from evidex.retrieval.retriever import REFINE_RATIO

_NEAREST = "The hits below are the nearest things in the archive, not an answer."


def headline(answer: Answer) -> str:
    """The verdict in a few words."""
    if answer.searched == 0:
        return "There was nothing to search"
    if _is_strange(answer):
        return "The model does not know this"
    if answer.floor is not None:
        return "Probably nothing here matches"
    if answer.percentile is None:
        return "The nearest things in the archive"
    if answer.verdict == "abstained":
        return "Probably nothing here matches"
    if (answer.verdict == "refined" and not _was_sure(answer)) or _caution(answer):
        return "Perhaps: look twice"
    return "Good matches" if answer.percentile <= 0.5 else "Plausible matches"


def explanation(answer: Answer) -> str:
    """The verdict in a sentence."""
    if answer.searched == 0:
        return f"Nothing was searched: {answer.emptiness or 'the gallery is empty or no row passes the filters'}."
    if _is_strange(answer):
        return (
            f"The model was never taught {_named(answer.new_words)}, nor anything like this question. "
            f"{_meant(answer) or 'Try other words. '}{_NEAREST}"
        )
    if answer.floor is not None:
        best = answer.hits[0].shown_score if answer.hits else 0.0
        return (
            f"No match: even the nearest thing is less like the question ({best:.2f}) than nine of ten right answers "
            f"are ({answer.floor:.2f}). {_meant(answer)}{_NEAREST}"
        )
    if answer.percentile is None:
        remedy = (
            "run 'evidex calibrate'" if answer.searched > LEAST_QUERIES else "so few rows need known queries for that"
        )
        return (
            "Answered, but how far to trust it is not known: this gallery is not calibrated for such queries; "
            f"{remedy}.{_caution(answer)}"
        )
    share = f"{answer.percentile:.0%}"
    if answer.verdict == "abstained":
        return (
            f"No trustworthy match: {share} of the calibration's questions were more certain. "
            f"{_meant(answer)}{_NEAREST}"
        )
    if answer.verdict == "refined" and answer.refinement is not None:
        changed = len(answer.refinement.entered)
        what = f"{changed} of {len(answer.hits)} hits changed" if changed else "the hits stayed the same"
        if _was_sure(answer):
            return (
                "The archive supports this well enough. It was asked again all the same, as you wished; "
                f"{what}.{_caution(answer)}"
            )
        return (
            f"Uncertain at first ({share} of the calibration's questions were more certain), so the question was "
            f"asked again in {answer.refinement.copies} similar forms; {what}. Look twice.{_caution(answer)}"
        )
    others = f"{share} of the calibration's questions were more certain"
    others = f" ({others})" if answer.percentile <= 0.5 else f", though {others}"
    return f"Answered: the archive supports this well enough{others}.{_chance(answer)}{_caution(answer)}"


def apart_line(answer: Answer) -> str | None:
    """That the last hits are not what the answer stands on, and why."""
    below, count = answer.apart_below, answer.apart
    if below is None or not count:
        return None
    hits, stands = ("The last hit is", "it") if count == 1 else (f"The last {count} hits are", "them")
    usual = "less like the question than nine of ten right answers are"
    why = usual if below == answer.least_match else "less than half as like the question as the best"
    return f"{hits} {why} (below {below:.2f}); the answer does not stand on {stands}."


def _caution(answer: Answer) -> str:
    """What speaks against an answer that is given."""
    if answer.ignored_words:
        left_out = f" The model was never taught {_named(answer.ignored_words)}; the hits may leave that out."
        return f"{left_out} {_meant(answer)}".rstrip()
    if answer.read_in_part:
        return " Only its beginning was read: the question is longer than what the model takes."
    if answer.faint:
        return " Even the best hit is less like the question than three of four right answers are."
    return ""


def _named(words: tuple[str, ...]) -> str:
    named = [f"'{word}'" for word in words[:3]] + (["more"] if len(words) > 3 else [])
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def _meant(answer: Answer) -> str:
    return f"Did you mean {_named(answer.did_you_mean)}? " if answer.did_you_mean else ""


def _chance(answer: Answer) -> str:
    if answer.chance is None:
        return ""
    return (
        f" Of known questions like it, about {answer.chance:.0%} had the very one asked for among the first "
        f"{answer.chance_top}; others may fit as well."
    )


def _is_strange(answer: Answer) -> bool:
    """Whether it was refused for what is asked, whatever the archive holds."""
    return answer.verdict == "abstained" and bool(answer.new_words)


def _was_sure(answer: Answer) -> bool:
    """Whether it was asked again only because the mode says always."""
    return answer.verdict == "refined" and answer.percentile is not None and answer.percentile < 1 - REFINE_RATIO
