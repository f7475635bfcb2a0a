"""Write the tables of the documentation from the results they show: ``python scripts/tables.py [--check]``.

A table stands between two comments. The first names the file of results and, column by column, heading and contents:

    <!-- table: docs/results/clip.csv
    run: {run}
    clean RSUM: {clean_rsum} ± {clean_sd}
    where: seed = 0
    -->

``where`` keeps the rows with that value, and ``{name:.1f}`` one digit after the point. What stands before a value that
is missing, back to the value before it, is left out with it. ``--check`` writes nothing and says which files differ.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from pathlib import Path

from evidex.files import write_atomic

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"(<!-- table: (?P<file>\S+)\n(?P<columns>.*?)-->\n)(?P<table>.*?)(<!-- end -->)", re.DOTALL)
_FIELD = re.compile(r"(?P<before>[^{}]*)\{(?P<name>\w+)(?::\.(?P<digits>\d)f)?\}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the tables of the documentation from docs/results.")
    parser.add_argument("--check", action="store_true", help="say what differs instead of writing it")
    arguments = parser.parse_args()
    stale = [path for path in documents(ROOT) if filled(path.read_text(encoding="utf-8")) != path.read_text("utf-8")]
    for path in stale:
        if arguments.check:
            print(f"'{path.relative_to(ROOT)}' shows other numbers than its results; run scripts/tables.py")
        else:
            write_atomic(path, filled(path.read_text(encoding="utf-8")))
    return 1 if arguments.check and stale else 0


def documents(root: Path) -> list[Path]:
    """Return the documents that may hold tables."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def filled(text: str) -> str:
    """Return ``text`` with every table made anew."""
    return _BLOCK.sub(lambda block: f"{block[1]}{_table(block['file'], block['columns'])}{block[5]}", text)


def _table(file: str, columns: str) -> str:
    pairs = [line.split(": ", 1) for line in columns.strip().splitlines()]
    kept = dict(pair[1].split(" = ", 1) for pair in pairs if pair[0] == "where")
    shown = [(heading, contents) for heading, contents in pairs if heading != "where"]
    with (ROOT / file).open(newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if all(row[name] == value for name, value in kept.items())]
    lines = [[heading for heading, _ in shown], ["---"] * len(shown)]
    lines += [[_cell(contents, row) for _, contents in shown] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(contents: str, row: dict[str, str]) -> str:
    """Fill ``contents``; a missing value takes with it what joins it to the value before."""
    parts = [match["before"] + _value(row, match) for match in _FIELD.finditer(contents) if row[match["name"]]]
    rest = _FIELD.sub("", contents)
    return "".join(parts) + (rest if parts else "")


def _value(row: dict[str, str], field: re.Match[str]) -> str:
    value = row[field["name"]]
    return value if field["digits"] is None else f"{float(value):.{field['digits']}f}"


if __name__ == "__main__":
    sys.exit(main())
