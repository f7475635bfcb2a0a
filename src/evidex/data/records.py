"""Caption files → records. Two forms are read: our plain one and that of the datasets' authors.

Plain:   {"dataset": "rsicd", "images": [{"filename", "split", "label", "captions": ["…", …]}]}
Authors: {"images": [{"filename", "split", "sentences": [{"raw": "…"}, …]}]}

The authors' form has no labels; they come from the lists or the names of the files (`evidex.data.author_labels`).
Asked for labels, the same files are read without their captions, which may then be missing. Files of texts alone,
{"texts": [{"captions": ["…", …]}]}, hold captions of pictures that are not at hand.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from evidex.config import Role
from evidex.data.author_labels import author_labels
from evidex.documents import read_json
from evidex.errors import DataError


@dataclass(frozen=True)
class Record:
    """One image and its captions; none where the file was read for its labels."""

    filename: str
    split: str
    captions: tuple[str, ...]
    label: str | None = None
    home: Path | None = field(default=None, compare=False, repr=False)
    """The folder of the file that it was read from."""


@dataclass(frozen=True)
class Skip:
    """Something that was left out, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class CaptionFile:
    """All records of one caption file, with what had to be left out."""

    dataset: str
    records: tuple[Record, ...]
    skipped: tuple[Skip, ...]


def read_caption_file(path: Path, role: Role = "captions") -> CaptionFile:
    """Read ``path`` in either form, for its captions or for its labels.

    Empty captions are dropped and counted; a record left without captions, or without a label where labels are asked
    for, is skipped. A missing field, a filename that leaves its folder or a name that occurs twice is an error.
    """
    document = read_json(path, DataError)
    images = document.get("images") if isinstance(document, dict) else None
    if not isinstance(images, list):
        raise DataError(f"'{path}' has no list 'images'; see docs/data.md for the two forms that are read")

    records: list[Record] = []
    skipped: list[Skip] = []
    entries = _named_entries(path, images)
    labels = author_labels(path.parent, [name for name, entry, _ in entries if "sentences" in entry])
    for filename, entry, where in entries:
        captions, empty = _captions(entry, where) if role == "captions" else ((), 0)
        if empty:
            skipped.append(Skip(filename, f"{empty} empty caption{'s' if empty > 1 else ''} dropped"))
        label = _label(entry, where) or labels.get(filename)
        if role == "captions" and not captions:
            skipped.append(Skip(filename, "no caption left; image skipped"))
            continue
        if role == "labels" and label is None:
            skipped.append(Skip(filename, "no label; image skipped"))
            continue
        records.append(Record(filename, _text(entry, "split", where), captions, label, path.parent))
    name = document.get("dataset")
    return CaptionFile(name if isinstance(name, str) else path.stem, tuple(records), tuple(skipped))


def _named_entries(path: Path, images: list[Any]) -> list[tuple[str, dict[str, Any], str]]:
    """The entries with their file names, and where each stands for messages."""
    entries: list[tuple[str, dict[str, Any], str]] = []
    seen: set[str] = set()
    for index, entry in enumerate(images):
        where = f"'{path}', images[{index}]"
        if not isinstance(entry, dict):
            raise DataError(f"{where} is no object; expected filename, split and captions")
        filename = _safe_name(_text(entry, "filename", where), where)
        if filename in seen:
            raise DataError(f"{where}: filename '{filename}' occurs twice; names must be unique")
        seen.add(filename)
        entries.append((filename, entry, where))
    return entries


def _captions(entry: dict[str, Any], where: str) -> tuple[tuple[str, ...], int]:
    if "captions" in entry:
        texts = entry["captions"]
    elif "sentences" in entry:
        sentences = entry["sentences"]
        if not isinstance(sentences, list) or not all(isinstance(s, dict) and "raw" in s for s in sentences):
            raise DataError(f"{where}: every one of 'sentences' needs the field 'raw'")
        texts = [sentence["raw"] for sentence in sentences]
    else:
        raise DataError(f"{where} has neither 'captions' nor 'sentences'; give the image's texts in one of them")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{where}: captions must be a list of texts")
    for text in texts:
        _check_whole(text, where)
    kept = tuple(text.strip() for text in texts if text.strip(" .\t\r\n"))
    return kept, len(texts) - len(kept)


def read_texts(path: Path) -> list[tuple[str, str]]:
    """The captions of a file of texts alone, or those that train of a caption file in either form.

    Each after the label of its picture, an empty one where that has none.
    """
    document = read_json(path, DataError)
    if isinstance(document, dict) and "images" in document:
        trained = [record for record in read_caption_file(path).records if record.split == "train"]
        return [(record.label or "", text) for record in trained for text in record.captions]
    entries = document.get("texts") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(
            f"'{path}' has neither a list 'texts' nor 'images'; see docs/data.md for the forms that are read"
        )
    places = [(entry, f"'{path}', texts[{index}]") for index, entry in enumerate(entries)]
    return [(_label(entry, where) or "", text) for entry, where in places for text in _captions(entry, where)[0]]


def _label(entry: dict[str, Any], where: str) -> str | None:
    """The label; a blank one is none, as some authors write it."""
    label = entry.get("label")
    if label is not None and not isinstance(label, str):
        raise DataError(f"{where}: label {reprlib.repr(label)} is no text; give a word or leave it out")
    if label is None or not label.strip():
        return None
    _check_whole(label, where)
    return label


def _text(entry: dict[str, Any], key: str, where: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise DataError(f"{where} has no '{key}'; every image needs filename, split and captions")
    _check_whole(value, where)
    return value


def _check_whole(text: str, where: str) -> None:
    """JSON can hold half a character, which neither a file nor a terminal takes."""
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise DataError(f"{where}: {reprlib.repr(text)} holds half a character; give whole ones")


def _safe_name(name: str, where: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise DataError(f"{where}: filename '{name}' leaves its folder; give a plain relative name")
    return str(path)
