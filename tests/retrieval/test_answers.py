"""Which hits an answer stands on, and what it says of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from evidex.retrieval.answers import Answer, Timings
from evidex.retrieval.hits import Hit
from evidex.retrieval.out_of_domain import Bar
from evidex.retrieval.standing import Reason, Standing


def _answer(*scores: float, least: float | None = None, reasons: tuple[Reason, ...] = ()) -> Answer:
    hits = tuple(
        Hit(rank, f"id{rank}", score, "image", "a.png", Path("a.png"), None, 8, 8, None, None, None, None)
        for rank, score in enumerate(scores, start=1)
    )
    standing = Standing(reasons, percentile=0.7, bar=Bar(least))
    return Answer("q", hits, standing, 0.1, 10, None, None, Timings(1, 1, 1, 1))


@pytest.mark.parametrize(
    ("answer", "apart", "words"),
    [
        (_answer(0.5, 0.2, 0.04, least=0.18), 1, "The last hit is less like the question than nine of ten"),
        (_answer(0.5, 0.17, 0.04, least=0.18), 2, "(below 0.18); the answer does not stand on them."),
        (_answer(0.5, 0.26, 0.24, 0.04), 2, "less than half as like the question as the best (below 0.25)"),
        (_answer(0.12, 0.07, 0.05, least=0.18), 1, "less than half as like"),
    ],
)
def test_hits_far_below_are_counted_and_told(answer: Answer, apart: int, words: str) -> None:
    assert answer.apart == answer.json()["apart"] == apart
    assert words in (answer.json()["apart_line"] or "")


@pytest.mark.parametrize(
    "answer",
    [
        _answer(),
        _answer(0.5, 0.4, least=0.18),
        _answer(0.5, 0.04, least=0.18, reasons=(Reason.LITTLE_EVIDENCE,)),
        _answer(-0.1, -0.3),
    ],
)
def test_nothing_is_set_apart_where_all_hits_belong_or_none_does(answer: Answer) -> None:
    assert (answer.apart, answer.apart_line) == (0, None)
