"""WordPiece, as BERT's uncased models and MPNet use it, in plain Python: no tokenizer files beside the model.

Text is lowered, stripped of accents and split at white space and punctuation; each word is then cut
greedily into the longest known pieces, the later ones marked with ``##``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evidex.errors import ModelError

PAD, UNKNOWN, CLS, SEP = "[PAD]", "[UNK]", "[CLS]", "[SEP]"


class Specials(NamedTuple):
    """The pieces that stand for no part of a text."""

    pad: str
    unknown: str
    first: str
    last: str


_BERT, _MPNET = Specials(PAD, UNKNOWN, CLS, SEP), Specials("<pad>", UNKNOWN, "<s>", "</s>")
MAX_TOKENS = 64  # the longest caption of RSICD has 37 words
_MAX_WORD = 100  # BERT's: longer words are unknown
_ASCII_WORDS = re.compile(r"[a-z0-9]+|[^a-z0-9 ]")


class WordPiece:
    """Turns texts into padded ids with their mask."""

    def __init__(self, vocabulary: Sequence[str], max_tokens: int) -> None:
        self.vocabulary = list(vocabulary)
        self.max_tokens = max_tokens
        self._ids = {piece: index for index, piece in enumerate(self.vocabulary)}
        specials = specials_of(self.vocabulary)
        missing = [piece for piece in specials if piece not in self._ids]
        if missing or len(self._ids) != len(self.vocabulary):
            raise ModelError(f"vocabulary lacks {', '.join(missing) or 'unique pieces'}; the model file is damaged")
        self._pad, self._unknown, self._first, self._last = (self._ids[piece] for piece in specials)
        self._pieces_of_word: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """Return the ids of ``text`` between [CLS] and [SEP] (MPNet: <s> and </s>), cut to ``max_tokens``."""
        ids = [piece for word in split_words(text) for piece in self._word(word)]
        return [self._first, *ids[: self.max_tokens - 2], self._last]

    def __call__(self, texts: Sequence[str]) -> dict[str, NDArray[np.int64]]:
        rows = [self.encode(text) for text in texts]
        length = max(map(len, rows), default=1)
        padding = [self._pad] * length
        ids = np.array([row + padding[len(row) :] for row in rows], dtype=np.int64).reshape(len(rows), length)
        used = np.array([len(row) for row in rows], dtype=np.int64)
        return {"input_ids": ids, "attention_mask": (np.arange(length) < used[:, None]).astype(np.int64)}

    def _word(self, word: str) -> list[int]:
        known = self._pieces_of_word.get(word)
        if known is None:
            known = self._cut(word)
            if len(self._pieces_of_word) < 10_000:  # 2 MiB: a server must not grow with its queries
                self._pieces_of_word[word] = known
        return known

    def _cut(self, word: str) -> list[int]:
        pieces: list[int] = []
        start = 0
        while start < len(word) <= _MAX_WORD:
            for end in range(len(word), start, -1):
                piece = self._ids.get(("##" if start else "") + word[start:end])
                if piece is not None:
                    pieces.append(piece)
                    start = end
                    break
            else:
                return [self._unknown]
        return pieces if start else [self._unknown]


def specials_of(vocabulary: Sequence[str]) -> Specials:
    """The special pieces of a vocabulary: MPNet's, which has BERT's too and leaves them unused, begins with its own."""
    return _MPNET if vocabulary and vocabulary[0] == _MPNET.first else _BERT


def split_words(text: str) -> list[str]:
    """Return the lower-case words and punctuation marks of ``text``."""
    if text.isascii() and text.isprintable():  # nearly all captions, and ten times as fast
        return _ASCII_WORDS.findall(text.lower())
    text = unicodedata.normalize("NFD", text.lower())
    kept = []
    for char in text:
        category = unicodedata.category(char)
        if category == "Mn" or char in "\0\ufffd" or (category[0] == "C" and char not in "\t\n\r"):
            continue
        kept.append(f" {char} " if _is_punctuation(char) or _is_ideograph(char) else char)
    return re.split(r"\s+", "".join(kept).strip()) if "".join(kept).strip() else []


def build_vocabulary(texts: Iterable[str], *, min_count: int = 2, limit: int = 8000) -> list[str]:
    """Return a vocabulary of the words that occur ``min_count`` times, with single characters for the rest."""
    counts = Counter(word for text in texts for word in split_words(text))
    words = [word for word, count in counts.most_common(limit) if count >= min_count]
    letters = sorted(set("abcdefghijklmnopqrstuvwxyz0123456789.,;:!?'\"()-/&") | {c for word in words for c in word})
    pieces = dict.fromkeys([PAD, UNKNOWN, CLS, SEP, *letters, *(f"##{letter}" for letter in letters), *sorted(words)])
    return list(pieces)


def _is_punctuation(char: str) -> bool:
    code = ord(char)
    if 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126:
        return True
    return unicodedata.category(char).startswith("P")


def _is_ideograph(char: str) -> bool:
    code = ord(char)
    return (
        0x4E00 <= code <= 0x9FFF or 0x3400 <= code <= 0x4DBF or 0xF900 <= code <= 0xFAFF or 0x20000 <= code <= 0x2FA1F
    )
