"""How a question stands to what the model was taught: slips of the pen, words left out, faint matches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evidex.encoders.domain import Domain, words_of
from evidex.encoders.model import Model
from evidex.encoders.nearness import Nearness
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.out_of_domain import Bar, Reading, meant, readings
from evidex.retrieval.refine import NEVER
from evidex.retrieval.retriever import Retriever
from tests.retrieval.archive import WORDS, arbitrary_gallery, tiny_model

TAUGHT = ["river", "rivers", "airport", "stadium", "harbor", "forest", "mountain", "tanks", "a", "near", "trees"]


def _known(model: Model, *, far: float = 10.0, matches: tuple[float, float] | None = None) -> Domain:
    """Knows the words and calls nothing out of domain unless it lies further out than ``far``."""
    return Domain(
        words_of([*TAUGHT, *WORDS]),
        np.zeros(model.dim, np.float32),
        np.eye(1, model.dim, dtype=np.float32),
        np.array([0.0, far], np.float32),
        None if matches is None else np.array(matches, np.float32),
    )


@pytest.mark.parametrize(
    ("slip", "word"),
    [("rivr", "river"), ("aiport", "airport"), ("statium", "stadium"), ("habour", "harbor"), ("forrest", "forest"),
     ("montain", "mountain"), ("tnaks", "tanks")],
)  # fmt: skip
def test_a_slip_of_the_pen_is_told_what_it_may_mean(slip: str, word: str) -> None:
    assert meant(_known(tiny_model()), [slip]) == (word,)


def test_other_words_mean_nothing_else() -> None:
    known = _known(tiny_model())
    assert meant(known, ["elephant", "violin", "x"]) == ()
    assert meant(known, ["aiport", "airprt"]) == ("airport",)
    assert meant(None, ["rivr"]) == ()


def test_slips_of_captions_are_not_offered() -> None:
    """Captions have "ariport", too; people are offered what people write."""
    known = replace(_known(tiny_model()), words=words_of(["ariport", "airport"]))
    assert meant(known, ["ariporrt"]) == ("ariport",)
    common = replace(known, nearness=Nearness(("airport",), np.array([255], np.uint8)))
    assert meant(common, ["ariporrt"]) == ("airport",)
    table = Nearness(("airport", "jet"), np.array([255, 255], np.uint8))
    others = {f"w{chr(97 + n // 26)}{chr(97 + n % 26)}": 5 for n in range(80)}
    counts = {**others, "jetty": 500, "jet": 900, "ariport": 2, "airport": 900}
    counted = replace(known, words=words_of(counts), counts=counts, nearness=table)
    assert meant(counted, ["jettey", "ariporrt"]) == ("jetty", "airport")
    assert meant(counted, ["ariporrrt"]) == ()  # near to the slip alone, which captions hardly have


def _bar(known: Domain | None, *, decides: bool = True) -> Bar:
    return Bar.of(known, "text", "images", decides=decides, refuses=True)


def test_a_match_is_faint_below_three_of_four_right_ones() -> None:
    known = _known(tiny_model(), matches=(0.0, 0.8))
    bar = _bar(known)
    assert bar.fair == pytest.approx(0.2)
    assert bar.usual == pytest.approx(0.4)
    assert bar.is_faint(np.array([0.19, 0.1]))
    assert not bar.is_faint(np.array([0.21, 0.1]))
    assert bar.is_faint(np.array([np.nan]))
    assert not bar.is_faint(np.array([]))
    for silent in (_bar(_known(tiny_model())), _bar(None), _bar(known, decides=False)):
        assert not silent.is_faint(np.array([-1.0]))


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    plain = tiny_model()
    model = Model(plain.encoder, plain.temperature, domain=_known(plain, matches=(-1.0, -0.9)))
    return arbitrary_gallery(tmp_path / "g", model, 50)


def test_a_word_that_is_left_out_is_named_beside_the_answer(gallery: Gallery) -> None:
    plain, odd, slip = Retriever(gallery).search_batch(texts=["a river", "an elephant near a river", "a rivr"])
    assert plain.standing.reading == Reading()
    assert odd.verdict == "answered"
    assert odd.standing.reading == Reading(ignored_words=("an", "elephant"))
    assert odd.explanation.endswith("The model never learned 'an' and 'elephant'; the hits may leave that out.")
    assert slip.explanation.endswith("never learned 'rivr'; the hits may leave that out. Did you mean 'river'?")
    assert (slip.json()["ignored_words"], slip.json()["did_you_mean"]) == (["rivr"], ["river"])


def test_a_question_that_is_read_in_part_says_so(gallery: Gallery) -> None:
    long = "river near trees " * 30
    whole, cut = Retriever(gallery).search_batch(texts=["a river near trees", long])
    assert (whole.standing.reading.in_part, cut.standing.reading.in_part) == (False, True)
    assert "Only the beginning of the question was read." in cut.details
    alone, longer = (Retriever(gallery).search(text=text).hits for text in (long, f"{long} near a stadium"))
    assert alone == longer
    assert gallery.model.reads_all("find all images of a river")


def test_a_question_out_of_domain_is_told_what_it_may_mean(gallery: Gallery) -> None:
    gallery.model.domain = _known(gallery.model, far=1e-6)
    answer = Retriever(gallery).search(text="statium montain one two green blue")
    assert answer.verdict == "abstained"
    assert answer.explanation.startswith(
        "The model never learned 'statium', 'montain', 'one' and more, nor anything like it. "
        "Did you mean 'stadium' and 'mountain'? The hits are the nearest"
    )
    assert answer.standing.reading.ignored_words == ()


def test_a_slip_that_finds_nothing_is_told_what_it_may_mean(gallery: Gallery) -> None:
    gallery.model.domain = _known(gallery.model, matches=(0.99, 1.0))
    answer = Retriever(gallery).search(text="a rivr")
    assert answer.standing.floor is not None
    assert answer.explanation.endswith(
        "Did you mean 'river'? The hits are the nearest things in the archive, not an answer."
    )


def test_what_is_left_out_or_faint_is_no_good_match(gallery: Gallery) -> None:
    from evidex.retrieval.certainty.self_calibrating import self_calibrate

    self_calibrate(gallery, np.random.default_rng(0))

    def headlines() -> list[str]:
        asked = Retriever(gallery, abstain_ratio=1e-9).search_batch(texts=["a river", "a rivr"], refine=NEVER)
        return [answer.headline for answer in asked]

    first, second = headlines()
    assert first in ("Good matches", "Plausible matches")
    assert second == "Perhaps: look twice"
    known = gallery.model.domain
    assert known is not None
    rising = np.array([-1.0, -1.0, 0.99, *[1.0] * 8], np.float32)  # nothing is too weak, everything is faint
    gallery.model.domain = Domain(known.words, known.mean, known.directions, known.lengths, rising)
    self_calibrate(gallery, np.random.default_rng(0))
    answer = Retriever(gallery, abstain_ratio=1e-9).search(text="a river", refine=NEVER)
    assert (answer.verdict, answer.standing.floor, answer.json()["faint"]) == ("answered", None, True)
    assert answer.headline == "Perhaps: look twice"
    assert answer.explanation == "Even the best hit is only faintly like your question."


def _read(texts: list[str], *, outlying: float, counted: bool = True) -> list[Reading]:
    """Of a model that was taught tanks and pools often, tables in passing, and knows harbors to be near."""
    plain = tiny_model()
    counts = {f"w{chr(97 + n)}": 5 for n in range(26)} | dict.fromkeys(("tanks", "pool", "a", "in", "white", "of"), 500)
    counts |= {"table": 4, "spire": 2}
    known = Domain(
        frozenset(counts),
        np.zeros(plain.dim, np.float32),
        np.eye(1, plain.dim, dtype=np.float32),
        np.array([0.0, 1.0], np.float32),
        nearness=Nearness(("germany", "harbor", "spire", "table", "wine"), np.array([255, 255, 255, 200, 9], np.uint8)),
        counts=counts if counted else None,
    )
    vectors = np.tile(outlying * np.eye(plain.dim, dtype=np.float32)[-1], (len(texts), 1))
    return readings(Model(plain.encoder, plain.temperature, domain=known), texts, vectors, "text")


@pytest.mark.parametrize(
    ("text", "hardly", "in_passing"),
    [
        ("a table", True, ("table",)),
        ("a pool table", True, ("table",)),  # a table is asked for
        ("a table pool", False, ()),
        ("white wine", True, ()),  # never taught at all
        ("white tanks", False, ()),
        ("a spire", False, ()),  # near
        ("a pool of tanks in a white table", False, ()),
        ("a table of wine in a pool", True, ("table",)),  # most of what is named
    ],
)
def test_a_question_hangs_on_what_it_names(text: str, hardly: bool, in_passing: tuple[str, ...]) -> None:
    (read,) = _read([text], outlying=0.6)
    assert (read.hardly_known, read.in_passing) == (hardly, in_passing)
    for silent in (_read([text], outlying=0.4), _read([text], outlying=0.6, counted=False)):
        assert not silent[0].hardly_known


@pytest.mark.parametrize(
    ("text", "ignored"),
    [
        ("a pool in Germany", ("germany",)),
        ("a pool in germany", ()),  # near, and perhaps no name
        ("Pool In Germany", ()),
        ("Germany", ()),
        ("Germany in white", ()),
        ("a harbor in Germany", ("germany",)),
    ],
)
def test_a_name_is_nothing_that_hits_show(text: str, ignored: tuple[str, ...]) -> None:
    assert _read([text], outlying=0.3)[0].ignored_words == ignored
