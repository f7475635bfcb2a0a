"""The lexicon's examples: of each axis a phrase with its alternatives, and a caption of the split that it changed."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evidex.degrade.lexicon import AXES, Lexicon
from evidex.evaluation.report.markup import text, words_table

if TYPE_CHECKING:
    from evidex.evaluation.noisy import NoisySplit

_TITLES = {
    "domain_synonym": "domain synonym",
    "granularity_drift": "granularity drift",
    "quantifier_weakening": "quantifier weakening",
    "spatial_relation": "spatial relation",
    "colour_material": "colour and material",
}
_ALTERNATIVES = 4


@dataclass(frozen=True)
class Exchange:
    """A phrase of the lexicon that the noisy split exchanged, and the caption before and after."""

    phrase: str
    clean: str
    noisy: str


def exchanges(split: NoisySplit) -> dict[str, Exchange]:
    """By axis the first caption of ``split`` in which a phrase of that axis was exchanged and nothing else."""
    found: dict[str, Exchange] = {}
    for place in split.changed_captions.nonzero()[0].tolist():
        clean, noisy = split.dataset.captions[place], split.captions[place]
        for match in split.lexicon.matches(clean):
            rest = clean[: match.start], clean[match.end :]
            alone = noisy.startswith(rest[0]) and noisy.endswith(rest[1])
            if alone and match.entry.axis not in found:
                found[match.entry.axis] = Exchange(clean[match.start : match.end], clean, noisy)
        if len(found) == len(AXES):
            break
    return found


def lexicon_table(split: NoisySplit) -> str:
    """One row an axis: how many entries, an entry, and what it did to a caption of this split."""
    found, lexicon = exchanges(split), split.lexicon
    rows = []
    for axis in AXES:
        entries = [entry for entry in lexicon.entries if entry.axis == axis]
        exchange = found.get(axis)
        shown = _entry(lexicon, axis, exchange)
        clean, noisy = ("–", "–") if exchange is None else marked(exchange.clean, exchange.noisy)
        rows.append([text(_TITLES[axis]), str(len(entries)), text(shown), clean, noisy])
    return words_table(["axis", "entries", "such as", "a caption of this split", "in the noisy split"], rows)


def _entry(lexicon: Lexicon, axis: str, exchange: Exchange | None) -> str:
    entries = [entry for entry in lexicon.entries if entry.axis == axis]
    phrase = "" if exchange is None else exchange.phrase.lower()
    entry = next((entry for entry in entries if entry.phrase == phrase), entries[0])
    others = ", ".join(entry.alternatives[:_ALTERNATIVES]) + (" …" if len(entry.alternatives) > _ALTERNATIVES else "")
    return f"{entry.phrase} → {others}"


def marked(clean: str, noisy: str) -> tuple[str, str]:
    """Both sentences as HTML, the words marked in which they differ."""
    before, after = clean.split(), noisy.split()
    sides: tuple[list[str], list[str]] = ([], [])
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        for side, piece in zip(sides, (before[a:b], after[c:d]), strict=True):
            if piece:
                joined = text(" ".join(piece))
                side.append(joined if kind == "equal" else f"<mark>{joined}</mark>")
    return " ".join(sides[0]), " ".join(sides[1])
