"""Questions in own words and the kinds of scene that answer them, from a table.

A line holds one subject (``half``, ``kind``, ``form``, ``labels``) and its question in five ways. All ways of a subject
are in the same half, so that what was tuned on one half has not met the subjects of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from evidex.documents import read_text
from evidex.errors import DataError, InputError

Kind = Literal["present", "absent", "absurd"]
Way = Literal["keyword", "sentence", "command", "question", "typo"]
Half = Literal["tune", "held"]
KINDS: tuple[Kind, ...] = get_args(Kind)
WAYS: tuple[Way, ...] = get_args(Way)
HALVES: tuple[Half, ...] = get_args(Half)
_COLUMNS = ("half", "kind", "form", "labels", *WAYS)
_LARGEST = 16 << 20


@dataclass(frozen=True)
class Topic:
    """One thing that is asked for."""

    kind: Kind
    """present: the archive has it; absent: asked of an archive without the scenes that fit; absurd: none has it."""
    form: str
    """word, phrase or attribute."""
    labels: frozenset[str]
    """The kinds of scene that fit, as `plain` writes them."""
    asked: Mapping[Way, str]
    half: Half = "tune"
    """tune: may be looked at while verdicts are made; held: is asked once, at the end."""


def plain(label: str | None) -> str:
    """A label without what datasets write differently: "Bare-Land", "bare land" and "bareland" are one."""
    return "".join(filter(str.isalnum, label or "")).lower()


def read_subjects(path: Path, half: Half | Literal["both"] = "both") -> tuple[Topic, ...]:
    """The subjects in the file, or those of one half; lines that begin with # are comments."""
    if half not in ("both", *HALVES):
        raise InputError(f"half '{half}' is unknown; use {', '.join(HALVES)} or both")
    lines = read_text(path, DataError, most=_LARGEST).splitlines()
    rows = [(number, line.split("\t")) for number, line in enumerate(lines, 1) if line and not line.startswith("#")]
    if not rows or tuple(rows[0][1]) != _COLUMNS:
        raise DataError(f"'{path}' has no columns {', '.join(_COLUMNS)}; give such a table, separated by tabs")
    subjects = [_subject(cells, f"'{path}', line {number}") for number, cells in rows[1:]]
    chosen = tuple(subject for subject in subjects if half in ("both", subject.half))
    if not chosen:
        missing = "" if half == "both" else f" whose half is '{half}'"
        raise DataError(f"'{path}' holds no question{missing}; add some, or choose --half")
    return chosen


def _subject(cells: list[str], where: str) -> Topic:
    if len(cells) != len(_COLUMNS):
        raise DataError(f"{where}: {len(cells)} cells instead of {len(_COLUMNS)}; separate them by tabs")
    half, kind, form, labels, *texts = (cell.strip() for cell in cells)
    known: dict[str, Kind] = {name: name for name in KINDS}
    halves: dict[str, Half] = {name: name for name in HALVES}
    if kind not in known:
        raise DataError(f"{where}: kind '{kind}' is unknown; use one of {', '.join(KINDS)}")
    if half not in halves:
        raise DataError(f"{where}: half '{half}' is unknown; use {' or '.join(HALVES)}")
    fitting = frozenset(plain(label) for label in labels.split(",") if plain(label))
    if bool(fitting) != (kind != "absurd"):
        raise DataError(f"{where}: what is present or absent needs labels that fit, what is absurd has none")
    asked: dict[Way, str] = {way: text for way, text in zip(WAYS, texts, strict=True) if text}
    if "keyword" not in asked:
        raise DataError(f"{where}: there is no keyword; every subject needs one")
    return Topic(known[kind], form, fitting, asked, halves[half])


def apt(subjects: Iterable[Topic], labels: Iterable[str | None]) -> list[Topic]:
    """Those that pictures of these ``labels`` can be asked for: some fit, and for an absent subject others remain."""
    held = {plain(label) for label in labels}
    return [
        subject
        for subject in subjects
        if subject.kind == "absurd" or (held & subject.labels and (subject.kind == "present" or held - subject.labels))
    ]
