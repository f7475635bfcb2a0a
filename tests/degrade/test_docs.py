"""The examples in the documentation are what the code does."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np

from evidex.degrade import Lexicon

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "degradation.md").read_text(encoding="utf-8")


def test_the_twenty_pairs_come_from_the_lexicon() -> None:
    lexicon = Lexicon.load()
    pairs = re.findall(r"^\| (\d+) \| ([^|]+?) \| ([^|]+?) \|$", TEXT, re.MULTILINE)
    pairs = [pair for pair in pairs if pair[1].endswith(".")]
    assert len(pairs) == 20
    for seed, before, after in pairs:
        assert lexicon.substitute(before, np.random.default_rng(int(seed)), 0.6) == after
        assert before != after


def test_the_counts_by_axis_are_right() -> None:
    counts = Counter(entry.axis.replace("_", " ") for entry in Lexicon.load().entries)
    counts["colour/material"] = counts.pop("colour material")
    for axis, count in counts.items():
        assert f"| {axis} | {count} |" in TEXT
