"""Turn a trained run of CLIP's image tower and MiniLM into the small file that comes with evidex.

``python scripts/pack_model.py runs/large/model.safetensors --dataset data/rsicd data/ucm --text-tower weights/minilm``

What is written is the difference to the published towers (see ``evidex.weights.packing``), as fine as ``--limit``
allows. The model's card holds what was measured on val before and after; beside the weights stands what the captions
span, so that the model can tell texts it was never taught about.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from ship_model import add_data_arguments, data_line, data_of, domain_of, measured, portable_card, word_table

from evidex.data.sources import load_sources, markdown
from evidex.encoders.model import Model, load_model
from evidex.encoders.onnx_encoder import OnnxEncoder
from evidex.encoders.shipped import MODELS
from evidex.encoders.unpacking import base_tensors
from evidex.evaluation.protocol import evaluate
from evidex.training.material import taught_texts
from evidex.weights.bases import BASES
from evidex.weights.packing import (
    Base,
    Tensors,
    packed_tensors,
    read_packed,
    taken_apart,
    unpacked_tensors,
    write_packed,
)  # fmt: skip

TOWERS = {"image_tower.": "clip_vit_b16", "text_tower.": "minilm"}
_HALVINGS = 6
_REST_BYTES = 1_000_000  # the vocabulary, the card, and what the model was taught


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    add_data_arguments(parser)
    parser.add_argument("--target", type=Path, default=MODELS / "large.safetensors")
    parser.add_argument("--limit", type=float, default=30.0, help="size of the written file at most, in MB")
    arguments = parser.parse_args()

    model = load_model(arguments.model, device="cpu")
    kept, how = fitted(_arrays(model), published(), int(1e6 * arguments.limit) - _REST_BYTES)
    final = model_of(kept, how, model)
    sources = load_sources(data_of(arguments))
    val, taught = sources.captions[0].val, [*taught_texts(sources), *sources.texts]
    scores = {name: _scores(each, val) for name, each in (("before", model), ("after", final))}
    nearness = word_table(taught, tower=arguments.text_tower, trained=model)
    final.domain = domain_of(final, sources, taught, nearness)
    rows = measured(final, sources, model.card.get("sources", []))
    final.card = {
        "name": arguments.target.stem,
        "training": portable_card(model.card),
        "val": scores["after"],
        "val_before_packing": scores["before"],
        "sources": rows,
        "data": data_line(rows),
        "start": "OpenAI CLIP ViT-B/16's image tower (MIT) and MiniLM-L6 (Apache-2.0)",
    }
    write_packed(arguments.target, {**kept, **beside_weights(final)}, {**described(final), **how})
    print(f"{arguments.target}: {arguments.target.stat().st_size / 1e6:.1f} MB")
    for name, found in scores.items():
        print(f"{name} packing: clean RSUM {found['clean']['rsum']:.2f}, noisy RSUM {found['noisy']['rsum']:.2f}")
    print(markdown(rows))
    return 0


def published() -> list[Base]:
    """The towers that a difference is taken to, fetched where they are not here."""
    return [Base(prefix, name, base_tensors(name, BASES[name][0].digest)) for prefix, name in TOWERS.items()]


def fitted(tensors: Tensors, bases: list[Base], limit: int) -> tuple[Tensors, dict[str, Any]]:
    """Return the finest packing of at most ``limit`` bytes."""
    changed = taken_apart(tensors, bases)
    coarse, fine = 1.0, 2.0**-10
    best = packed_tensors(tensors, changed, bases, coarse)
    if _size(best[0]) > limit:
        sys.exit(f"the model does not fit into {limit / 1e6:.1f} MB: its heads and vectors alone take more")
    for _ in range(_HALVINGS):
        share = (coarse * fine) ** 0.5
        found = packed_tensors(tensors, changed, bases, share)
        if _size(found[0]) <= limit:
            best, coarse = found, share
        else:
            fine = share
    return best


def model_of(kept: Tensors, how: dict[str, Any], model: Model) -> Model:
    """Return the model that comes out of a packing of ``model``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "packed.safetensors"
        write_packed(path, kept, {**described(model), **how})
        packed = read_packed(path)
        assert packed is not None
        tensors = unpacked_tensors(packed, base_tensors)
    return Model(OnnxEncoder(model.encoder.spec(), tensors, rounded=True), model.temperature)  # as users run it


def beside_weights(model: Model) -> Tensors:
    """Return what a model's file holds besides weights."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "whole.safetensors"
        model.save(path, half=True)
        return {name: value for name, value in load_file(path).items() if "/" in name}


def described(model: Model) -> dict[str, Any]:
    """What a model file's header says."""
    return {
        "spec": model.encoder.spec(),
        "temperature": model.temperature,
        "fingerprint": model.fingerprint,
        "card": model.card,
    }


def _arrays(model: Model) -> Tensors:
    return {name: np.asarray(value) for name, value in model.encoder.weights().items()}


def _size(kept: Tensors) -> int:
    return sum(value.nbytes for value in kept.values())


def _scores(model: Model, val: Any) -> dict[str, Any]:
    clean = evaluate(model, val, absent=False)
    noisy = evaluate(model, val, noisy_seed=0, absent=False)
    return {"clean": clean.recall.to_json(), "noisy": noisy.recall.to_json()}


if __name__ == "__main__":
    sys.exit(main())
