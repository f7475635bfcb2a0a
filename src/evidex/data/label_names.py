"""What else a label is called: one dataset's "viaduct" is somebody's "flyover" or "interchange".

A table names a label in each line, or several with commas between them, and, with ``|`` between these, other names for
what their pictures show. A name that several labels have tells none of them from the others. One that ends with a full
stop (" .") is a sentence, as captions are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from evidex.documents import read_text
from evidex.errors import DataError

_HEADER = ["label", "names"]


@dataclass(frozen=True)
class LabelNames:
    """Other names of labels; both in lower case with single blanks, a label however its parts are written together."""

    names: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> LabelNames:
        """Read a table, tab-separated; blank lines and those that begin with ``#`` are skipped."""
        lines = read_text(path, DataError).splitlines()
        rows = [
            (number, [cell.strip() for cell in line.split("\t")])
            for number, line in enumerate(lines, 1)
            if line.strip() and not line.startswith("#")
        ]
        if not rows or rows[0][1] != _HEADER:
            raise DataError(f"'{path}' has no columns {', '.join(_HEADER)}; give such a table, separated by a tab")
        found: dict[str, dict[str, None]] = {}
        for number, cells in rows[1:]:
            labels, names = _row(cells, where := f"'{path}', line {number}")
            for label in labels:
                so_far = found.setdefault(_glued(label), {})
                if twice := [name for name in names if name == label or name in so_far]:
                    raise DataError(f"{where}: '{label}' has the name '{twice[0]}' twice, or is called so; keep one")
                so_far |= dict.fromkeys(names)
        return cls({label: tuple(names) for label, names in found.items()})

    def of(self, label: str) -> tuple[str, ...]:
        """Other names of ``label``; none where the table does not know it."""
        return self.names.get(_glued(label), ())

    def holding(self, labels: Sequence[str], said: str) -> list[bool]:
        """Of which ``labels`` one may say ``said``: it is the label, or among its other names."""
        called = self._called.get(_glued(said), frozenset())
        return [(glued := _glued(label)) == _glued(said) or glued in called for label in labels]

    def captions_of(self, label: str, labelled: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Those of ``labelled``, captions each after its own label, that speak of what pictures of ``label`` show.

        A name says less than a caption: roundabouts may be called a place, but few places are roundabouts. So another
        label's captions count where each is a name of the other, or where it has no names and is one of no other label.
        """
        own = _glued(label)
        alike = {own} | {_glued(name) for name in self.of(label) if self._is_alike(own, _glued(name))}
        return [(said, caption) for said, caption in labelled if _glued(said) in alike]

    def _is_alike(self, label: str, name: str) -> bool:
        if name in self.names:
            return label in map(_glued, self.names[name])
        return len(self._called.get(name, ())) == 1

    @cached_property
    def _called(self) -> dict[str, frozenset[str]]:
        """The labels that have each name."""
        called: dict[str, set[str]] = {}
        for label, names in self.names.items():
            for name in map(_glued, names):
                called.setdefault(name, set()).add(label)
        return {name: frozenset(labels) for name, labels in called.items()}


def is_sentence(name: str) -> bool:
    """Whether ``name`` is said of a picture and is not what something is called."""
    return name.endswith(" .")


def _row(cells: list[str], where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if len(cells) != len(_HEADER) or not all(cells):
        raise DataError(f"{where}: write labels, a tab, and their other names with | between them")
    labels, names = (tuple(part.strip() for part in cell.split(mark)) for cell, mark in zip(cells, ",|", strict=True))
    for name in (*labels, *names):
        if not name or name != " ".join(name.lower().split()):
            raise DataError(f"{where}: '{name}' must be in lower case with single blanks")
    if said := next((name for name in names if name.endswith(".") and not is_sentence(name)), ""):
        raise DataError(f"{where}: '{said}' ends with a full stop; write a blank before it, as captions do")
    if len({*map(_glued, labels)}) != len(labels) or len({*names}) != len(names):
        raise DataError(f"{where}: a label or a name stands there twice; keep one")
    return labels, names


def _glued(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower())).removesuffix("s")
