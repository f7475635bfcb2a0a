from __future__ import annotations

import gzip
import html
import json
import random
from itertools import pairwise
from pathlib import Path

import pytest
import regex  # type: ignore[import-untyped]

from evidex.encoders.clip.byte_pairs import byte_symbols
from evidex.encoders.clip.tokenizer import BPE_FILE, END, START, ClipTokenizer
from evidex.errors import ModelError
from tests.encoders.clip.tiny_clip import CORPUS, tiny_vocabulary, write_vocabulary

PATTERN = regex.compile(
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+", regex.IGNORECASE
)
TEXTS = [
    "many planes are parked near the terminal .",
    "Several   PLANES\t\nare PARKED",
    "it's the harbour's, they'll don't we've I'm you'd",
    "10 of 12 tanks, 3.5km² at 45°N",
    "",
    "   ",
    "Flughafen Zürich — ein 'Test' mit „Anführung“",
    "机场 аэропорт 🛩️🛩️ café",
    "a,b;c!!?...(d)[e]{f}<g>|h|",
    "&amp; 5 &lt; 6",
    "river " * 200,
]


def reference_ids(text: str, context: int) -> list[int]:
    """OpenAI's tokenizer, written out: clean, split, map bytes, merge the best pair until none is left."""
    tokens, merges = tiny_vocabulary()
    number = {token: index for index, token in enumerate(tokens)}
    rank = {pair: index for index, pair in enumerate(merges)}
    # Printable bytes stand for themselves, the rest get 256 and up in their order.
    symbol_of: dict[int, str] = {}
    for byte in range(256):
        printable = 33 <= byte <= 126 or 161 <= byte <= 172 or 174 <= byte <= 255
        symbol_of[byte] = chr(byte) if printable else ""
    for offset, byte in enumerate(byte for byte in range(256) if not symbol_of[byte]):
        symbol_of[byte] = chr(256 + offset)
    ids = [number[START]]
    for word in PATTERN.findall(regex.sub(r"\s+", " ", text).strip().lower()):
        symbols = [symbol_of[byte] for byte in word.encode("utf-8")]
        symbols[-1] += "</w>"
        while True:
            ranked = [(rank[pair], at) for at, pair in enumerate(pairwise(symbols)) if pair in rank]
            if not ranked:
                break
            best = min(ranked)[0]
            pair, merged, at = merges[best], [], 0
            while at < len(symbols):
                if tuple(symbols[at : at + 2]) == pair:
                    merged.append("".join(pair))
                    at += 2
                else:
                    merged.append(symbols[at])
                    at += 1
            symbols = merged
        ids += [number[symbol] for symbol in symbols]
    return [*ids[: context - 1], number[END]]


@pytest.fixture
def tokenizer() -> ClipTokenizer:
    return ClipTokenizer(*tiny_vocabulary(), context=77)


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_equal_openai_tokenizer(tokenizer: ClipTokenizer, text: str) -> None:
    assert tokenizer([text])[0].tolist() == reference_ids(text, 77)


def test_tokens_of_random_texts_equal_openai_tokenizer(tokenizer: ClipTokenizer) -> None:
    choose = random.Random(5)
    letters = CORPUS + "'’!?0123456789 \u00e9\u00df\u4e2d\n"
    for _ in range(200):
        text = "".join(choose.choice(letters) for _ in range(choose.randrange(1, 120)))
        assert tokenizer([text])[0].tolist() == reference_ids(text, 77)


def test_a_batch_is_padded_to_its_longest_text_with_the_end_token(tokenizer: ClipTokenizer) -> None:
    rows = tokenizer(["planes", "many planes are parked near the terminal"])
    single = tokenizer(["planes"])[0].tolist()
    assert rows.shape[1] == len(reference_ids("many planes are parked near the terminal", 77))
    assert rows[0].tolist() == single + [tokenizer.end_token] * (rows.shape[1] - len(single))


def test_a_long_text_keeps_start_and_end(tokenizer: ClipTokenizer) -> None:
    row = tokenizer(["river " * 200])[0].tolist()
    assert len(row) == 77
    assert row[-1] == tokenizer.end_token
    assert row.count(tokenizer.end_token) == 1


