"""Searching: order, evidence, filters, verdicts, refinement, calibration."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from evidex.data.footprints import Bounds, Footprint
from evidex.encoders.model import Model
from evidex.errors import InputError
from evidex.retrieval.certainty.calibrating import KnownQuery, calibrate
from evidex.retrieval.certainty.calibration import Calibration
from evidex.retrieval.certainty.calibration_store import store_calibration
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.contact_sheet import write_contact_sheet
from evidex.retrieval.filters import Filters
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.refine import ALWAYS, AS_CALIBRATED, NEVER, Refining
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from evidex.retrieval.soundness.seal import drop, files_under
from tests.retrieval.archive import WORDS, picture, tiny_model, write_images


def _unit(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.asarray(values / np.linalg.norm(values, axis=-1, keepdims=True), dtype=np.float32)


def _square(west: float, south: float, side: float = 0.1) -> Footprint:
    return Footprint(((west, south), (west + side, south), (west + side, south + side), (west, south + side)))


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    """80 rows: even ones around Berlin, odd ones across the date line; a third knows its time; five texts."""
    made = Gallery.create(tmp_path_factory.mktemp("g") / "gallery", tiny_model())
    rows = []
    for n in range(80):
        path = f"/archive/{2020 + n % 4}/scene_{n}.tif"
        place = _square(13.0 + n / 100, 52.0) if n % 2 == 0 else _square(179.95, n / 100)
        time = datetime(2020 + n % 4, 6, 1, tzinfo=UTC) if n % 3 == 0 else None
        known = place if n < 70 else None
        rows.append(Row(item_id(path), path, "image", f"{n:064x}", footprint=known, acquired=time))
    rng = np.random.default_rng(0)
    made.append(rows, _unit(rng.standard_normal((80, 32)) + 0.5))
    made.add_texts([f"caption number {n}" for n in range(5)])
    return made


def _calibrate(gallery: Gallery, scores: list[float], score: str = "vacuity", direction: str = "text") -> None:
    calibration = Calibration(tiny_model().fingerprint, direction, 80, score, np.array(scores))  # type: ignore[arg-type]
    store_calibration(gallery, calibration, "images")


@pytest.fixture(autouse=True)
def uncalibrated(gallery: Gallery) -> None:
    drop(gallery.path, files_under(gallery.path, "calibration"))


def test_hits_and_evidence_are_those_of_a_plain_loop(gallery: Gallery) -> None:
    answer = Retriever(gallery).search(text=WORDS[0], top=7)
    query = tiny_model().encode_texts([WORDS[0]])[0].astype(np.float64)
    similarity = gallery.vectors[:80].astype(np.float64) @ query
    order = np.argsort(-similarity)[:7]
    assert [hit.id for hit in answer.hits] == [row.id for row in gallery.rows(order.tolist())]
    assert [hit.score for hit in answer.hits] == pytest.approx(similarity[order].tolist())
    assert answer.uncertainty == pytest.approx(80 / np.sum(np.exp(similarity / 0.1) + 1), rel=1e-6)
    assert [hit.rank for hit in answer.hits] == list(range(1, 8))
    assert (answer.verdict, answer.percentile, answer.searched) == ("answered", None, 80)
    assert "not calibrated" in answer.explanation


def test_a_batch_answers_like_single_queries(gallery: Gallery) -> None:
    _calibrate(gallery, list(np.linspace(-6, 0, 50)))
    retriever, half = Retriever(gallery), Refining(0.5)
    texts = [*WORDS, "something else entirely", WORDS[1]]
    batch = retriever.search_batch(texts=texts, top=5, refine=half)
    for text, together in zip(texts, batch, strict=True):
        alone = retriever.search(text=text, top=5, refine=half)
        assert [hit.id for hit in alone.hits] == [hit.id for hit in together.hits]
        assert alone.verdict == together.verdict
        # A text's vector may differ in its last bits with the padding of its batch.
        assert [hit.score for hit in alone.hits] == pytest.approx([hit.score for hit in together.hits], abs=1e-5)
        assert alone.uncertainty == pytest.approx(together.uncertainty, rel=1e-4)
    assert {answer.verdict for answer in batch} & {"refined", "abstained"}
    images = retriever.search_batch(images=[picture(1), picture(2)], top=3)
    assert [hit.id for hit in images[1].hits] == [hit.id for hit in retriever.search(image=picture(2), top=3).hits]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(bbox=Bounds(13.0, 51.0, 13.2, 53.0)), lambda n: n < 70 and n % 2 == 0 and 13 + n / 100 <= 13.2),
        (Filters(bbox=Bounds(179.0, -5.0, -179.0, 5.0)), lambda n: n < 70 and n % 2 == 1),
        (Filters(bbox=Bounds(-180.0, -5.0, -179.96, 5.0)), lambda n: n < 70 and n % 2 == 1),
        (Filters(bbox=Bounds(-179.0, -5.0, 0.0, 5.0)), lambda n: n < 0),
        (Filters(after=datetime(2022, 6, 1, tzinfo=UTC)), lambda n: n % 3 == 0 and n % 4 >= 2),
        (Filters(before=datetime(2022, 6, 1, tzinfo=UTC)), lambda n: n % 3 == 0 and n % 4 < 2),
        (Filters(glob="2021/*"), lambda n: n % 4 == 1),
        (Filters(glob="./2021/*"), lambda n: n % 4 == 1),
        (Filters(glob="*_1?.tif"), lambda n: 10 <= n < 20),
        (Filters(glob="/archive/*/scene_7.tif"), lambda n: n == 7),
        (Filters(glob="2020/*", bbox=Bounds(13.0, 51.0, 13.2, 53.0)), lambda n: n % 4 == 0 and n <= 20),
    ],
)
def test_filters_choose_before_the_scan(gallery: Gallery, filters: Filters, expected: object) -> None:
    assert callable(expected)
    wanted = {item_id(f"/archive/{2020 + n % 4}/scene_{n}.tif") for n in range(80) if expected(n)}
    answer = Retriever(gallery).search(text=WORDS[1], top=100, filters=filters)
    assert {hit.id for hit in answer.hits} == wanted
    assert answer.searched == len(wanted)
    if not wanted:
        assert answer.verdict == "abstained"
        assert answer.uncertainty == 1.0
    else:  # the evidence is that of the rows that were searched
        rows = [i for i, row in enumerate(gallery.rows(range(80))) if row.id in wanted]
        s = gallery.vectors[rows].astype(np.float64) @ tiny_model().encode_texts([WORDS[1]])[0]
        assert answer.uncertainty == pytest.approx(len(rows) / np.sum(np.exp(s / 0.1) + 1), rel=1e-6)


def test_texts_are_found_by_images(gallery: Gallery) -> None:
    answer = Retriever(gallery).search(image=picture(5), among="texts", top=10)
    assert {hit.kind for hit in answer.hits} == {"text"}
    assert answer.searched == 5
    similarity = gallery.vectors[80:] @ tiny_model().encode_images([picture(5)])[0]
    assert [hit.caption for hit in answer.hits] == [f"caption number {n}" for n in np.argsort(-similarity)]


def test_verdicts_follow_the_calibration(gallery: Gallery) -> None:
    score = -np.log(1 / Retriever(gallery).search(text=WORDS[2]).uncertainty - 1)  # -m
    for offset, verdict, percentile in ((5.0, "answered", 0.0), (-5.0, "abstained", 1.0)):
        _calibrate(gallery, [score + offset] * 50)
        answer = Retriever(gallery).search(text=WORDS[2])
        assert (answer.verdict, answer.percentile) == (verdict, percentile)
        assert len(answer.hits) == 10
    _calibrate(gallery, [score - 5.0] * 49)  # of so few that somebody thought of none is among the last 2 %
    assert Retriever(gallery).search(text=WORDS[2]).verdict == "refined"
    _calibrate(gallery, [score - 1.0] * 93 + [score + 1.0] * 7)
    answer = Retriever(gallery).search(text=WORDS[2])
    assert (answer.verdict, answer.percentile) == ("refined", 0.93)


def test_whether_to_ask_again_is_said_with_the_search(gallery: Gallery) -> None:
    _calibrate(gallery, list(np.linspace(-20, 20, 50)))
    retriever = Retriever(gallery)
    ways = (NEVER, ALWAYS, AS_CALIBRATED, NEVER)
    found = [retriever.search(text=WORDS[2], refine=way) for way in ways]
    assert [answer.verdict for answer in found] == ["answered", "refined", "answered", "answered"]
    assert len({answer.percentile for answer in found}) == 1
    with pytest.raises(InputError, match=r"refine ratio 1\.5"):
        retriever.search(text=WORDS[2], refine=Refining(1.5))


def test_refinement_is_the_mean_of_lexicon_copies(gallery: Gallery) -> None:
    class Fixed:
        copies = 2

        def texts(self, text: str, rng: np.random.Generator) -> list[str]:  # noqa: ARG002
            return [WORDS[2], WORDS[3]]

        def images(self, image: object, rng: np.random.Generator) -> list[object]:  # noqa: ARG002
            return []

    _calibrate(gallery, [-50.0] * 95 + [50.0] * 5)
    answer = Retriever(gallery).search(text=WORDS[1], refine=Refining(refiner=Fixed()))  # type: ignore[arg-type]
    assert answer.verdict == "refined"
    mean = tiny_model().encode_texts([WORDS[1], WORDS[2], WORDS[3]]).astype(np.float64).mean(axis=0)
    mean /= np.linalg.norm(mean)
    similarity = gallery.vectors[:80].astype(np.float64) @ mean
    order = np.argsort(-similarity)[:10].tolist()
    after = [row.id for row in gallery.rows(order)]
    assert [hit.id for hit in answer.hits] == after
    plain = gallery.vectors[:80].astype(np.float64) @ tiny_model().encode_texts([WORDS[1]])[0]
    before = [row.id for row in gallery.rows(np.argsort(-plain)[:10].tolist())]
    assert answer.refinement is not None
    assert set(answer.refinement.entered) == set(after) - set(before)
    assert set(answer.refinement.left) == set(before) - set(after)
    assert answer.refinement.uncertainty_before == pytest.approx(80 / np.sum(np.exp(plain / 0.1) + 1), rel=1e-6)


def test_a_search_goes_on_when_a_writer_removed_its_version(tmp_path: Path) -> None:
    made = Gallery.create(tmp_path / "g", tiny_model())
    rows = [Row(item_id(str(n)), str(n), "image", f"{n:064x}") for n in range(30)]
    vectors = _unit(np.random.default_rng(1).standard_normal((30, 32)))
    made.append(rows[:10], vectors[:10])
    retriever = Retriever(Gallery.open(made.path))
    assert retriever.search(text=WORDS[0]).searched == 10
    pieces = set((made.path / "rows.lance" / "data").iterdir())
    made.append(rows[10:], vectors[10:])
    made.compact()
    for piece in pieces:  # as cleaning up after an hour would do
        piece.unlink()
    assert retriever.search(text=WORDS[0], top=30).searched == 30


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "give a text or an image"),
        ({"text": "a", "image": "b"}, "'b' does not exist"),
        ({"text": " "}, "the query is empty"),
        ({"text": "x" * 2001}, "2001 characters, more than 2000"),
        ({"text": "a \ud800"}, "half a character"),
        ({"text": "a", "top": 0}, "top is 0"),
        ({"text": 5}, "is 5; give a string"),
        ({"image": 3}, "is 3; give a path"),
        ({"image": Image.new("RGB", (40, 40), "white")}, "the image shows nothing"),
        ({"image": Image.new("I;16", (40, 40), 700), "text": "a river"}, "the image shows nothing"),
    ],
)
def test_senseless_queries_are_refused(gallery: Gallery, arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Retriever(gallery).search(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("box", [(190, 0, 10, 10), (0, 20, 10, 10), (0, -95, 10, 10), (float("nan"), 0, 1, 1)])
def test_senseless_boxes_are_refused(box: tuple[float, float, float, float]) -> None:
    with pytest.raises(InputError, match="west,south,east,north"):
        Filters(bbox=Bounds(*box))


def test_answers_as_json_and_geojson(gallery: Gallery) -> None:
    answer = Retriever(gallery).search(text=WORDS[0], top=80)
    content = json.loads(json.dumps(answer.json(), allow_nan=False))
    assert len(content["hits"]) == 80
    assert content["verdict"] == "answered"
    features = json.loads(json.dumps(answer.geojson(), allow_nan=False))["features"]
    kinds = [feature["geometry"]["type"] if feature["geometry"] else None for feature in features]
    assert sorted(kinds, key=str) == ["MultiPolygon"] * 35 + [None] * 10 + ["Polygon"] * 35


@pytest.mark.parametrize("score", ["vacuity", "similarity", "belief"])
def test_a_rows_own_evidence_is_left_out_even_at_low_temperature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, score: str
) -> None:
    tau, count = 0.01, 101
    monkeypatch.setattr("evidex.retrieval.certainty.self_calibrating._ROWS_AT_ONCE", 25)
    made = Gallery.create(tmp_path / "g", Model(tiny_model().encoder, tau))
    rows = [Row(item_id(str(n)), str(n), "image", f"{n:064x}") for n in range(count)]
    vectors = np.random.default_rng(2).standard_normal((count, 32))
    vectors[1] = vectors[0]  # neither a row itself nor its copy is evidence for it
    made.append(rows, _unit(vectors))
    _, image = self_calibrate(made, np.random.default_rng(0), score=score)
    expected = []
    for i in range(count):
        s = [
            math.fsum(a * b for a, b in zip(made.vectors[i].tolist(), made.vectors[j].tolist(), strict=True))
            for j in range(count)
            if j != i and {i, j} != {0, 1}
        ]
        evidence = [math.exp(value / tau) for value in s]
        total = math.fsum(evidence)
        belief = (max(evidence) + 1) / (total + count - 1)
        expected.append({"vacuity": math.log((count - 1) / total), "similarity": -max(s), "belief": 1 - belief}[score])
    np.testing.assert_allclose(image.calibration.scores, np.sort(expected), rtol=1e-9, atol=1e-12)


def test_a_gallery_calibrates_itself(gallery: Gallery) -> None:
    text, image = self_calibrate(gallery, np.random.default_rng(0))
    assert text.source.startswith("common questions")
    assert image.calibration.gallery_size == 79
    s = gallery.vectors[:80].astype(np.float64) @ gallery.vectors[:80].astype(np.float64).T / 0.1
    np.fill_diagonal(s, -np.inf)
    expected = np.sort(-(np.log(np.exp(s).sum(axis=1)) - np.log(79)))
    assert image.calibration.scores == pytest.approx(expected, rel=1e-5)
    assert Retriever(gallery).search(image=picture(1)).standing.is_calibrated
    assert not Retriever(gallery).search(image=picture(1), among="texts").standing.is_calibrated
    _calibrate(gallery, [-99.0] * 30)  # what is given goes before what the gallery made itself
    assert Retriever(gallery).search(text=WORDS[0]).percentile == 1.0
    with pytest.raises(InputError, match="too few"):
        calibrate(gallery, [KnownQuery("a")], "text", rng=np.random.default_rng(0))


def test_contact_sheets_show_hits_even_of_files_that_are_gone(tmp_path: Path) -> None:
    from PIL import Image

    paths = write_images(tmp_path / "a", 6)
    made = Gallery.create(tmp_path / "g", tiny_model())
    made.add(tmp_path / "a")
    answer = Retriever(made).search(text="<b>a river</b>", top=6)
    paths[0].unlink()
    write_contact_sheet(made, answer, tmp_path / "sheet.png")
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.width > 1000
        assert len(set(sheet.resize((64, 32)).get_flattened_data())) > 50
    write_contact_sheet(made, answer, tmp_path / "sheet.html")
    page = (tmp_path / "sheet.html").read_text()
    assert page.count("data:image/jpeg") == 5
    assert "<b>a river</b>" not in page
    with pytest.raises(InputError, match="neither"):
        write_contact_sheet(made, answer, tmp_path / "sheet.pdf")
