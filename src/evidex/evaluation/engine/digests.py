"""Names that hold everything that shapes a result: what is there under one is never done again, nor mistaken."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from evidex.checked import to_table
from evidex.config import Config

FORMAT = 1
_DIGITS = 16


def digest_of(content: Any) -> str:
    """A short digest of plain tables and lists."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def config_digest(config: Config, *beside: str | None) -> str:
    """The name of a training: its settings without the places of files, and ``beside`` what these files are."""
    table = to_table(config)
    del table["output"], table["data"]["path"]
    return digest_of([FORMAT, table, *beside])