def test_no_texts_give_no_rows(tokenizer: ClipTokenizer) -> None:
    assert tokenizer([]).shape[0] == 0


def test_json_keeps_the_tokenizer(tokenizer: ClipTokenizer) -> None:
    again = ClipTokenizer.from_json(json.loads(json.dumps(tokenizer.to_json())), 77)
    assert again.tokens == tokenizer.tokens
    assert [again([text]).tolist() for text in TEXTS] == [tokenizer([text]).tolist() for text in TEXTS]


@pytest.mark.parametrize("form", ["vocabulary", "tokenizer.json", "byte pairs", "byte pair file"])
def test_every_published_form_gives_the_same_tokens(tokenizer: ClipTokenizer, tmp_path: Path, form: str) -> None:
    source = tmp_path
    if form == "vocabulary":
        write_vocabulary(tmp_path)
    elif form == "tokenizer.json":
        from transformers import CLIPTokenizer

        tokens, merges = tiny_vocabulary()
        CLIPTokenizer(vocab={token: n for n, token in enumerate(tokens)}, merges=merges).save_pretrained(tmp_path)
        assert (tmp_path / "tokenizer.json").is_file()
        assert not (tmp_path / "vocab.json").is_file()
    else:
        lines = ["title", *(" ".join(pair) for pair in tiny_vocabulary()[1])]
        with gzip.open(tmp_path / BPE_FILE, "wt", encoding="utf-8") as stream:
            stream.write("\n".join(lines) + "\n")
        source = tmp_path if form == "byte pairs" else tmp_path / BPE_FILE
    loaded = ClipTokenizer.from_files(source, 77)
    assert [loaded([text]).tolist() for text in TEXTS] == [tokenizer([text]).tolist() for text in TEXTS]


def test_symbols_are_distinct_and_cover_all_bytes() -> None:
    assert len(set(byte_symbols())) == 256


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has no tokenizer"),
        ({"vocab.json": "{}"}, "has no tokenizer"),
        ({"tokenizer.json": "{"}, "unreadable"),
        ({"tokenizer.json": "[]"}, "unreadable"),
        ({"vocab.json": "{}", "merges.txt": "title\n"}, "startoftext"),
        ({"vocab.json": '{"a": 0, "b": 5}', "merges.txt": "title\n"}, "0 to 1"),
        ({"vocab.json": '{"a": 0}', "merges.txt": "title\na b c\n"}, "not a pair"),
        ({"vocab.json": f'{{"a": 0, "{START}": 1, "{END}": 2}}', "merges.txt": "title\na a\n"}, "to no token"),
        ({BPE_FILE: "not gzip"}, "unreadable"),
    ],
)
def test_damaged_files_are_one_clear_line(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(ModelError, match=message) as caught:
        ClipTokenizer.from_files(tmp_path, 77)
    assert "\n" not in str(caught.value)


def test_entities_are_read_as_they_stand(tokenizer: ClipTokenizer) -> None:
    assert tokenizer(["&amp;"]).tolist() != tokenizer([html.unescape("&amp;")]).tolist()


def _transformers_ids(texts: list[str]) -> list[list[int]]:
    from tokenizers import Tokenizer
    from transformers import CLIPTokenizer

    tokens, merges = tiny_vocabulary()
    clip = CLIPTokenizer(vocab={token: number for number, token in enumerate(tokens)}, merges=list(merges))
    plain = Tokenizer.from_str(clip.backend_tokenizer.to_str())
    plain.enable_truncation(77)
    return [plain.encode(text).ids for text in texts]


def test_tokens_of_any_text_equal_those_of_transformers(tokenizer: ClipTokenizer) -> None:
    choose = random.Random(11)
    letters = "aeéE\u0301ßΣσİ 's'LL'd''m\t\x1c\x85\u2009\u200b\u3000½²Ⅷ٣7_-–.!|<>日本🛩️ñ\ufffd\u0000ﬁ"
    texts = ["".join(choose.choices(letters, k=choose.randrange(25))) for _ in range(300)]
    texts += [*TEXTS, f"a{END}river {START}b", "<|EndOfText|>", "ΟΔΟΣ ΟΔΟΣ.", "x" * 400]
    for text, expected in zip(texts, _transformers_ids(texts), strict=True):
        assert tokenizer.encode(text) == expected, repr(text)
