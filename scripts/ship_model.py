"""Turn a trained run into the one file that comes with evidex.

``python scripts/ship_model.py runs/compact_rsicd/model.safetensors --dataset data/rsicd``

The vocabulary is cut to what fits: every piece that the training captions, further texts, the lexicon and words near to
them use, then the most common of the rest (WordPiece vocabularies are ordered by frequency). Weights are stored in half
precision, the layers of the text tower in bytes, fitted to the captions (``--text-in-halves``: not these either); what
it scores with and without that is measured and printed.
The model's card holds what was measured on val after the cut, with a table of its sources; beside the weights stands
what the captions span and how often they have each word, so that the model can tell texts it was never taught about.

With ``--counts-only`` a model that was made before words were counted gets their counts, and stays the same otherwise:

``python scripts/ship_model.py src/evidex/models/compact.safetensors --counts-only --dataset data/rsicd data/ucm``
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from evidex.config import DataConfig, SourceConfig
from evidex.data.sources import Sources, load_sources, markdown
from evidex.degrade import Lexicon
from evidex.degrade.wordnet import load_wordnet
from evidex.encoders.averaging import averaged
from evidex.encoders.domain import Domain
from evidex.encoders.export import held_against_torch
from evidex.encoders.fitted_rounding import text_rounded_for
from evidex.encoders.model import SHIPPED, Model, load_model
from evidex.encoders.model_file import halved
from evidex.encoders.nearness import Nearness
from evidex.encoders.onnx_encoder import OnnxEncoder
from evidex.encoders.towers import TowerEncoder
from evidex.encoders.wordpiece import specials_of
from evidex.evaluation.features import encode_images
from evidex.evaluation.protocol import evaluate, name_scenes
from evidex.training.material import pictured_words, shown_texts, taught_texts, val_set
from evidex.training.measure_domain import measure_domain, nearness_to, own_similarity, with_counts

LIMIT_BYTES = 34_000_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    add_data_arguments(parser)
    parser.add_argument("--counts-only", action="store_true", help="only count how often each word was taught")
    parser.add_argument("--with-start", type=Path, metavar="START", help="the model it began as: ship their mean")
    parser.add_argument("--text-in-halves", action="store_true", help="round no layer of the text tower to bytes")
    parser.add_argument("--target", type=Path, default=SHIPPED)
    arguments = parser.parse_args()
    if arguments.counts_only:
        return count(arguments)

    model = load_model(arguments.model, device="cpu", engine="torch")
    started = load_model(arguments.with_start, device="cpu", engine="torch") if arguments.with_start else None
    if started is not None:
        model = mean_of(model, started)
    phrases = [" ".join((entry.phrase, *entry.alternatives)) for entry in Lexicon.load().entries]
    sources = load_sources(data_of(arguments))
    taught = [*taught_texts(sources), *sources.texts]
    nearness = word_table(taught, tower=arguments.text_tower, trained=model)
    smaller = with_smaller_vocabulary(model, [*shown_texts(sources), *sources.texts, *phrases, *near_words(nearness)])
    whole = smaller.encoder
    assert isinstance(whole, TowerEncoder)
    weights = halved(whole.weights())
    in_halves = Model(OnnxEncoder(whole.spec(), weights), model.temperature)
    in_bytes = {} if arguments.text_in_halves else text_rounded_for(whole, taught)
    final = Model(OnnxEncoder(whole.spec(), {**weights, **in_bytes}), model.temperature)
    difference = engines_apart(final)
    scores = {name: scores_of(each, sources) for name, each in (("in halves", in_halves), ("final", final))}
    final.card = {
        "name": "compact",
        "training": portable_card(model.card),
        **({} if started is None else {"before": training_of(started.card)}),
        "val": scores["final"],
        "val_in_halves": scores["in halves"],
        "sources": (rows := measured(final, sources, model.card.get("sources", []))),
        "data": data_line(rows),
        "start": "EfficientNet-Lite0 (Apache-2.0) and MiniLM-L6 (Apache-2.0)",
    }
    final.domain = domain_of(final, sources, taught, nearness)
    final.save(arguments.target, half=True)
    print(f"{arguments.target}: {arguments.target.stat().st_size / 1e6:.1f} MB")
    print(f"vectors at most {difference:.1e} from those of torch")
    for name, found in scores.items():
        print(f"{name}: clean RSUM {found['clean']['rsum']:.2f}, noisy RSUM {found['noisy']['rsum']:.2f}")
    print(markdown(rows))
    return 0


def count(arguments: argparse.Namespace) -> int:
    """Write the model with counts of the words it was taught."""
    model = load_model(arguments.model, device="cpu")
    if model.domain is None:
        sys.exit("the model does not know what it was taught; ship it without --counts-only")
    sources = load_sources(data_of(arguments))
    model.domain = with_counts(model.domain, [*taught_texts(sources), *sources.texts], pictured_words(sources))
    model.save(arguments.target, half=True)
    print(f"{arguments.target}: {len(model.domain.words)} words, counted")
    return 0


def engines_apart(model: Model) -> float:
    """How far its vectors are from torch's; ModelError where that is far, before anything is measured or replaced."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "final.safetensors"
        model.save(path, half=True)
        return held_against_torch(path, "compact")


