"""What the commands share: the terminal, progress bars, tables and JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evidex.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = 1000


def error_console() -> Console:
    """Return the console for everything that is not the result: progress, notes, warnings."""
    from rich.console import Console

    return Console(stderr=True)


def output_console() -> Console:
    """Return the console for results; into a file or a pipe lines go whole, so that paths can be used."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDE)


@contextmanager
def progress_bar(description: str) -> Iterator[Progress]:
    """Show a bar with rate and remaining time on the error stream; nothing where no one watches."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=error_console(), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(description, total=None, rate="")

        def report(done: int, total: int) -> None:
            speed = bar.tasks[0].speed
            bar.update(task, completed=done, total=total, rate=f"{speed:.0f}/s" if speed else "")

        yield report


def print_json(value: Any) -> None:
    """Print ``value`` as one JSON document on the output stream."""
    sys.stdout.write(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
