"""Turn a trained run into the one file that comes with evidex.

``python scripts/ship_model.py runs/compact_rsicd/model.safetensors --dataset data/rsicd``

The vocabulary is cut to what fits: every piece that the training captions and the lexicon use, then the most
common of the rest (WordPiece vocabularies are ordered by frequency). Weights are stored in half precision.
The model's card holds what was measured on val after the cut; beside the weights stands what the captions span, so
that the model can tell texts it was never taught about.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from evidex.data.datasets import load_dataset
from evidex.degrade import Lexicon
from evidex.encoders.model import SHIPPED, Model, load_model
from evidex.encoders.towers import TowerEncoder
from evidex.evaluation.protocol import evaluate
from evidex.training.measure_domain import measure_domain, own_similarity

LIMIT_BYTES = 29_000_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--dataset", type=Path, required=True, help="the dataset the model was trained on")
    parser.add_argument("--target", type=Path, default=SHIPPED)
    arguments = parser.parse_args()

    model = load_model(arguments.model, device="cpu", engine="torch")
    phrases = [" ".join((entry.phrase, *entry.alternatives)) for entry in Lexicon.load().entries]
    taught = load_dataset(arguments.dataset, "train").captions
    smaller = with_smaller_vocabulary(model, taught + phrases)
    with tempfile.TemporaryDirectory() as folder:  # the target is replaced once, by the finished model
        rounded = Path(folder) / "rounded.safetensors"
        smaller.save(rounded, half=True)
        final = load_model(rounded, device="cpu")
    val = load_dataset(arguments.dataset, "val")
    clean = evaluate(final, val, absent=False)
    noisy = evaluate(final, val, noisy_seed=0, absent=False)
    final.card = {
        "name": "compact",
        "training": portable_card(model.card),
        "val": {"clean": clean.recall.to_json(), "noisy": noisy.recall.to_json()},
        "data": "RSICD train (8,734 images); no licence is stated by its authors, research use",
        "start": "EfficientNet-Lite0 (Apache-2.0) and MiniLM-L6 (Apache-2.0)",
    }
    known = measure_domain(final, taught, val.captions)
    if known is None:
        sys.exit("the captions are too few to tell what the model was taught; train it on a larger dataset")
    final.domain = known.with_matches(own_similarity(final, val))
    final.save(arguments.target, half=True)
    print(f"{arguments.target}: {arguments.target.stat().st_size / 1e6:.1f} MB")
    print(f"clean RSUM {clean.recall.rsum:.2f}, noisy RSUM {noisy.recall.rsum:.2f}")
    return 0


def portable_card(card: dict[str, Any]) -> dict[str, Any]:
    """Return the run's card without the places of files on the machine that trained it."""
    config = {**card["config"]}
    config.pop("output")
    config["data"] = {key: value for key, value in config["data"].items() if key != "path"}
    config["mentors"] = {
        key: "/".join(Path(value).parts[-2:]) if isinstance(value, str) else value
        for key, value in config["mentors"].items()
    }
    return {**card, "config": config}


def with_smaller_vocabulary(model: Model, captions: list[str]) -> Model:
    """Return ``model`` with only as many word pieces as LIMIT_BYTES allows."""
    encoder = model.encoder
    if not isinstance(encoder, TowerEncoder):
        sys.exit("only a model of towers can be cut")
    spec = encoder.spec()
    vocabulary: list[str] = spec["vocabulary"]
    hidden = spec["text_shape"]["hidden"]
    weights = encoder.state_dict()
    rest = sum(value.numel() for name, value in weights.items() if "word_embeddings" not in name) * 2
    room = (LIMIT_BYTES - rest) // (hidden * 2 + 12)
    needed = {piece for caption in set(captions) for piece in encoder.tokenizer.encode(caption)}
    letters = {i for i, piece in enumerate(vocabulary) if len(piece.removeprefix("##")) == 1 and piece.isascii()}
    special = {i for i, piece in enumerate(vocabulary) if piece in ("[PAD]", "[UNK]", "[CLS]", "[SEP]")}
    kept = set(special | needed | letters)
    common = (
        i for i, piece in enumerate(vocabulary) if i not in kept and piece.isascii() and not piece.startswith("[")
    )
    for index in common:
        if len(kept) >= room:
            break
        kept.add(index)
    rows = sorted(kept)
    smaller = TowerEncoder(
        {
            **spec,
            "vocabulary": [vocabulary[i] for i in rows],
            "text_shape": {**spec["text_shape"], "vocabulary": len(rows)},
        }
    )
    name = "text_tower.embeddings.word_embeddings.weight"
    smaller.load_state_dict({**weights, name: weights[name][torch.tensor(rows)]})
    return Model(smaller, model.temperature)


if __name__ == "__main__":
    sys.exit(main())