def scores_of(model: Model, sources: Sources) -> dict[str, Any]:
    """What it scores on val of the main dataset."""
    val = sources.captions[0].val
    found = {"clean": evaluate(model, val, absent=False), "noisy": evaluate(model, val, noisy_seed=0, absent=False)}
    return {name: each.recall.to_json() for name, each in found.items()}


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """What a model learned from, for `data_of` and `word_table`."""
    parser.add_argument(
        "--dataset", required=True, nargs="+", help="the datasets it was trained on, the main one first"
    )
    parser.add_argument("--labels", default=[], nargs="+", help="those it learned the labels of")
    parser.add_argument("--label-names", default="", help="table of other names of the labels, as data.label_names")
    parser.add_argument("--texts", default=[], nargs="+", help="files of further captions, as data.texts")
    parser.add_argument("--text-tower", type=Path, help="folder of the pretrained text tower, if the run has no table")


def data_of(arguments: argparse.Namespace) -> DataConfig:
    labels = [SourceConfig(path, role="labels") for path in arguments.labels]
    return DataConfig(
        source=(*(SourceConfig(path) for path in arguments.dataset), *labels),
        texts=tuple(arguments.texts),
        label_names=arguments.label_names,
    )


def measured(model: Model, sources: Sources, trained: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The table of sources with what ``model`` scores on each; weights and terms are those of the training."""
    before = {row["name"]: {key: row[key] for key in ("weight", "terms")} for row in trained}
    rows = []
    for source in sources.all:
        row = source.row() | before.get(source.name, {})
        if source.role == "captions":
            row["val_rsum"] = evaluate(model, source.val, absent=False).recall.rsum
        else:
            names = name_scenes(model, encode_images(model, source.val), [r.label for r in source.val.records])
            row["val_names"] = None if names is None else names.mean
        rows.append(row)
    return rows


def data_line(rows: list[dict[str, Any]]) -> str:
    """The table of sources in a line."""
    return "; ".join(f"{row['name'].upper()} train ({row['images']:,} images), terms {row['terms']}" for row in rows)


def word_table(taught: list[str], *, tower: Path | None, trained: Model) -> Nearness | None:
    """How near words are to what was ``taught``, by the pretrained ``tower``, else as the ``trained`` model has it."""
    if tower is None:
        return None if trained.domain is None else trained.domain.nearness
    return nearness_to(taught, tower, "cpu", load_wordnet().nouns())


def near_words(nearness: Nearness | None) -> list[str]:
    return [] if nearness is None else [word for word in nearness.words if nearness.is_near(word)]


def domain_of(final: Model, sources: Sources, taught: list[str], nearness: Nearness | None) -> Domain:
    """What ``final`` was taught, with the table of near words."""
    others = val_set(sources)
    known = measure_domain(final, taught, others.captions, pictured=pictured_words(sources))
    if known is None:
        sys.exit("the captions are too few to tell what the model was taught; train it on a larger dataset")
    return replace(known.with_matches(own_similarity(final, others)), nearness=nearness)


def portable_card(card: dict[str, Any]) -> dict[str, Any]:
    """Return the run's card without the places of files on the machine that trained it; a mean of runs has none."""
    if "config" not in card:
        return card
    config = {**card["config"]}
    config.pop("output")
    data = {key: value for key, value in config["data"].items() if key != "path"}
    data["source"] = [source | {"path": Path(source["path"]).name} for source in data.get("source", [])]
    data["texts"] = ["/".join(Path(path).parts[-2:]) for path in data.get("texts", [])]
    data["label_names"] = "/".join(Path(data.get("label_names", "")).parts[-2:])
    config["data"] = data
    for section, names in (("mentors", ("image", "text")), ("encoder", ("source",))):
        places = {name: "/".join(Path(config[section].get(name, "")).parts[-2:]) for name in names}
        config[section] = {**config[section], **places}
    return {**card, "config": config}


def mean_of(model: Model, started: Model) -> Model:
    """The mean of the weights of ``model`` and of the one that it ``started`` as."""
    towers = [each.encoder for each in (model, started) if isinstance(each.encoder, TowerEncoder)]
    if len(towers) < 2:
        sys.exit("only models of towers have a mean; ship it without --with-start")
    card = {**model.card, "mean_with": started.fingerprint}
    return Model(averaged(towers), model.temperature, card=card, domain=model.domain)


def training_of(card: dict[str, Any]) -> dict[str, Any]:
    """How a shipped model was trained, and how it was before that, if it was trained on itself."""
    before = {"before": card["before"]} if "before" in card else {}
    return {**card.get("training", {}), **before}


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
    special = {i for i, piece in enumerate(vocabulary) if piece in specials_of(vocabulary)}
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
