"""The files of a run: its configuration, history, checkpoint and best model; one process of all writes them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from evidex.checked import to_table
from evidex.config import Config
from evidex.data.sources import Source
from evidex.encoders.model import Model
from evidex.encoders.protocol import DualEncoder
from evidex.files import write_json_atomic
from evidex.training.checkpoint import load_checkpoint, save_checkpoint
from evidex.training.state import TrainState
from evidex.training.validation import Validation


class RunFolder:
    """What a run leaves in ``config.output``; every file is replaced whole."""

    def __init__(self, config: Config, sources: Sequence[Source], *, writes: bool) -> None:
        self._path = Path(config.output)
        self._table = to_table(config)
        self._sources = [source.row() for source in sources]
        self._taught = _digest(sources)
        self._writes = writes
        self.model = self._path / "model.safetensors"
        self._checkpoint = self._path / "checkpoint.safetensors"

    def open(self, state: TrainState, *, restart: bool) -> None:
        """Put ``state`` where the checkpoint left it, if there is one, and note the configuration."""
        if self._checkpoint.exists() and not restart:
            load_checkpoint(self._checkpoint, state, self._table, self._taught)
        if self._writes:
            write_json_atomic(self._path / "experiment.json", self._table)

    def save_best(self, encoder: DualEncoder, temperature: float, epoch: int, found: Validation) -> None:
        """Write the model after ``epoch`` epochs, the best on val so far, and what it scores on each source."""
        if not self._writes:
            return
        sources = [row | found.sources[row["name"]] for row in self._sources]
        card = {"config": self._table, "epoch": epoch, "val": found.recall.to_json(), "sources": sources}
        Model(encoder, temperature, card=card).save(self.model)
        write_json_atomic(self._path / "sources.json", sources)

    def save(self, state: TrainState, *, checkpoint: bool) -> None:
        """Write the history, and after the epochs that the configuration names the whole state."""
        if not self._writes:
            return
        if checkpoint:
            save_checkpoint(self._checkpoint, state, self._table, self._taught)
        write_json_atomic(self._path / "history.json", state.progressed.history)


def _digest(sources: Sequence[Source]) -> str:
    """What ``sources`` teach and measure by: names, captions and labels; pictures that keep their names pass."""
    content = [
        [part.split, [[record.filename, record.label, record.captions] for record in part.records]]
        for source in sources
        for part in (source.train, source.val)
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
