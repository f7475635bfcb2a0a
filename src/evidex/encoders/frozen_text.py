"""A pretrained text tower as it was published, which judges words before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import normalize

from evidex.encoders.nearness import Nearness, common_words
from evidex.encoders.published_text import published_shape, published_vocabulary
from evidex.encoders.text_towers import TextTower
from evidex.encoders.towers import load_tower
from evidex.encoders.wordpiece import WordPiece

_TOKENS = 64
_TEXTS_AT_ONCE = 256
MOST_TAUGHT = 2000
"""More texts do not move their mean."""


def judge_words(folder: Path, taught: Sequence[str], device: str = "cpu", rarer: Sequence[str] = ()) -> Nearness:
    """How near the whole words of the vocabulary in ``folder`` are to the ``taught`` texts, for its tower.

    Of ``rarer`` words, which that vocabulary has only in pieces, the near ones are told too.
    """
    vocabulary = published_vocabulary(folder)
    tower = TextTower(published_shape(folder, _TOKENS))
    load_tower(tower, folder / "model.safetensors")
    tower.eval().to(device)
    tokenizer = WordPiece(vocabulary, _TOKENS)
    words = common_words(vocabulary)
    step = max(1, len(taught) // MOST_TAUGHT)
    some = _rows(tower, tokenizer, taught[::step])
    new = sorted(set(rarer).difference(words))
    return Nearness.of(words, _rows(tower, tokenizer, words), some, new, _rows(tower, tokenizer, new) if new else None)


@torch.inference_mode()
def _rows(tower: TextTower, tokenizer: WordPiece, texts: Sequence[str]) -> NDArray[np.float32]:
    device = next(tower.parameters()).device
    parts = []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        tokens = tokenizer(texts[start : start + _TEXTS_AT_ONCE])
        ids, mask = (torch.from_numpy(tokens[name]).to(device) for name in ("input_ids", "attention_mask"))
        pooled = tower(ids, mask)
        parts.append(normalize(pooled, dim=-1).float().cpu().numpy())
    return np.concatenate(parts)
