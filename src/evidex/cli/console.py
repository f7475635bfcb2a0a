"""What the commands share: the terminal, progress bars, tables and JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from evidex.progress import progress_bar

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = 1000
__all__ = ["error_console", "output_console", "print_json", "progress_bar"]


def error_console() -> Console:
    """Return the console for everything that is not the result: progress, notes, warnings."""
    from rich.console import Console

    return Console(stderr=True)


def output_console() -> Console:
    """Return the console for results; into a file or a pipe lines go whole, so that paths can be used."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDE)


def print_json(value: Any) -> None:
    """Print ``value`` as one JSON document on the output stream."""
    sys.stdout.write(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
