"""Questions asked of a gallery of a dataset's pictures, as somebody would who has indexed them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evidex.data.datasets import Dataset
from evidex.encoders.model import Model
from evidex.errors import InputError
from evidex.evaluation.features import encode_images
from evidex.evaluation.questions.bench import Topic, Way, apt, plain
from evidex.progress import Progress, silent
from evidex.retrieval.answers import Answer
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.english import articled, plural, singular
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id

FIRST = 5
Said = Literal["given", "doubted", "refused"]
Answers = Callable[[Sequence[str]], list[Answer]]
_FORMS_UP_TO = 3  # words: of longer keywords nobody types a plural


@dataclass(frozen=True)
class Asked:
    """One question and what was said to it."""

    subject: Topic
    way: Way
    said: Said
    """Given; given with a doubt ("Perhaps"); or refused."""
    fit: float | None
    """Share of the first five hits, or of as many as there are pictures that fit, that fit; None if none can."""
    reasons: tuple[str, ...]
    """What speaks against relying on the answer."""


@dataclass(frozen=True)
class Forms:
    """One keyword bare, with an article and in the plural, and what was said to each."""

    texts: tuple[str, ...]
    said: tuple[Said, ...]

    @property
    def differ(self) -> bool:
        return len(set(self.said)) > 1


@dataclass(frozen=True)
class Replies:
    """All questions of a bench, asked."""

    asked: tuple[Asked, ...]
    forms: tuple[Forms, ...]
    left_out: int
    """Subjects that the dataset has no pictures for, or none without."""


def ask(
    model: Model,
    dataset: Dataset,
    subjects: Sequence[Topic],
    *,
    source: str | None = None,
    batch_size: int = 64,
    progress: Progress = silent,
) -> Replies:
    """Ask the pictures of ``dataset``, calibrated as ``evidex index`` leaves them; captions are not looked at.

    ``source`` is what `load_model` was given for ``model``.
    """
    labels = np.array([plain(record.label) for record in dataset.records])
    if not labels.any():
        raise InputError(f"the pictures of '{dataset.name}' have no labels; questions need them to know what fits")
    usable = apt(subjects, labels.tolist())
    features = encode_images(model, dataset, batch_size=batch_size, progress=progress)
    asked: list[Asked] = []
    forms: list[Forms] = []
    with tempfile.TemporaryDirectory(prefix="evidex-questions-") as folder:
        for number, removed in enumerate(sorted({_removed(subject) for subject in usable}, key=sorted)):
            kept = ~np.isin(labels, sorted(removed))
            answers = _gallery(Path(folder) / str(number), model, source, features, kept)
            here = [subject for subject in usable if _removed(subject) == removed]
            asked += _all_ways(answers, here, labels)
            forms += _all_forms(answers, [subject for subject in here if subject.kind == "present"])
    return Replies(tuple(asked), tuple(forms), len(subjects) - len(usable))


def _removed(subject: Topic) -> frozenset[str]:
    return subject.labels if subject.kind == "absent" else frozenset()


def _gallery(
    folder: Path,
    model: Model,
    source: str | None,
    features: NDArray[np.float32],
    kept: NDArray[np.bool_],
) -> Answers:
    """Search in the kept pictures; a hit's path is the number of its picture."""
    gallery = Gallery.create(folder, model, source=source)
    rows = [Row(item_id(str(i)), str(i), "image", f"{i:064x}") for i in np.flatnonzero(kept)]
    gallery.append(rows, features[kept])
    self_calibrate(gallery, np.random.default_rng(0))
    retriever = Retriever(gallery)
    return lambda texts: retriever.search_batch(texts=texts, top=FIRST)


def _all_ways(answers: Answers, subjects: Sequence[Topic], labels: NDArray[np.str_]) -> list[Asked]:
    questions = [(subject, way, text) for subject in subjects for way, text in subject.asked.items()]
    found = answers([text for _, _, text in questions])
    return [
        Asked(subject, way, said(answer), _fit(answer, subject, labels), tuple(answer.standing.reasons))
        for (subject, way, _), answer in zip(questions, found, strict=True)
    ]


def _all_forms(answers: Answers, subjects: Sequence[Topic]) -> list[Forms]:
    keywords = [subject.asked["keyword"] for subject in subjects]
    groups = []
    for keyword in keywords:
        if len(keyword.split()) <= _FORMS_UP_TO:
            bare = singular(keyword)
            groups.append((bare, articled(bare), plural(bare)))
    if not groups:
        return []
    found = [said(answer) for answer in answers([text for group in groups for text in group])]
    return [Forms(group, tuple(found[3 * i : 3 * i + 3])) for i, group in enumerate(groups)]


def said(answer: Answer) -> Said:
    """What an answer's verdict amounts to."""
    level = answer.standing.level
    if level.refused:
        return "refused"
    return "doubted" if level.tone == "refined" else "given"


def _fit(answer: Answer, subject: Topic, labels: NDArray[np.str_]) -> float | None:
    if subject.kind != "present":
        return None
    first = min(FIRST, int(np.isin(labels, sorted(subject.labels)).sum()))
    return sum(labels[int(hit.path)] in subject.labels for hit in answer.hits[:first]) / first
