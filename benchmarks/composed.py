"""Do questions in several parts find what fits all their parts? Measured on RSICD val, beside the parts alone.

    python benchmarks/composed.py RSICD [--out docs/results/composed.csv]

Each picture has a label (a kind of scene) and five captions. It *shows* a word that two captions have, and is *free* of
one that none has; both are asked of words that at least 40 pictures show. Of the first five hits the share is told that
fits, and the share that shows what was not wanted. The picture that is asked with is no hit.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evidex.data.datasets import Dataset, load_dataset
from evidex.encoders.model import Model, load_model
from evidex.retrieval.composing import MARKED_RIGHT, MARKED_WRONG, NOT_WANTED
from evidex.retrieval.encoding import encode

FIRST, LEAST, EXAMPLES = 5, 5, 5
NO_CONTENT = frozenset(
    """a an and are around at be beautiful beside between both by can different from has have in into is it its large
    long lot many middle near next of on one other piece pieces several side sides small some surrounded that the
    there this three through to two very was which who whose with""".split()  # noqa: SIM905 (as a list it fills a page)
)
Mask = NDArray[np.bool_]
Vector = NDArray[np.floating]


@dataclass(frozen=True)
class World:
    """Pictures of val with their labels and words, all encoded."""

    pictures: NDArray[np.float32]
    label: NDArray[np.str_]
    labels: list[str]
    words: list[str]
    shows: Mask
    free: Mask
    of_label: NDArray[np.float32]
    of_word: NDArray[np.float32]

    @classmethod
    def of(cls, model: Model, dataset: Dataset) -> World:
        found = [
            Counter(word for text in record.captions for word in set(re.findall(r"[a-z]+", text.lower())))
            for record in dataset.records
        ]
        often = Counter(word for counts in found for word in counts)
        words = sorted(
            word for word, count in often.items() if count >= 40 and len(word) > 2 and word not in NO_CONTENT
        )
        label = np.array([record.label or "" for record in dataset.records])
        labels = sorted(set(label.tolist()) - {""})
        pictures = [
            model.encode_images([dataset.open_image(i) for i in range(start, min(start + 64, len(dataset)))])
            for start in range(0, len(dataset), 64)
        ]
        shows = np.array([[counts[word] >= 2 for word in words] for counts in found])
        free = np.array([[counts[word] == 0 for word in words] for counts in found])
        texts = encode(model, labels, "text"), encode(model, words, "text")
        return cls(np.concatenate(pictures), label, labels, words, shows, free, *texts)

    def first(self, question: Vector, left_out: list[int]) -> NDArray[np.int64]:
        scores = self.pictures @ question
        scores[left_out] = -2
        return np.argsort(-scores, kind="stable")[:FIRST]

    def pairs(self) -> list[tuple[int, int]]:
        """Labels and words of which enough pictures show the word and enough are free of it."""
        return [
            (a, w)
            for a, label in enumerate(self.labels)
            for w, word in enumerate(self.words)
            if word not in label
            and (self.shows[:, w] & (self.label == label)).sum() >= LEAST
            and (self.free[:, w] & (self.label == label)).sum() >= LEAST
        ]


def unit(vector: Vector) -> Vector:
    return vector / np.linalg.norm(vector)


class Tally:
    """Shares by form and way to ask."""

    def __init__(self) -> None:
        self._fit: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._unwanted: dict[tuple[str, str], list[float]] = defaultdict(list)

    def add(self, form: str, way: str, hits: NDArray[np.int64], fit: Mask, unwanted: Mask | None = None) -> None:
        self._fit[form, way].append(float(fit[hits].mean()))
        if unwanted is not None:
            self._unwanted[form, way].append(float(unwanted[hits].mean()))

    def rows(self) -> list[dict[str, object]]:
        return [
            {
                "form": form,
                "asked": way,
                "questions": len(shares),
                "fit": f"{100 * np.mean(shares):.1f}",
                "unwanted": f"{100 * np.mean(bad):.1f}" if (bad := self._unwanted.get((form, way))) else "",
            }
            for (form, way), shares in self._fit.items()
        ]


def examples_and_words(world: World, tally: Tally, rng: np.random.Generator) -> None:
    """An example of a label that is free of a word, and the word: the same label with it."""
    for a, w in world.pairs():
        own = world.label == world.labels[a]
        fit, word = own & world.shows[:, w], world.of_word[w]
        for i in rng.permutation(np.flatnonzero(own & world.free[:, w]))[:EXAMPLES]:
            ways = {"the picture": world.pictures[i], "the word": word, "both": unit(world.pictures[i] + word)}
            for way, question in ways.items():
                tally.add("a picture and a word", way, world.first(question, [i]), fit)
        for i in rng.permutation(np.flatnonzero(own & world.shows[:, w]))[:EXAMPLES]:
            ways = {"the picture": world.pictures[i], "with minus": unit(world.pictures[i] - NOT_WANTED * word)}
            for way, question in ways.items():
                hits = world.first(question, [i])
                tally.add("a picture without a detail", way, hits, own & world.free[:, w], own & world.shows[:, w])


def without(world: World, model: Model, tally: Tally) -> None:
    minus: Callable[[Vector, Vector], Vector] = lambda wanted, not_wanted: unit(wanted - NOT_WANTED * not_wanted)  # noqa: E731
    for a, w in world.pairs():
        own, word, kind = world.label == world.labels[a], world.of_word[w], world.of_label[a]
        said = encode(model, [f"{world.labels[a]} without {world.words[w]}"], "text")[0]
        for way, question in {"plain": kind, "said in words": said, "with minus": minus(kind, word)}.items():
            hits = world.first(question, [])
            tally.add("a kind of scene without a detail", way, hits, own & world.free[:, w], own & world.shows[:, w])
        shows = world.shows[:, w]
        if (shows & ~own).sum() < LEAST or not own[world.first(word, [])].any():
            continue  # there is nothing to take off
        said = encode(model, [f"{world.words[w]} without {world.labels[a]}"], "text")[0]
        for way, question in {"plain": word, "said in words": said, "with minus": minus(word, kind)}.items():
            tally.add("a word without a kind of scene", way, world.first(question, []), shows & ~own, own)


def several(world: World, tally: Tally, rng: np.random.Generator) -> None:
    for label in world.labels:
        own = world.label == label
        for _ in range(20 if own.sum() >= LEAST + 3 else 0):
            chosen = rng.permutation(np.flatnonzero(own))[:3]
            for count, way in ((1, "one"), (2, "two"), (3, "three")):
                question = unit(world.pictures[chosen[:count]].sum(axis=0))
                tally.add("several pictures", way, world.first(question, chosen.tolist()), own)


def marked(world: World, tally: Tally) -> None:
    """A word is asked; of ten hits those that show it are marked right, the others wrong; ten others are looked at."""
    for w, word in enumerate(world.of_word):
        shows = world.shows[:, w]
        ten = np.argsort(-(world.pictures @ word), kind="stable")[:10]
        right, wrong = ten[shows[ten]], ten[~shows[ten]]
        if not len(right) or not len(wrong) or shows.sum() < 10 + LEAST:
            continue
        moved = word + MARKED_RIGHT * unit(world.pictures[right].mean(axis=0))
        both = unit(moved) - MARKED_WRONG * unit(world.pictures[wrong].mean(axis=0))
        for way, question in {
            "plain": word,
            "right ones marked": unit(moved),
            "right and wrong marked": unit(both),
        }.items():
            tally.add("ten marked hits, the next five", way, world.first(question, ten.tolist()), shows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rsicd", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    model, tally, rng = load_model(), Tally(), np.random.default_rng(0)
    world = World.of(model, load_dataset(arguments.rsicd, "val"))
    examples_and_words(world, tally, rng)
    without(world, model, tally)
    several(world, tally, rng)
    marked(world, tally)
    with arguments.out.open("w", newline="") if arguments.out else sys.stdout as stream:
        writer = csv.DictWriter(stream, ["form", "asked", "questions", "fit", "unwanted"])
        writer.writeheader()
        writer.writerows(tally.rows())


if __name__ == "__main__":
    main()
