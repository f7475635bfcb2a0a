"""What lies outside of what a model was taught, against projections by least squares, and the shipped model's own."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

import evidex
from evidex.encoders.domain import DIRECTIONS, OUT_OF_DOMAIN, Domain, count_words, fit_domain, words_of
from evidex.encoders.model import Model, load_model
from evidex.encoders.nearness import Nearness
from evidex.errors import InputError, ModelError
from tests.retrieval.archive import tiny_model

DIM = 200
WORDS = words_of(["Many planes are parked beside a city, with 3 bushes"])


def _texts(rng: np.random.Generator, count: int, noise: float = 0.02) -> np.ndarray:
    """Unit rows that differ in 40 directions, and a little in all."""
    base = np.random.default_rng(0).standard_normal((40, DIM))
    rows = rng.standard_normal((count, 40)) @ base / 15 + 0.3 + noise * rng.standard_normal((count, DIM))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@pytest.fixture(scope="module")
def known() -> Domain:
    rng = np.random.default_rng(1)
    return fit_domain(WORDS, _texts(rng, 1500), _texts(rng, 4000))


def test_what_lies_outside_is_what_least_squares_leaves(known: Domain) -> None:
    rng = np.random.default_rng(2)
    trained = _texts(np.random.default_rng(1), 1500).astype(np.float64)
    mean = trained.mean(axis=0)
    main = np.linalg.svd(trained - mean)[2][:DIRECTIONS]
    vectors = np.concatenate([_texts(rng, 20), rng.standard_normal((20, DIM)).astype(np.float32)])
    apart = vectors - mean
    fitted = np.linalg.lstsq(main.T, apart.T, rcond=None)[0]
    expected = np.linalg.norm(apart.T - main.T @ fitted, axis=0)
    np.testing.assert_allclose(known.outside(vectors), expected, rtol=1e-4, atol=1e-5)


def test_texts_of_the_same_kind_are_as_outlying_as_their_share_says(known: Domain) -> None:
    outlying = known.outlying(_texts(np.random.default_rng(3), 4000))
    for share in (0.1, 0.5, 0.9, 0.98):
        assert (outlying > share).mean() == pytest.approx(1 - share, abs=0.03 if share < 0.9 else 0.01)
    out_of_domain = np.random.default_rng(4).standard_normal((300, DIM)).astype(np.float32)
    assert (known.outlying(out_of_domain / np.linalg.norm(out_of_domain, axis=1, keepdims=True)) == 1.0).all()
    assert np.isnan(known.outlying(np.full((1, DIM), np.nan, np.float32))).all()


def test_small_features_leave_room_outside() -> None:
    trained, others = (np.random.default_rng(n).standard_normal((200, 8)).astype(np.float32) for n in (5, 6))
    small = fit_domain(WORDS, trained, others)
    assert len(small.directions) == 4
    assert small.lengths[0] > 0


def test_words_are_known_in_any_number_and_case(known: Domain) -> None:
    assert known.new_words("A plane, a bush; CITIES and 12 plane-parks beside buses") == ("and", "parks", "buses")
    assert known.new_words("zebra zebra, Zebras!") == ("zebra", "zebras")
    assert known.new_words("12 34 _ !") == ()


def test_too_few_texts_and_numbers_that_do_not_fit_are_refused(known: Domain) -> None:
    rows = _texts(np.random.default_rng(6), DIRECTIONS)
    with pytest.raises(InputError, match="too few"):
        fit_domain(WORDS, rows, rows)
    for mean, directions, lengths in (
        (known.mean[1:], known.directions, known.lengths),
        (known.mean, known.directions * np.nan, known.lengths),
        (known.mean, known.directions, known.lengths[::-1]),
        (known.mean, known.directions, known.lengths[:1]),
        (known.mean, known.directions, known.lengths * 0),
        (known.mean, known.directions * 3, known.lengths),
        (known.mean, known.directions[:0], known.lengths),
        (known.mean.astype(np.float64), known.directions, known.lengths),
    ):
        with pytest.raises(ValueError, match="domain"):
            Domain(WORDS, mean, directions, lengths)  # type: ignore[arg-type]


def test_a_match_is_what_nine_of_ten_right_pictures_reach(known: Domain) -> None:
    assert known.least_match is None
    similarity = np.random.default_rng(8).permutation(np.linspace(-0.2, 0.8, 1001)).astype(np.float32)
    told = known.with_matches(similarity)
    assert told.least_match == pytest.approx(np.quantile(similarity.astype(np.float64), 0.1), abs=1e-3)
    shares = told.matched(np.array([-1.0, -0.11, -0.09, 0.3, 0.9], np.float32))
    assert shares == pytest.approx([0.0, 0.0, 0.11, 0.5, 1.0], abs=1e-3)  # below the least match it is none
    assert known.matched(similarity) is None
    assert told.digest != known.digest
    assert (told.words, told.lengths is known.lengths) == (known.words, True)
    for broken in (np.array([0.3, 0.2]), np.array([0.1]), np.array([[0.1, 0.2]]), np.array([0.1, np.nan])):
        with pytest.raises(ValueError, match="domain"):
            replace(known, matches=broken.astype(np.float32))


def test_the_digest_is_that_of_all_its_parts_in_any_order_of_words(known: Domain) -> None:
    parts = {name: getattr(known, name) for name in ("words", "mean", "directions", "lengths")}
    same = Domain(frozenset(sorted(known.words, reverse=True)), *(parts[name].copy() for name in list(parts)[1:]))
    others = [
        Domain(**(parts | change))
        for change in (
            {"words": known.words | {"giraffe"}},
            {"mean": known.mean + np.float32(1e-6)},
            {"directions": -known.directions},
            {"lengths": known.lengths * np.float32(1.001)},
        )
    ]
    assert same.digest == known.digest
    assert len({known.digest, *(other.digest for other in others)}) == 5


def test_a_saved_model_keeps_what_it_knows_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    plain = tiny_model()
    trained, others = (rng.standard_normal((100, plain.dim)).astype(np.float32) for _ in "ab")
    known = fit_domain(WORDS, trained, others).with_matches(rng.random(50, np.float32))
    model = Model(plain.encoder, plain.temperature, domain=known)
    plain.save(tmp_path / "plain.safetensors", half=True)
    model.save(tmp_path / "m.safetensors", half=True)
    again = load_model(tmp_path / "m.safetensors")
    assert again.domain is not None
    assert again.domain.words == WORDS
    assert again.domain.digest == known.digest
    probe = rng.standard_normal((9, model.dim)).astype(np.float32)
    np.testing.assert_allclose(again.domain.outlying(probe), known.outlying(probe))
    without = load_model(tmp_path / "plain.safetensors")
    assert without.domain is None
    assert again.fingerprint == without.fingerprint, "it shapes no feature"

    from safetensors import safe_open

    with safe_open(tmp_path / "m.safetensors", framework="pt") as stream:
        described = json.loads(stream.metadata()["evidex"])
    described.pop("checksum")  # which would tell already; files of older versions have none
    header = {"evidex": json.dumps(described)}
    weights = load_file(tmp_path / "m.safetensors")
    for name, broken in (
        ("mean", weights["domain/mean"][:5]),
        ("lengths", weights["domain/lengths"] * 0),
        ("words", weights["domain/words"] + 128),
    ):
        save_file({**weights, f"domain/{name}": broken.clone()}, tmp_path / "broken.safetensors", header)
        with pytest.raises(ModelError, match="no readable model"):
            load_model(tmp_path / "broken.safetensors")


def _out_of_domain(texts: list[str]) -> list[str]:
    model = evidex.load_model()
    known = model.domain
    assert known is not None
    far = known.outlying(model.encode_texts(texts)) > OUT_OF_DOMAIN
    return [text for text, outside in zip(texts, far, strict=True) if outside and known.new_words(text)]


def test_the_shipped_model_knows_overhead_scenes_in_a_caption_or_a_word() -> None:
    words = (
        "ship boat airplane runway tree car cars lake tracks field pool highway intersection roof green river bridge"
    )
    phrases = [
        "a river between fields",
        "cars in a parking lot",
        "cargo ship",
        "lake shore",
        "many planes near a terminal",
    ]
    assert _out_of_domain(words.split() + phrases) == []


def test_the_shipped_model_knows_no_kitchens_and_says_which_words_it_lacks() -> None:
    texts = [
        "a giraffe on a tightrope",
        "avocado armchair",
        "my cat sleeping on the sofa",
        "a spoonful of honey",
    ]
    assert _out_of_domain(texts) == texts
    known = evidex.load_model().domain
    assert known is not None
    assert known.new_words("a giraffe near a river") == ("giraffe",)


@pytest.mark.parametrize(("word", "taught"), [("toes", "to"), ("bees", "be"), ("ass", "as"), ("ins", "in")])
def test_a_short_word_is_no_plural_of_a_shorter_one(known: Domain, word: str, taught: str) -> None:
    assert replace(known, words=frozenset({taught})).new_words(word) == (word,)


@pytest.mark.parametrize(
    ("word", "taught"), [("buses", "bus"), ("beaches", "beach"), ("planes", "plane"), ("bus", "bus")]
)
def test_a_plural_of_a_taught_word_is_taught(known: Domain, word: str, taught: str) -> None:
    assert replace(known, words=frozenset({taught})).new_words(word) == ()


COUNTS = {
    "river": 50,
    "rivers": 30,
    "plane": 9,
    "sock": 1,
    "socks": 1,
    "city": 4,
    "the": 90,
    "a": 95,
    "tree": 70,
    "of": 60,
}


@pytest.fixture
def counted(known: Domain) -> Domain:
    table = Nearness(("plane", "quarry", "sock"), np.array([255, 255, 10], np.uint8))
    return replace(known, words=frozenset(COUNTS), counts=COUNTS, nearness=table)


def test_a_word_is_counted_once_a_text_that_differs() -> None:
    texts = ["A river, a river.", "A river, a river.", "rivers and a tree", "TREE"]
    assert count_words(texts) == {"a": 2, "river": 1, "rivers": 1, "and": 1, "tree": 2}


def test_one_and_many_are_taught_together(counted: Domain) -> None:
    assert [counted.times_taught(word) for word in ("river", "rivers", "cities", "quarry")] == [80, 80, 4, 0]
    less = [sum(other < often for other in COUNTS.values()) / len(COUNTS) for often in (80, 4, 0)]
    assert [counted.taught_more(word) for word in ("river", "city", "quarry")] == less


def test_what_was_taught_in_passing_is_hardly_taught_unless_it_is_near(counted: Domain) -> None:
    asked = ("river", "socks", "plane", "quarry", "giraffe", "tree", "city")
    assert counted.hardly_taught(asked) == ("socks", "giraffe", "city")
    for silent in (replace(counted, counts=None), replace(counted, nearness=None)):
        assert silent.hardly_taught(asked) == ()
    assert replace(counted, counts=None).taught_more("river") is None


def test_counts_are_written_read_and_told_apart(counted: Domain, tmp_path: Path) -> None:
    plain = tiny_model()
    small = replace(counted, mean=np.zeros(plain.dim, np.float32), directions=np.eye(1, plain.dim, dtype=np.float32))
    for name, each in {"counted": small, "not": replace(small, counts=None)}.items():
        Model(plain.encoder, plain.temperature, domain=each).save(tmp_path / f"{name}.safetensors")
        read = load_model(tmp_path / f"{name}.safetensors", device="cpu").domain
        assert read is not None
        assert (read.counts, read.digest) == (each.counts, each.digest)
    assert small.digest != replace(small, counts=COUNTS | {"tree": 71}).digest != replace(small, counts=None).digest
    for wrong in ({"river": 1}, COUNTS | {"tree": -1}, COUNTS | {"zebra": 1}):
        with pytest.raises(ValueError, match="counts"):
            replace(small, counts=wrong)
