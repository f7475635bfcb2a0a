"""The numbers that the paper reports, as it prints them; they are never mixed with measured ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib import resources

ROUNDING = 0.02  # six numbers of two decimals and their sum


@dataclass(frozen=True)
class PaperRow:
    """One row: ``values`` are R@1, R@5, R@10 image to text, the same text to image, and RSUM, as printed.

    ``parts`` are the ticks of the ablation (EDL, UW, RL, UCL), empty in other tables.
    """

    table: str
    dataset: str
    method: str
    backbone: str
    parts: tuple[bool, ...]
    values: tuple[str, ...]

    @property
    def sum_of_recalls(self) -> float:
        return math.fsum(float(value) for value in self.values[:-1])

    @property
    def consistent(self) -> bool:
        """Whether the printed RSUM is the sum of the printed recalls, but for rounding."""
        return abs(self.sum_of_recalls - float(self.values[-1])) <= ROUNDING + 1e-9


@cache
def paper_rows() -> tuple[PaperRow, ...]:
    text = resources.files("evidex.evaluation.report").joinpath("paper_rows.tsv").read_text(encoding="utf-8")
    rows = []
    for line in text.splitlines()[1:]:
        table, dataset, method, backbone, *rest = line.split("\t")
        parts = tuple(mark == "yes" for mark in rest[:4]) if "-" not in rest[:4] else ()
        rows.append(PaperRow(table, dataset, method, backbone, parts, tuple(rest[4:])))
    return tuple(rows)


def rows_of(*tables: str) -> tuple[PaperRow, ...]:
    return tuple(row for row in paper_rows() if row.table in tables)
