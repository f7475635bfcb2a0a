"""What a gallery answers, and bits that flip."""

from __future__ import annotations

import json
from pathlib import Path

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.table import manifests
from tests.retrieval.archive import tiny_model


def hits(folder: Path) -> list[tuple[str, float]]:
    found = Retriever(Gallery.open(folder, tiny_model())).search(text="a river", top=5)
    return [(hit.path, hit.score) for hit in found.hits] + [(found.verdict, found.uncertainty)]


def flip(path: Path, place: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x40
    with path.open("r+b") as stream:
        stream.write(content)


def file_of(gallery: Gallery, pattern: str) -> Path:
    return max(gallery.path.glob(pattern), key=lambda path: path.stat().st_size)


def make_old(gallery: Gallery) -> None:
    for name in ("seal.json", "checked.json", "vectors.json"):
        (gallery.path / name).unlink(missing_ok=True)
    info = gallery.path / "gallery.json"
    info.write_text(json.dumps(json.loads(info.read_text()) | {"format": 1}))


def newest_version(folder: Path) -> Path:
    versions = manifests(folder)
    return folder / versions[max(versions)]
