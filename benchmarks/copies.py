"""How many copies of a picture are found to be copies, and how many different pictures are taken for one.

    python benchmarks/copies.py RSICD [--train] [--tars A.tar B.tar …] [--every 2] [--out docs/results/copies.csv]

Pictures of RSICD val are encoded again and resized, and each is compared with the picture it was made of. Then all
pictures of val (with --train those of train too) are compared with each other; pairs that would be merged are named, to
be looked at: RSICD holds some pictures twice. The last columns are what either sign alone would merge. The limits were
chosen on RSICD; --tars names pictures that had no part in that, of which only those with near hashes are encoded.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evidex.data.datasets import load_dataset
from evidex.data.perceptual_hash import perceptual_hash
from evidex.encoders.model import Model, load_model
from evidex.retrieval.copies import LEAST_COSINE, MOST_BITS
from evidex.retrieval.near_hashes import NearHashes

STRICT = 0.98  # what the cosine alone would have to be for hardly any wrong merge


def _saved(kind: str, quality: int) -> Callable[[Image.Image], Image.Image]:
    def change(picture: Image.Image) -> Image.Image:
        stream = io.BytesIO()
        picture.save(stream, kind, quality=quality)
        return Image.open(stream).convert("RGB")

    return change


def _scaled(factor: float) -> Callable[[Image.Image], Image.Image]:
    return lambda picture: picture.resize(
        (round(picture.width * factor), round(picture.height * factor)), Image.Resampling.BICUBIC
    )


def _cut(picture: Image.Image) -> Image.Image:
    x, y = round(0.02 * picture.width), round(0.02 * picture.height)
    return picture.crop((x, y, picture.width - x, picture.height - y))


CHANGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "JPEG, quality 90": _saved("JPEG", 90),
    "JPEG, quality 50": _saved("JPEG", 50),
    "JPEG, quality 20": _saved("JPEG", 20),
    "WebP, quality 60": _saved("WEBP", 60),
    "twice as large": _scaled(2.0),
    "half as large": _scaled(0.5),
    "a quarter as large": _scaled(0.25),
    "half as large, JPEG, quality 50": lambda picture: _saved("JPEG", 50)(_scaled(0.5)(picture)),
    "2 % cut off at each edge": _cut,
}
Looks = tuple[NDArray[np.float32], NDArray[np.uint64]]


def looks(model: Model, pictures: Iterable[Image.Image]) -> Looks:
    """Vectors and hashes of pictures, which are held a few at a time."""
    vectors, hashes, waiting = [], [], []
    for picture in pictures:
        hashes.append(perceptual_hash(picture))
        waiting.append(picture)
        if len(waiting) == 64:
            vectors.append(model.encode_images(waiting))
            waiting = []
    if waiting:
        vectors.append(model.encode_images(waiting))
    return np.concatenate(vectors), np.array(hashes, np.uint64)


def compared(one: Looks, other: Looks) -> dict[str, int]:
    cosine = (one[0] * other[0]).sum(axis=1)
    bits = np.bitwise_count(one[1] ^ other[1])
    near, alike = bits <= MOST_BITS, cosine >= LEAST_COSINE
    both = int((near & alike).sum())
    return {"pairs": len(bits), "merged": both, "by_hash": int(near.sum()), "by_vector": int((cosine >= STRICT).sum())}


def among(whole: Looks, names: list[str]) -> dict[str, int]:
    """All pairs of different pictures; those that would be merged are printed."""
    vectors, hashes = whole
    index = NearHashes(hashes, np.ones(len(hashes), np.bool_), MOST_BITS)
    counts = {"pairs": len(hashes) * (len(hashes) - 1) // 2, "merged": 0, "by_hash": 0, "by_vector": 0}
    for place, value in enumerate(hashes.tolist()):
        cosine = vectors[place + 1 :] @ vectors[place]
        near = index.near(value)
        near = near[near > place]
        counts["by_hash"] += len(near)
        counts["by_vector"] += int((cosine >= STRICT).sum())
        for other in near[cosine[near - place - 1] >= LEAST_COSINE].tolist():
            counts["merged"] += 1
            print(f"would be merged: {names[place]} {names[other]}", file=sys.stderr)
    return counts


def among_tars(model: Model, tars: list[Path]) -> dict[str, int]:
    """All pairs of different pictures in ``tars``; those that would be merged are printed."""
    content: list[tuple[str, bytes]] = []
    for path in tars:
        with tarfile.open(path) as archive:
            members = [member for member in archive if member.isfile()]
            content += [(member.name, archive.extractfile(member).read()) for member in members]  # type: ignore[union-attr]
    hashes = np.array([perceptual_hash(_opened(data)) for _, data in content], np.uint64)
    index = NearHashes(hashes, np.ones(len(hashes), np.bool_), MOST_BITS)
    near = [(i, int(j)) for i, value in enumerate(hashes.tolist()) for j in index.near(value) if j > i]
    merged = 0
    for pair in near:
        one, other = model.encode_images([_opened(content[i][1]) for i in pair])
        if one @ other >= LEAST_COSINE:
            merged += 1
            print("would be merged:", *(content[i][0] for i in pair), file=sys.stderr)
    return {"pairs": len(hashes) * (len(hashes) - 1) // 2, "merged": merged, "by_hash": len(near)}


def _opened(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content)).convert("RGB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rsicd", type=Path)
    parser.add_argument("--train", action="store_true", help="compare the pictures of train too")
    parser.add_argument("--tars", type=Path, nargs="*", default=[], help="compare the pictures of these too")
    parser.add_argument("--every", type=int, default=2, help="copy every so many of val's pictures")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    model = load_model()
    parts, names = [], []
    for split in ("val", *(["train"] if arguments.train else [])):
        dataset = load_dataset(arguments.rsicd, split)
        parts.append(looks(model, (dataset.open_image(i) for i in range(len(dataset)))))
        names += [record.filename for record in dataset.records]
    val, step = load_dataset(arguments.rsicd, "val"), arguments.every
    kept = tuple(part[::step] for part in parts[0])
    rows = []
    for name, change in CHANGES.items():
        changed = looks(model, (change(val.open_image(i)) for i in range(0, len(val), step)))
        rows.append({"what": name, **compared(changed, kept)})  # type: ignore[arg-type]
    whole = tuple(np.concatenate(part) for part in zip(*parts, strict=True))
    what = f"different files of RSICD val{' and train' * arguments.train}"
    rows.append({"what": what, **among(whole, names)})  # type: ignore[arg-type]
    if arguments.tars:
        what = "different files of " + ", ".join(path.stem.partition("_")[0] for path in arguments.tars)
        rows.append({"what": what, **among_tars(model, arguments.tars)})
    for row in rows:
        row["share"] = f"{100 * int(row['merged']) / int(row['pairs']):.3g}"  # type: ignore[call-overload]
    with arguments.out.open("w", newline="") if arguments.out else sys.stdout as stream:
        writer = csv.DictWriter(stream, ["what", "pairs", "merged", "share", "by_hash", "by_vector"])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
