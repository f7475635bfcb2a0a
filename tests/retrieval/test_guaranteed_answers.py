"""Guarantees of answers: made of known queries, and only for searches like those that were tested."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evidex.retrieval.certainty.calibrating import GuaranteeRequest, KnownQuery, calibrate
from evidex.retrieval.certainty.calibration_store import calibration_name
from evidex.retrieval.filters import Filters
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.refine import Refining
from evidex.retrieval.refiners import RsRefiner
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from tests.retrieval.archive import WORDS, arbitrary_gallery, rewrite, tiny_model

_TESTED_FOR = ("top", "refine_ratio", "gallery_size")


def _unit(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.asarray(values / np.linalg.norm(values, axis=-1, keepdims=True), dtype=np.float32)


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    return arbitrary_gallery(tmp_path_factory.mktemp("g") / "gallery", tiny_model(), 80)


def test_calibration_with_labels_gives_a_guarantee(gallery: Gallery) -> None:
    texts = [f"{word} number {n}" for n in range(40) for word in WORDS]
    found = Retriever(gallery).search_batch(texts=texts, top=20)
    right = [
        KnownQuery(text, frozenset([answer.hits[n % 20].id]))
        for n, (text, answer) in enumerate(zip(texts, found, strict=True))
    ]
    outcome = calibrate(gallery, right, "text", guarantee=GuaranteeRequest(0.2, 0.1, 20), rng=np.random.default_rng(0))
    assert outcome.labelled == len(texts)
    assert outcome.guarantee is not None
    assert outcome.guarantee.threshold is not None
    for top in (20, 30):
        guarantee = Retriever(gallery).search(text=texts[0], top=top).guarantee
        assert guarantee is not None
        assert guarantee.startswith("at most 20.0% wrong answers (nothing relevant among the first 20)")

    wrong_id = gallery.rows([0])[0].id
    wrong = [KnownQuery(text, frozenset([wrong_id])) for text in texts]
    outcome = calibrate(gallery, wrong, "text", guarantee=GuaranteeRequest(0.05, 0.1, 1), rng=np.random.default_rng(0))
    assert outcome.guarantee is not None
    assert outcome.guarantee.threshold is None
    assert "no threshold achieves" in outcome.guarantee.describe()
    assert Retriever(gallery).search(text=texts[0]).guarantee is None


def test_what_is_refused_for_a_guarantee_alone_says_so_until_it_lapses(tmp_path: Path) -> None:
    gallery = arbitrary_gallery(tmp_path / "gallery", tiny_model(), 80)
    texts = [f"{word} number {n}" for n in range(40) for word in WORDS]
    found = Retriever(gallery).search_batch(texts=texts, top=20)
    order = np.argsort([answer.uncertainty for answer in found])
    ids = sorted(row.id for row in gallery.rows(range(len(gallery))))
    known = []
    for rank, place in enumerate(order):  # the surer half is answered rightly, the other is not
        hits = [hit.id for hit in found[place].hits]
        others = [one for one in ids if one not in hits]
        right = hits[rank % 20] if rank < len(order) / 2 else others[rank % len(others)]
        known.append(KnownQuery(texts[place], frozenset([right])))
    outcome = calibrate(gallery, known, "text", guarantee=GuaranteeRequest(0.3, 0.2, 20), rng=np.random.default_rng(0))
    assert outcome.guarantee is not None
    assert outcome.guarantee.threshold is not None
    retriever = Retriever(gallery)
    sure, unsure = (retriever.search(text=texts[order[rank]], top=20) for rank in (0, 9 * len(order) // 10))
    assert (sure.verdict == "abstained", unsure.verdict) == (False, "abstained")
    assert "wrong more often than 'evidex calibrate' was asked to allow" in unsure.explanation
    assert (unsure.headline, unsure.json()["standing"]) == ("Not sure enough for your guarantee", "unsure")
    assert (unsure.json()["reasons"][0], unsure.json()["tone"]) == ("beyond_guarantee", "abstained")
    assert "nearest things" not in unsure.explanation
    assert "asked to allow" not in sure.explanation
    assert not any("guaranteed" in line for line in sure.details)
    some = Filters(glob="*")
    assert retriever.search(text=unsure.query, top=20, filters=some).headline == unsure.headline

    vector = _unit(np.random.default_rng(1).standard_normal((1, 32)))
    gallery.append([Row(item_id("one more"), "one more", "image", f"{99:064x}")], vector)
    for filters in (Filters(), some):
        now = retriever.search(text=unsure.query, top=20, filters=filters)
        assert (now.verdict == "abstained", now.guarantee) == (False, None)
        assert "What 'evidex calibrate' guaranteed was of other rows than the gallery holds now" in str(now.details)


def test_a_guarantee_is_made_only_of_searches_like_those_it_was_tested_on(tmp_path: Path) -> None:
    made = Gallery.create(tmp_path / "g", tiny_model())
    rows = [Row(item_id(str(n)), str(n), "image", f"{n:064x}") for n in range(31)]
    vectors = _unit(np.random.default_rng(1).standard_normal((31, 32)))
    made.append(rows[:30], vectors[:30])
    texts = [f"{word} number {n}" for n in range(40) for word in WORDS]
    found = Retriever(made).search_batch(texts=texts, top=20)
    known = [
        KnownQuery(text, frozenset([answer.hits[n % 20].id]))
        for n, (text, answer) in enumerate(zip(texts, found, strict=True))
    ]
    calibrate(made, known, "text", guarantee=GuaranteeRequest(0.2, 0.1, 20), rng=np.random.default_rng(0))

    assert Retriever(made).search(text=texts[0], top=20).guarantee is not None
    assert Retriever(made).search(text=texts[0], top=19).guarantee is None
    assert Retriever(made).search(text=texts[0], top=20, filters=Filters(glob="1*")).guarantee is None
    assert Retriever(made).search(text=texts[0], top=20, filters=Filters(glob="*")).guarantee is None
    for ratio in (0.0, 0.2, 1.0):
        assert Retriever(made).search(text=texts[0], top=20, refine=Refining(ratio)).guarantee is None
    fewer = Refining(refiner=RsRefiner(copies=1))
    assert Retriever(made).search(text=texts[0], top=20, refine=fewer).guarantee is None

    path = made.path / calibration_name("text", "images")
    stored = json.loads(path.read_text())
    older = [{k: v for k, v in g.items() if k not in _TESTED_FOR} for g in stored["guarantees"]]
    rewrite(made, path, json.dumps(stored | {"format": 1, "guarantees": older}))
    answer = Retriever(made).search(text=texts[0], top=20)
    assert (answer.standing.is_calibrated, answer.guarantee) == (True, None)
    rewrite(made, path, json.dumps(stored))

    retriever = Retriever(made)
    assert retriever.search(text=texts[0], top=20).guarantee is not None
    made.append(rows[30:], vectors[30:])
    assert retriever.search(text=texts[0], top=20).guarantee is None
