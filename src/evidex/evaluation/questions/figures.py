"""The shares that tell how an archive answered, each with the interval in which it may truly lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evidex.evaluation.questions.asking import Asked, Forms, Replies, Said
from evidex.evaluation.questions.bench import WAYS, Kind, Way

FORMAT = 1
_Z = 1.959964  # 95 %


@dataclass(frozen=True)
class Proportion:
    """A share of ``count`` questions, with Wilson's 95 % interval."""

    value: float
    low: float
    high: float
    count: int

    def to_json(self) -> dict[str, Any]:
        return {"share": self.value, "low": self.low, "high": self.high, "questions": self.count}


def share_of(values: Sequence[float]) -> Proportion | None:
    """The mean of ``values`` in [0, 1], one a question; None without any.

    Wilson's interval is that of yes or no; for values between them it is too wide rather than too narrow.
    """
    count = len(values)
    if not count:
        return None
    mean = math.fsum(values) / count
    middle = (mean + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    reach = _Z / (1 + _Z**2 / count) * math.sqrt(mean * (1 - mean) / count + _Z**2 / (4 * count**2))
    return Proportion(mean, min(mean, max(0.0, middle - reach)), max(mean, min(1.0, middle + reach)), count)


@dataclass(frozen=True)
class Figures:
    """Of some questions; None where there is no such question."""

    first_five: Proportion | None
    """Of the first five hits for what is present, those that fit."""
    present_refused: Proportion | None
    present_doubted: Proportion | None
    absent_given: Proportion | None
    """Without a doubt."""
    absent_doubted: Proportion | None
    absurd_given: Proportion | None
    absurd_doubted: Proportion | None

    def to_json(self) -> dict[str, Any]:
        return {name: None if share is None else share.to_json() for name, share in vars(self).items()}


@dataclass(frozen=True)
class BenchResult:
    """All figures of a bench."""

    all: Figures
    by_way: dict[Way, Figures]
    by_form: dict[str, Figures]
    forms_differ: Proportion | None
    """Keywords for present subjects whose bare, articled and plural forms get different verdicts."""
    replies: Replies

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "all": self.all.to_json(),
            "by_way": {way: figures.to_json() for way, figures in self.by_way.items()},
            "by_form": {form: figures.to_json() for form, figures in self.by_form.items()},
            "forms_differ": None if self.forms_differ is None else self.forms_differ.to_json(),
            "subjects_left_out": self.replies.left_out,
            "answers": [_reply_json(asked) for asked in self.replies.asked],
            "forms": [{"texts": list(forms.texts), "said": list(forms.said)} for forms in self.replies.forms],
        }


def result_of(replies: Replies) -> BenchResult:
    """The figures of all questions, of each way of asking and of each form of subject."""
    asked = replies.asked
    by_way = {way: [one for one in asked if one.way == way] for way in WAYS}
    forms = sorted({one.subject.form for one in asked})
    return BenchResult(
        _figures(asked),
        {way: _figures(some) for way, some in by_way.items() if some},
        {form: _figures([one for one in asked if one.subject.form == form]) for form in forms},
        _differing(replies.forms),
        replies,
    )


def _figures(asked: Sequence[Asked]) -> Figures:
    def said(kind: Kind, what: Said) -> Proportion | None:
        return share_of([float(one.said == what) for one in asked if one.subject.kind == kind])

    return Figures(
        share_of([one.fit for one in asked if one.fit is not None]),
        said("present", "refused"),
        said("present", "doubted"),
        said("absent", "given"),
        said("absent", "doubted"),
        said("absurd", "given"),
        said("absurd", "doubted"),
    )


def _differing(forms: Sequence[Forms]) -> Proportion | None:
    return share_of([float(one.differ) for one in forms])


def _reply_json(asked: Asked) -> dict[str, Any]:
    return {
        "kind": asked.subject.kind,
        "way": asked.way,
        "question": asked.subject.asked[asked.way],
        "labels": sorted(asked.subject.labels),
        "said": asked.said,
        "reasons": list(asked.reasons),
        "fit": asked.fit,
    }
