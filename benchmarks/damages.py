"""A gallery with some history, and ways without end to damage its files; for damage.py."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

QUESTIONS = ("a river between green fields", "dense houses and roads")


@dataclass(frozen=True)
class Damage:
    """One way to damage one file or folder."""

    kind: str
    name: str
    inflict: Callable[[Path], None]

    @property
    def sort(self) -> str:
        """The file without what differs from gallery to gallery."""
        parts = Path(self.name).parts or ("(the whole gallery)",)
        if parts[0] == "rows.lance" and len(parts) > 1:
            return "/".join(parts[:2])
        return "vectors-*.f32" if parts[0].startswith("vectors-") else parts[0]

    @property
    def must_show(self) -> bool:
        """Whether `verify` must see it: not so where no byte that is read has changed, or the file is a mere hint."""
        hints = ("checked.json", "rows.lance/_versions/latest_version_hint.json")
        in_place = self.kind.startswith("bit") or self.kind in ("run of bytes", "cut short", "emptied")
        return in_place and self.name not in hints


def make_gallery(root: Path) -> None:
    """A gallery with some history in root/sound, and its state of before in root/older."""
    import torch
    from PIL import Image

    from evidex.config import EncoderConfig
    from evidex.encoders.model import Model
    from evidex.encoders.towers import new_compact
    from evidex.retrieval.certainty.calibration import Calibration
    from evidex.retrieval.certainty.calibration_store import store_calibration
    from evidex.retrieval.certainty.self_calibrating import self_calibrate
    from evidex.retrieval.gallery import Gallery
    from evidex.retrieval.indexing import IndexOptions

    rng = np.random.default_rng(1)
    (root / "files").mkdir()
    torch.manual_seed(0)
    gallery = Gallery.create(root / "sound", Model(new_compact(EncoderConfig(image_size=32, dim=32), QUESTIONS), 0.1))
    for step in range(2):
        for number in range(30):
            coarse = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(coarse).resize((64, 64)).save(root / "files" / f"{step}_{number:03d}.png")
        gallery.add(root / "files", options=IndexOptions(workers=1))
        gallery.remove([gallery.rows([3])[0].id])
        self_calibrate(gallery, np.random.default_rng(step))
        scores = np.linspace(-3 - step, 3, 50)
        store_calibration(gallery, Calibration(gallery.info.model_fingerprint, "text", 50, "vacuity", scores), "images")
        gallery.vectors  # noqa: B018 (maps them)
        if step == 0:
            shutil.copytree(gallery.path, root / "older")


def plan(root: Path, rng: np.random.Generator) -> Iterator[Damage]:
    """Damages without end: every file in every way, in random order, again and again."""
    sound = root / "sound"
    names = sorted(str(path.relative_to(sound)) for path in sound.rglob("*") if path.is_file())
    names = [name for name in names if not Path(name).name.startswith(".")]
    folders = ["rows.lance", "rows.lance/data", "rows.lance/_versions", "rows.lance/_deletions",
               "rows.lance/_transactions", "calibration", "."]  # fmt: skip
    while True:
        cases = [(kind, name) for name in names for kind in _KINDS] + [("folder gone", name) for name in folders]
        for place in rng.permutation(len(cases)).tolist():
            kind, name = cases[place]
            damage = _damage(root, kind, name, names, np.random.default_rng(rng.integers(2**63)))
            if damage is not None:
                yield damage


_KINDS = ("bit", "bit, times kept", "run of bytes", "cut short", "grown", "removed", "emptied", "swapped", "older")


def _damage(root: Path, kind: str, name: str, names: list[str], rng: np.random.Generator) -> Damage | None:
    if kind == "folder gone":
        return Damage(kind, name, lambda folder: shutil.rmtree(folder / name))
    if kind == "swapped":
        others = [other for other in names if other != name and Path(other).parent == Path(name).parent]
        if not others:
            return None
        other = str(rng.choice(others))
        return Damage(kind, name, lambda folder: _swap(folder / name, folder / other))
    if kind == "older":
        before = _older(root, name)
        if before is None or before.read_bytes() == (root / "sound" / name).read_bytes():
            return None
        return Damage(kind, name, lambda folder: _overwrite(folder / name, before.read_bytes()))
    return Damage(kind, name, lambda folder: _in_place(folder / name, kind, rng))


def _older(root: Path, name: str) -> Path | None:
    """What lay in this place before: by name, or the like of it where each state has a name of its own."""
    path = root / "older" / name
    if path.is_file():
        return path
    like = sorted((root / "older" / name).parent.glob(f"*{Path(name).suffix}"))
    return like[-1] if like else None


def _in_place(path: Path, kind: str, rng: np.random.Generator) -> None:
    before = path.stat()
    content = bytearray(path.read_bytes())
    size = len(content)
    place = int(rng.integers(max(size, 1)))
    if kind.startswith("bit") and size:
        content[place] ^= 1 << int(rng.integers(8))
    elif kind == "run of bytes" and size:
        run = rng.bytes(int(rng.integers(1, 65)))
        if bytes(content[place : place + len(run)]) == run[: size - place]:
            run = bytes(255 - byte for byte in run)
        content[place : place + len(run)] = run[: size - place]
    elif kind == "cut short":
        del content[place:]
    elif kind == "grown":
        content += rng.bytes(int(rng.integers(1, 5000)))
    elif kind == "emptied":
        content.clear()
    elif kind == "removed":
        path.unlink()
        return
    _overwrite(path, bytes(content))
    if kind.endswith("times kept"):
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _overwrite(path: Path, content: bytes) -> None:
    """In the same inode, as a disk or a careless program would: who has it mapped sees it."""
    with path.open("r+b") as stream:
        stream.write(content)
        stream.truncate()


def _swap(path: Path, other: Path) -> None:
    aside = path.with_name(path.name + ".aside")
    path.rename(aside)
    other.rename(path)
    aside.rename(other)
