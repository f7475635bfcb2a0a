"""An MPNet small enough for tests, in a folder as it is published."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import MPNetConfig, MPNetModel

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = list("abcdefghijklmnopqrstuvwxyz0123456789.,;:!?'\"()-/&<>[]日")
WORDS = ["river", "air", "##port", "plane", "##ne", "many", "are", "café", "lake", "green", "field", "cafe"]
VOCABULARY = [*SPECIALS, *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS, "<mask>"]


def save_tiny_mpnet(folder: Path, *, layers: int = 3) -> MPNetModel:
    """Weights large enough that distances, positions and words all tell."""
    torch.manual_seed(1)
    config = MPNetConfig(
        vocab_size=len(VOCABULARY), hidden_size=24, num_hidden_layers=layers, num_attention_heads=4,
        intermediate_size=40, max_position_embeddings=80, layer_norm_eps=1e-5, initializer_range=0.2,
    )  # fmt: skip
    mpnet = MPNetModel(config).eval()
    with torch.no_grad():
        for name, each in mpnet.named_parameters():
            if name.endswith("bias"):
                each.uniform_(-0.3, 0.3)
        mpnet.encoder.relative_attention_bias.weight.normal_(std=2)
    folder.mkdir(parents=True)
    mpnet.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    return mpnet
