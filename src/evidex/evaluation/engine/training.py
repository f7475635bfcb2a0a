"""A training that is done once: a note beside the model says that it came to its end, and under which digest."""

from __future__ import annotations

from pathlib import Path

from evidex.config import Config
from evidex.documents import read_json
from evidex.errors import DataError
from evidex.files import write_json_atomic

TRAINED = "trained.json"


def is_trained(folder: Path, digest: str) -> bool:
    note = folder / TRAINED
    return note.is_file() and read_json(note, DataError).get("digest", digest) == digest


def train_once(config: Config, digest: str, label: str, *, keep_checkpoint: bool = False) -> tuple[Path, bool]:
    """The path of the trained model in ``config.output``, and whether it was trained now."""
    folder = Path(config.output)
    trained = not is_trained(folder, digest)
    if trained:
        from evidex.training.loop import train

        run = train(config)
        best = max((entry for entry in run.history if "val_rsum" in entry), key=lambda entry: float(entry["val_rsum"]))
        write_json_atomic(
            folder / TRAINED,
            {
                "label": label,
                "digest": digest,
                "fingerprint": run.model.fingerprint,
                "best_epoch": best["epoch"],
                "val_rsum": best["val_rsum"],
                "pairs_per_second": sum(entry["pairs_per_second"] for entry in run.history) / len(run.history),
            },
        )
    if not keep_checkpoint:  # as large as three models, and needed no more
        (folder / "checkpoint.safetensors").unlink(missing_ok=True)
    return folder / "model.safetensors", trained
