"""Questions whose hits were marked, as queries to calibrate with."""

from __future__ import annotations

from evidex.errors import InputError
from evidex.retrieval.certainty.calibrating import KnownQuery
from evidex.retrieval.certainty.calibration import LEAST_QUERIES
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.marks import Marks, current
from evidex.retrieval.queries import Direction


def marked_queries(gallery: Gallery) -> dict[Direction, list[KnownQuery]]:
    """Questions in plain words with what was marked right; one with wrong hits only counts as wrongly answered.

    That leans to the strict side: who marks no hit as right may have looked at few. Questions with a picture or a minus
    are left out, as no calibration is of them.
    """
    marks = Marks.at(gallery.place).all()
    digests = {record["id"]: record["sha256"] for record in gallery.records(["id", "sha256"])}
    right: dict[str, set[str]] = {}
    for mark in current(marks, digests):
        if mark.asked.text is not None and mark.asked.is_plain:
            found = right.setdefault(mark.asked.text, set())
            if mark.says == "right":
                found.add(mark.id)
    if len(right) < LEAST_QUERIES:
        raise InputError(
            f"{len(right)} marked questions are too few to calibrate with; mark hits of at least {LEAST_QUERIES} "
            "questions in plain words"
        )
    return {"text": [KnownQuery(text, frozenset(ids), none_right=not ids) for text, ids in right.items()]}
