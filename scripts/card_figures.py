"""Measure most of what the model card says of the shipped model, so that another can take its place.

python scripts/card_figures.py --rsicd FOLDER --rendered demo/archive [--rsitmd FOLDER] [--model FILE]

Beyond "evidex evaluate" on both datasets: which texts are refused as out of domain, and what becomes of questions out
of domain and of common ones in galleries of the rendered archive. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evidex.data.datasets import load_dataset
from evidex.data.records import read_caption_file
from evidex.degrade import Lexicon
from evidex.encoders.domain import OUT_OF_DOMAIN
from evidex.encoders.model import Model, load_model
from evidex.evaluation.absent import out_of_domain_queries
from evidex.evaluation.protocol import evaluate, with_fine_grain
from evidex.retrieval.certainty.common_questions import COMMON_QUESTIONS
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions, index_paths
from evidex.retrieval.out_of_domain import out_of_domain_words
from evidex.retrieval.phrasing import asked_for
from evidex.retrieval.retriever import Retriever


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="compact", help="file or run, if not the one that comes with evidex")
    parser.add_argument("--rsicd", type=Path, required=True, help="folder with captions.json and the pictures")
    parser.add_argument("--rendered", type=Path, required=True, help="what evidex sample made")
    parser.add_argument("--rsitmd", type=Path, help="folder with captions.json; no pictures are needed")
    arguments = parser.parse_args()

    model = load_model(arguments.model, device="cpu")
    val = load_dataset(arguments.rsicd, "val")
    found = {
        "fingerprint": model.fingerprint,
        "sources": model.card.get("sources"),
        "rsicd": {
            "clean": with_fine_grain(evaluate(model, val), model, val).to_json(),
            "noisy": evaluate(model, val, noisy_seed=0).to_json(),
        },
        "rendered": evaluate(model, load_dataset(arguments.rendered, "val")).to_json(),
        "refused_as_out_of_domain": _out_of_domain(model, val.captions, arguments.rsitmd),
        "rendered_galleries": _galleries(arguments.model, arguments.rendered),
    }
    print(json.dumps(found, indent=1))
    return 0


def _out_of_domain(model: Model, val: list[str], rsitmd: Path | None) -> dict[str, dict[str, float]]:
    """The share of each kind of text that is refused, and what either alone would refuse."""
    known = model.domain
    if known is None:
        sys.exit("the model does not know what it was taught; make it with scripts/ship_model.py")
    kinds = {
        "out_of_domain": out_of_domain_queries(),
        "common": list(COMMON_QUESTIONS),
        "val": val,
        "lexicon": [entry.phrase for entry in Lexicon.load().entries],
    }
    if rsitmd:
        kinds["rsitmd"] = _first_captions(rsitmd)
    shares = {}
    for kind, texts in kinds.items():
        asked = [asked_for(text) for text in texts]
        vectors = model.encode_texts(asked)
        refused = [bool(words) for words in out_of_domain_words(known, asked, vectors, "text")]
        unknown = [bool(known.words_out_of_domain(known.new_words(text))) for text in asked]
        shares[kind] = {
            "refused": float(np.mean(refused)),
            "far": float(np.mean(~(known.outlying(vectors) <= OUT_OF_DOMAIN))),
            "unknown": float(np.mean(unknown)),
        }
    return shares


def _first_captions(folder: Path) -> list[str]:
    return sorted({record.captions[0] for record in read_caption_file(folder / "captions.json").records})


def _galleries(model: str, rendered: Path) -> dict[str, dict[str, Any]]:
    """What becomes of questions out of domain and of common ones in the rendered archive, with captions or not."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare"
        shutil.copytree(rendered / "images", bare)
        for name, archive in (("captions", rendered), ("no_captions", bare)):
            gallery = Gallery.create(Path(folder) / name, load_model(model, device="cpu"))
            index_paths(gallery, [archive], IndexOptions())
            scores = [outcome.calibration.score for outcome in self_calibrate(gallery, np.random.default_rng(0))]
            retriever = Retriever(gallery)
            found[name] = {
                "images": len(gallery),
                "scores": scores,
                "out_of_domain": _headlines(retriever, out_of_domain_queries()),
                "common": _headlines(retriever, COMMON_QUESTIONS),
            }
    return found


def _headlines(retriever: Retriever, questions: Sequence[str]) -> dict[str, float]:
    answers = [retriever.search(text=question) for question in questions]
    counts = Counter(f"{answer.verdict}: {answer.headline}" for answer in answers)
    return {headline: count / len(questions) for headline, count in sorted(counts.items())}


if __name__ == "__main__":
    sys.exit(main())
