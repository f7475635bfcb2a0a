"""CLIP's byte-pair tokenizer, from any of the forms it is published in."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.documents import is_file, parse_json
from evidex.encoders.clip.byte_pairs import BytePairs, byte_symbols
from evidex.errors import ModelError

START = "<|startoftext|>"
END = "<|endoftext|>"
BPE_FILE = "bpe_simple_vocab_16e6.txt.gz"
# OpenAI's file lists more merges than CLIP uses: 49,408 tokens less twice 256 bytes, a start and an end.
_MERGES_USED = 49_408 - 2 * 256 - 2


class ClipTokenizer:
    """Texts to rows of token numbers: start, byte pairs of the lower-cased text, end; at most ``context`` long.

    A text that is too long loses its last words and keeps its end token. Rows are padded with the end token, which
    changes no feature: attention is causal and a feature is read at the first end token.
    """

    def __init__(self, tokens: Sequence[str], merges: Sequence[tuple[str, str]], context: int) -> None:
        """``tokens`` in the order of their numbers, ``merges`` in the order of their precedence."""
        vocabulary = {token: number for number, token in enumerate(tokens)}
        _check(vocabulary, len(tokens), merges)
        self.tokens = tuple(tokens)
        self.merges = tuple(merges)
        self.context = context
        self.end_token = vocabulary[END]
        self._pairs = BytePairs(vocabulary, self.merges, special=(START, END), unknown=self.end_token)
        self._start_token = vocabulary[START]

    def encode(self, text: str) -> list[int]:
        """Return the numbers of ``text`` between start and end, cut to ``context``."""
        inner = islice(self._pairs.encode(text), max(self.context - 2, 0))
        return [self._start_token, *inner, self.end_token]

    def __call__(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return (n, longest text of the batch)."""
        rows = [self.encode(text) for text in texts]
        length = max(map(len, rows), default=2)
        padded = [row + [self.end_token] * (length - len(row)) for row in rows]
        return np.array(padded, dtype=np.int64).reshape(len(rows), length)

    def to_json(self) -> dict[str, str]:
        """Return two long lines rather than lists: no token holds white space."""
        return {"tokens": " ".join(self.tokens), "merges": "\n".join(" ".join(pair) for pair in self.merges)}

    @classmethod
    def from_json(cls, value: Mapping[str, str], context: int) -> ClipTokenizer:
        return cls(value["tokens"].split(" "), _pairs(value["merges"].split("\n"), "the saved tokenizer"), context)

    @classmethod
    def from_files(cls, source: Path, context: int) -> ClipTokenizer:
        """Read the tokenizer of a model folder, or OpenAI's list of byte pairs (``bpe_simple_vocab_16e6.txt.gz``)."""
        listing = source if is_file(source) else source / BPE_FILE
        try:
            if is_file(source / "tokenizer.json"):
                tokens, merges = _from_tokenizer_json(source / "tokenizer.json")
            elif is_file(source / "vocab.json") and is_file(source / "merges.txt"):
                tokens, merges = _from_vocabulary(source / "vocab.json", source / "merges.txt")
            elif is_file(listing):
                tokens, merges = _from_byte_pairs(listing)
            else:
                raise ModelError(
                    f"'{source}' has no tokenizer: neither tokenizer.json nor vocab.json with merges.txt nor "
                    f"{BPE_FILE}; name a folder that has them as the tokenizer"
                )
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(
                f"the tokenizer of '{source}' is unreadable ({type(error).__name__}: {error}); fetch its files again"
            ) from error
        return cls(tokens, merges, context)


def _from_tokenizer_json(path: Path) -> tuple[list[str], list[tuple[str, str]]]:
    content: dict[str, Any] = parse_json(path.read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = dict(content["model"]["vocab"])
    vocabulary |= {added["content"]: added["id"] for added in content.get("added_tokens", [])}
    lines = [pair if isinstance(pair, str) else " ".join(pair) for pair in content["model"]["merges"]]
    return _in_order(vocabulary, path), _pairs(lines, str(path))


def _from_vocabulary(vocabulary: Path, merges: Path) -> tuple[list[str], list[tuple[str, str]]]:
    tokens = _in_order(parse_json(vocabulary.read_text(encoding="utf-8")), vocabulary)
    # The first line is a title.
    return tokens, _pairs(merges.read_text(encoding="utf-8").split("\n")[1:], str(merges))


def _from_byte_pairs(path: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Number the tokens as CLIP does: bytes, bytes that end a word, merges in their order, start, end."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        merges = _pairs(stream.read().split("\n")[1 : _MERGES_USED + 1], str(path))
    symbols = byte_symbols()
    return [*symbols, *(f"{symbol}</w>" for symbol in symbols), *("".join(pair) for pair in merges), START, END], merges


def _in_order(vocabulary: Mapping[str, int], path: Path) -> list[str]:
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ModelError(f"'{path}' does not number its tokens 0 to {len(vocabulary) - 1}; fetch the file again")
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _pairs(lines: Sequence[str], source: str) -> list[tuple[str, str]]:
    pairs = []
    for line in lines:
        if not line.strip():
            continue
        parts = line.split()
        if len(parts) != 2:
            raise ModelError(f"{source!r} has the merge {line!r}, which is not a pair; fetch the file again")
        pairs.append((parts[0], parts[1]))
    return pairs


def _check(vocabulary: Mapping[str, int], count: int, merges: Sequence[tuple[str, str]]) -> None:
    if START not in vocabulary or END not in vocabulary:
        raise ModelError(f"the tokenizer has no {START} or no {END}; give the tokenizer files of a CLIP")
    if len(vocabulary) != count:
        raise ModelError(f"the tokenizer names {count - len(vocabulary)} tokens twice; fetch its files again")
    for first, second in merges:
        if not {first, second, first + second} <= vocabulary.keys():
            raise ModelError(f"the tokenizer merges {first!r} and {second!r} to no token; fetch its files again")
