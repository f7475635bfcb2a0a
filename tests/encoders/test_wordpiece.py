"""WordPiece against transformers' own, and the vocabulary of a model trained from nothing."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertTokenizer

from evidex.encoders.wordpiece import WordPiece, build_vocabulary, split_words
from evidex.errors import ModelError

VOCABULARY = [
    *(
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "a",
        "an",
        "air",
        "##port",
        "##s",
        "plane",
        "##ne",
        "many",
        "are",
        ".",
        ",",
    ),
    *("p", "##l", "##a", "##p", "cafe", "'", "日", "-", "x", "##1", "1", "!"),
]
TEXTS = [
    "many planes are parked , an airport .",
    "Café's AIRPORTS!  x1-x",
    "日本 airport",
    "",
    "   ",
    "unknowable",
    "a\tb\nc\u200b",
    "x" * 150,
]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> BertTokenizer:
    path: Path = tmp_path_factory.mktemp("bert") / "vocab.txt"
    path.write_text("\n".join(VOCABULARY), encoding="utf-8")
    return BertTokenizer(vocab={piece: i for i, piece in enumerate(VOCABULARY)}, do_lower_case=True)


@pytest.mark.parametrize("text", TEXTS)
def test_equals_bert(reference: BertTokenizer, text: str) -> None:
    assert WordPiece(VOCABULARY, 64).encode(text) == reference(text, truncation=True, max_length=64)["input_ids"]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="aplne rtsx1日.,!'-é\t", max_size=40))
def test_equals_bert_on_anything(text: str) -> None:
    bert = BertTokenizer(vocab={piece: i for i, piece in enumerate(VOCABULARY)}, do_lower_case=True)
    assert WordPiece(VOCABULARY, 64).encode(text) == bert(text, truncation=True, max_length=64)["input_ids"]


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
def test_plain_text_is_split_like_any_other(text: str) -> None:
    assert split_words(text) == split_words(f"{text} é")[:-1]  # the accent takes the general way


def test_batches_are_padded_to_the_longest_and_cut_to_the_limit() -> None:
    tokens = WordPiece(VOCABULARY, 6)(["a", "a a a a a a a a a"])
    assert tokens["input_ids"].shape == (2, 6)
    assert tokens["input_ids"][0].tolist() == [2, 5, 3, 0, 0, 0]
    assert tokens["input_ids"][1].tolist() == [2, 5, 5, 5, 5, 3]
    assert tokens["attention_mask"].sum(1).tolist() == [3, 6]


def test_a_built_vocabulary_knows_frequent_words_and_spells_the_rest() -> None:
    vocabulary = build_vocabulary(["many planes .", "many ships .", "a rare word"])
    tokenizer = WordPiece(vocabulary, 64)
    assert "many" in vocabulary
    assert "rare" not in vocabulary
    pieces = [vocabulary[i] for i in tokenizer.encode("many rare")]
    assert pieces == ["[CLS]", "many", "r", "##a", "##r", "##e", "[SEP]"]
    assert build_vocabulary(["b a", "a b", "a b"]) == build_vocabulary(["a b", "b a", "b a"])


def test_a_damaged_vocabulary_is_refused() -> None:
    with pytest.raises(ModelError, match=r"lacks \[SEP\]"):
        WordPiece(["[PAD]", "[UNK]", "[CLS]"], 8)
    with pytest.raises(ModelError, match="unique"):
        WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "a"], 8)


def test_words_are_lowered_and_split() -> None:
    assert split_words("A Red-roofed CAFÉ.") == ["a", "red", "-", "roofed", "cafe", "."]
