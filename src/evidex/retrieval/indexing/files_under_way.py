"""How far each file of an index run is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from evidex.data.discover import FoundFile
from evidex.retrieval.indexing.decode_worker import Finished, Same


class Stage(Enum):
    """Where a file stands that the decoding processes have told of."""

    OPENED = "opened"
    """Pictures of it have come, and more may."""
    DECODED = "decoded"
    """All pictures have come; not all of their rows are committed."""
    COPYING = "copying"
    """Its content is known: it takes over the rows of another file, or of itself, with the next commit."""
    AGAIN = "again"
    """What it was to take over was replaced meanwhile."""
    UNREADABLE = "unreadable"


@dataclass(slots=True)
class FileUnderWay:
    """One file on its way::

              ┌── Picture ──▶ OPENED ── Finished ──▶ DECODED ── its last row is committed ──▶ told of
              │
        task ─┼── Finished ────────────────────────▶ DECODED
         ▲    │
         │    ├── Same ─────▶ COPYING ── the next commit ──▶ told of
         │    │                  └────── what it takes is gone ──▶ AGAIN ─┐
         │    │                                                           │
         │    └── Failed, at any time ──▶ UNREADABLE, told of as skipped  │
         └────────────────────────────────────────────────────────────────┘

    What is told of is added, updated, unchanged, moved or skipped in the report. A file that was being changed while
    it was read is skipped and left as it is; an unreadable one may be pruned.
    """

    path: str
    stage: Stage
    uncommitted: int = 0
    """Pictures whose rows are not committed."""
    blank: int = 0
    """Pictures for which the model gives no finite vector."""
    end: Finished | None = None
    copy: Same | None = None


class FilesUnderWay:
    """The files of a run that are under way, found by their path and by their stage."""

    def __init__(self) -> None:
        self._files: dict[str, FileUnderWay] = {}
        self._at: dict[Stage, dict[str, FileUnderWay]] = {stage: {} for stage in Stage}

    def at(self, stage: Stage) -> list[FileUnderWay]:
        """In the order in which they came there."""
        return list(self._at[stage].values())

    def picture(self, path: str) -> None:
        """One more picture of ``path`` has come."""
        state = self._files.get(path) or self._enter(FileUnderWay(path, Stage.OPENED))
        state.uncommitted += 1

    def picture_is_blank(self, path: str) -> None:
        self._files[path].uncommitted -= 1
        self._files[path].blank += 1

    def row_is_committed(self, path: str) -> None:
        self._files[path].uncommitted -= 1

    def finished(self, end: Finished) -> None:
        state = self._files.get(end.path) or FileUnderWay(end.path, Stage.DECODED)
        state.end = end
        self._enter(state, Stage.DECODED)

    def same(self, copy: Same) -> None:
        self._enter(FileUnderWay(copy.path, Stage.COPYING, copy=copy))

    def failed(self, path: str) -> None:
        state = self._files.get(path) or FileUnderWay(path, Stage.UNREADABLE)
        self._enter(state, Stage.UNREADABLE)

    def ask_again(self, state: FileUnderWay) -> None:
        self._enter(state, Stage.AGAIN)

    def again(self) -> list[FoundFile]:
        """The files that are to be asked for once more; each begins its way anew."""
        states = self.at(Stage.AGAIN)
        for state in states:
            self.leave(state)
        return [state.copy.file for state in states if state.copy is not None]

    def leave(self, state: FileUnderWay) -> None:
        """All is told of it."""
        del self._at[state.stage][state.path], self._files[state.path]

    def _enter(self, state: FileUnderWay, stage: Stage | None = None) -> FileUnderWay:
        if state.path in self._files:
            self._at[state.stage].pop(state.path, None)
        state.stage = stage or state.stage
        self._files[state.path] = self._at[state.stage][state.path] = state
        return state
