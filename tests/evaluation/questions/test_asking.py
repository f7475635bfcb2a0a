from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidex.cli import evaluate as cli
from evidex.data.datasets import Dataset, load_dataset
from evidex.errors import InputError
from evidex.evaluation.questions.asking import ask, said
from evidex.evaluation.questions.bench import WAYS, Topic
from evidex.retrieval.answers import Answer
from evidex.retrieval.retriever import Retriever
from tests.retrieval.archive import picture, tiny_model

LABELS = ("park", "bare land", "port")
EACH = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labelled")
    images = []
    for number in range(EACH * len(LABELS)):
        name, label = f"{number}.png", LABELS[number % len(LABELS)]
        picture(number).save(folder / name)
        images.append({"filename": name, "split": "val", "label": label, "captions": [f"a {label} number {number} ."]})
    (folder / "captions.json").write_text(json.dumps({"dataset": "labelled", "images": images}))
    return folder


@pytest.fixture(scope="module")
def dataset(folder: Path) -> Dataset:
    return load_dataset(folder, "val")


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[Answer]]]:
    """How many pictures were searched, and what was found, for every batch of questions."""
    seen: list[tuple[int, list[Answer]]] = []
    search = Retriever.search_batch

    def noting(self: Retriever, **options: Any) -> list[Answer]:
        answers = search(self, **options)
        seen.append((len(self.gallery), answers))
        return answers

    monkeypatch.setattr(Retriever, "search_batch", noting)
    return seen


def _subject(kind: str, *labels: str, keyword: str = "lake") -> Topic:
    return Topic(kind, "word", frozenset(labels), {"keyword": keyword, "typo": f"{keyword}e"})  # type: ignore[arg-type]


def test_what_is_absent_is_asked_of_the_other_pictures(
    dataset: Dataset, searched: list[tuple[int, list[Answer]]]
) -> None:
    subjects = [
        _subject("present", "park"),
        _subject("absent", "bareland"),
        _subject("absurd"),
        _subject("absent", "x"),
    ]
    replies = ask(tiny_model(), dataset, subjects)
    assert [(one.subject.kind, one.way) for one in replies.asked] == [
        ("present", "keyword"),
        ("present", "typo"),
        ("absurd", "keyword"),
        ("absurd", "typo"),
        ("absent", "keyword"),
        ("absent", "typo"),
    ]
    assert replies.left_out == 1
    assert {count for count, _ in searched} == {12, 8}
    labels = [record.label for record in dataset.records]
    for count, answers in searched:
        if count == 8:
            assert all(labels[int(hit.path)] != "bare land" for answer in answers for hit in answer.hits)
    present, answers = replies.asked[0], searched[0][1]
    first = [labels[int(hit.path)] for hit in answers[0].hits[:EACH]]
    assert present.fit == first.count("park") / EACH
    assert [one.fit for one in replies.asked[2:]] == [None] * 4
    assert [one.said for one in replies.asked[:4]] == [said(answer) for answer in answers]


def test_the_forms_of_short_keywords_are_compared(dataset: Dataset) -> None:
    long = "a lake between many green fields"
    replies = ask(tiny_model(), dataset, [_subject("present", "park"), _subject("present", "port", keyword=long)])
    assert [forms.texts for forms in replies.forms] == [("lake", "a lake", "lakes")]
    assert not replies.forms[0].differ


def test_pictures_without_labels_are_refused(dataset: Dataset) -> None:
    from dataclasses import replace

    bare = replace(dataset, records=tuple(replace(record, label=None) for record in dataset.records))
    with pytest.raises(InputError, match="have no labels"):
        ask(tiny_model(), bare, [_subject("absurd")])


def test_the_command_prints_and_writes_the_figures(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_model().save(tmp_path / "model.safetensors")
    table = tmp_path / "questions.tsv"
    lines = [
        "\t".join(["half", "kind", "form", "labels", *WAYS]),
        "tune\tpresent\tword\tpark\tlake\ta lake\t\t\t",
        "tune\tabsurd\tword\t\tcat\t\t\t\t",
        "held\tabsurd\tword\t\tdog\t\t\t\t",
    ]
    table.write_text("\n".join(lines))
    target = tmp_path / "out.json"
    monkeypatch.setenv("COLUMNS", "200")
    cli.command(folder, model=str(tmp_path / "model.safetensors"), questions=table, json_path=target)
    shown = capsys.readouterr().out
    assert "3 questions (tune): labelled val" in shown
    assert "absurd, given without a doubt" in shown
    written = json.loads(target.read_text())
    assert (written["dataset"], written["half"], len(written["answers"])) == ("labelled", "tune", 3)
    assert np.isclose(written["all"]["first_five"]["share"], np.mean([a["fit"] for a in written["answers"][:2]]))
