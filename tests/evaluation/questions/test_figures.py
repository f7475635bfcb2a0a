from __future__ import annotations

import pytest

from evidex.evaluation.questions.asking import Asked, Forms, Replies, Said
from evidex.evaluation.questions.bench import Kind, Topic, Way
from evidex.evaluation.questions.figures import result_of, share_of


def _asked(kind: Kind, said: Said, way: Way = "keyword", fit: float | None = None) -> Asked:
    return Asked(Topic(kind, "word", frozenset(), {way: "?"}), way, said, fit, ())


def test_wilsons_interval_is_that_of_the_textbook() -> None:
    share = share_of([1.0] * 8 + [0.0] * 2)
    assert share is not None
    assert (share.value, share.count) == (0.8, 10)
    assert [share.low, share.high] == pytest.approx([0.4902, 0.9433], abs=1e-4)
    none = share_of([0.0] * 20)
    assert none is not None
    assert [none.low, none.high] == pytest.approx([0.0, 0.1611], abs=1e-4)
    assert share_of([]) is None


def test_each_kind_is_counted_by_itself() -> None:
    replies = Replies(
        (
            _asked("present", "given", fit=1.0),
            _asked("present", "refused", "typo", fit=0.4),
            _asked("absent", "doubted"),
            _asked("absent", "refused"),
            _asked("absurd", "given", "typo"),
        ),
        (Forms(("a", "b", "c"), ("given", "given", "given")), Forms(("a", "b", "c"), ("given", "doubted", "given"))),
        0,
    )
    outcome = result_of(replies)
    shares = {name: share["share"] for name, share in outcome.to_json()["all"].items()}
    assert shares == {
        "first_five": 0.7,
        "present_refused": 0.5,
        "present_doubted": 0.0,
        "absent_given": 0.0,
        "absent_doubted": 0.5,
        "absurd_given": 1.0,
        "absurd_doubted": 0.0,
    }
    assert list(outcome.by_way) == ["keyword", "typo"]
    assert outcome.by_way["typo"].absent_given is None
    assert outcome.forms_differ is not None
    assert outcome.forms_differ.value == 0.5
