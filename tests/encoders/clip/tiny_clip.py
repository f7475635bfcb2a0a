"""A tiny CLIP with a byte-pair vocabulary of its own, saved as a Hugging Face folder."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import torch
from transformers import CLIPModel

from evidex.encoders.clip.architecture import ClipArchitecture
from evidex.encoders.clip.byte_pairs import byte_symbols
from evidex.encoders.clip.tokenizer import END, START

CORPUS = (
    "several planes are parked near the terminal of the airport , many ships are in the harbour . "
    "a river runs through the dense residential area it's green don't we'll they've 10 of 12 storage tanks"
)


def tiny_vocabulary(merge_count: int = 60) -> tuple[list[str], list[tuple[str, str]]]:
    """Learn merges from CORPUS greedily, and number the tokens in CLIP's order."""
    words = [[*word[:-1], word[-1] + "</w>"] for word in CORPUS.split()]
    merges: list[tuple[str, str]] = []
    while len(merges) < merge_count:
        counts = Counter(pair for word in words for pair in pairwise(word))
        best = max(sorted(counts), key=counts.__getitem__)
        merges.append(best)
        words = [_merged(word, best) for word in words]
    symbols = byte_symbols()
    tokens = [*symbols, *(f"{symbol}</w>" for symbol in symbols), *("".join(pair) for pair in merges), START, END]
    return tokens, merges


def _merged(word: list[str], pair: tuple[str, str]) -> list[str]:
    out: list[str] = []
    for symbol in word:
        if out and (out[-1], symbol) == pair:
            out[-1] += symbol
        else:
            out.append(symbol)
    return out


def tiny_architecture(*, activation: str = "quick_gelu", context: int = 77) -> ClipArchitecture:
    vocabulary = len(tiny_vocabulary()[0])
    return ClipArchitecture(
        dim=24,
        activation=activation,
        layer_norm_eps=1e-5,
        image_size=32,
        patch_size=8,
        image_width=128,
        image_hidden=192,
        image_layers=3,
        image_heads=2,
        vocabulary=vocabulary,
        context=context,
        end_token=vocabulary - 1,
        text_width=64,
        text_hidden=96,
        text_layers=2,
        text_heads=1,
    )


def write_vocabulary(folder: Path) -> None:
    tokens, merges = tiny_vocabulary()
    vocabulary = {token: number for number, token in enumerate(tokens)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def save_tiny_clip(folder: Path, *, seed: int = 3) -> CLIPModel:
    torch.manual_seed(seed)
    model = CLIPModel(tiny_architecture().config()).eval()
    spread_weights(model)
    model.save_pretrained(folder)
    write_vocabulary(folder)
    return model


def spread_weights(module: torch.nn.Module) -> None:
    """Draw every weight anew and wide: biases of zero and norms of one would hide a wrong mapping."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.2 + (0.5 if parameter.dim() == 1 else 0.0))
