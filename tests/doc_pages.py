"""The commands and programs that the documents show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
_FENCED = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<body>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}\S.*\n)+")


@dataclass(frozen=True)
class Block:
    kind: str
    """``sh``, ``python``, …; that of a block without a fence is ``sh`` where it has commands of evidex."""
    text: str

    @property
    def commands(self) -> list[str]:
        """Its lines that call evidex, those that go on below joined."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line.strip() for line in lines if line.strip().startswith("evidex ")]


def blocks(page: Path) -> Iterator[Block]:
    """All blocks of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    found = [(match.start(), Block(match["kind"], _dedented(match["body"]))) for match in _FENCED.finditer(text)]
    bare = _FENCED.sub(lambda match: "\n" * 2 + "x" * (len(match[0]) - 2), text)  # of the same length
    found += [(match.start(), Block("sh", _dedented(match[0]))) for match in _INDENTED.finditer(bare)]
    for _, block in sorted(found, key=lambda each: each[0]):
        if block.kind != "sh" or block.commands:
            yield block


def mentioned(page: Path) -> list[str]:
    """Commands within sentences."""
    return re.findall(r"`(evidex [^`]+)`", _FENCED.sub("", page.read_text(encoding="utf-8")).replace("\n", " "))


def _dedented(text: str) -> str:
    indent = re.match(r" *", text)
    assert indent is not None
    return re.sub(rf"^{indent[0]}", "", text, flags=re.MULTILINE)
