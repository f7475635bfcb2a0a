"""The weights that the paper names, as their authors publish them: fetched or taken from this machine, and tried.

``docs/weights.csv`` says where each file is and what its SHA-256 is, where that is known. A file is put into its place
only after its digest fits and it was loaded as what it shall be, without running anything of what it holds.
"""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evidex.encoders.clip.open_clip_weights import infer_architecture, map_state_dict
from evidex.encoders.clip.tokenizer import ClipTokenizer
from evidex.encoders.mentors.pretrained import HuggingFaceTextMentor
from evidex.encoders.mentors.unicom import load_unicom
from evidex.encoders.state_dicts import read_state_dict
from evidex.errors import DataError
from evidex.files import sha256_of, write_json_atomic
from evidex.progress import Progress, silent
from evidex.weights.downloads import PublicFile, fetch

TABLE = Path(__file__).resolve().parents[2] / "docs" / "weights.csv"
_CONTEXT = 77  # tokens of CLIP's text tower


def _try_clip(path: Path) -> None:
    state = read_state_dict(path)
    map_state_dict(state, infer_architecture(state, activation="quick_gelu"))


def _try_unicom(path: Path) -> None:
    load_unicom(read_state_dict(path), source=f"'{path.name}'")


def _try_tokenizer(folder: Path) -> None:
    ClipTokenizer.from_files(folder, _CONTEXT)


def _try_text_model(folder: Path) -> None:
    HuggingFaceTextMentor(folder)


_TRIALS: dict[str, Callable[[Path], None]] = {
    "clip_vit_b32": _try_clip,
    "clip_tokenizer": _try_tokenizer,
    "remoteclip_vit_b32": _try_clip,
    "unicom_vit_b_32": _try_unicom,
    "gte_base": _try_text_model,
}


@dataclass(frozen=True)
class PaperWeights:
    """One model of the paper: its files, and where they go."""

    name: str
    files: tuple[PublicFile, ...]

    @property
    def place(self) -> str:
        """A single file under the model's name, several in a folder of that name."""
        return self.name if len(self.files) > 1 else f"{self.name}{Path(self.files[0].title).suffix}"


def paper_weights(table: Path = TABLE) -> dict[str, PaperWeights]:
    """What the table names, in its order."""
    files: dict[str, list[PublicFile]] = {}
    with table.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            found = PublicFile(row["address"], row["sha256"], int(row["size"] or 0))
            files.setdefault(row["name"], []).append(found)
    return {name: PaperWeights(name, tuple(listed)) for name, listed in files.items()}


def provide(weights: PaperWeights, out: Path, local: Path | None = None, progress: Progress = silent) -> Path:
    """Put ``weights`` into ``out``, from ``local`` (a file, or the folder of several) or from where they are published.

    What is there already and sound stays; a file beside it keeps the digests.
    """
    target, card = out / weights.place, out / f"{weights.name}.json"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as scratch:
        tried = Path(scratch) / weights.place
        for file in weights.files:
            found = fetch(file, out / ".downloads", progress) if local is None else _taken(file, weights, local)
            copy = tried / file.title if len(weights.files) > 1 else tried
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found, copy)
        _TRIALS[weights.name](tried)
        digests = {file.title: sha256_of(tried / file.title if tried.is_dir() else tried) for file in weights.files}
        if target.is_dir():
            shutil.rmtree(target)
        tried.replace(target)
    known = {file.title: file.sha256 for file in weights.files if file.sha256}
    write_json_atomic(card, {"addresses": [file.address for file in weights.files], "sha256": digests, "known": known})
    return target


def _taken(file: PublicFile, weights: PaperWeights, local: Path) -> Path:
    """The file on this machine, under its published name in a folder or by whatever name it was given."""
    path = local / file.title if local.is_dir() else local
    if not path.is_file() or (len(weights.files) > 1 and not local.is_dir()):
        raise DataError(f"'{path}' is not there; give the published {file.title}, or a folder that holds it")
    found = sha256_of(path)
    if file.sha256 and found != file.sha256:
        raise DataError(f"'{path}' has sha256 {found}, not {file.sha256} as published; fetch it again")
    return path
