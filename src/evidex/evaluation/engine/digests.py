"""Names that hold everything that shapes a result: what is there under one is never done again, nor mistaken."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from evidex.checked import to_table
from evidex.config import Config

FORMAT = 1
_YOUNGER = {  # switches that came after results were named: left out while they are as if they were not there
    "data": (
        "source",
        "batches",
        "labels_per_step",
        "texts",
        "epoch",
        "label_names",
        "label_captions",
        "foreign",
        "variation",
    ),
    "encoder": ("text_hidden",),
    "loss": ("labels", "twins", "annealing", "learn_temperature", "temperature_least", "temperature_most"),
    "method": ("name",),
    "train": ("learns",),
}
_DIGITS = 16


def digest_of(content: Any) -> str:
    """A short digest of plain tables and lists."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def config_digest(config: Config, *beside: str | None) -> str:
    """The name of a training: its settings without the places of files, and ``beside`` what these files are."""
    table, usual = to_table(config), to_table(Config())
    del table["output"], table["data"]["path"]
    for section, names in _YOUNGER.items():
        for name in names:
            if table[section][name] == usual[section][name]:
                del table[section][name]
        if not table[section]:
            del table[section]
    for source in table["data"].get("source", ()):
        source["path"] = Path(source["path"]).name
    if "texts" in table["data"]:
        table["data"]["texts"] = [Path(path).name for path in table["data"]["texts"]]
    if "label_names" in table["data"]:
        table["data"]["label_names"] = Path(table["data"]["label_names"]).name
    return digest_of([FORMAT, table, *beside])
