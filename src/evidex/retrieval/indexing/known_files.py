"""What a gallery knows already: which files, in which state, under which ids."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from evidex.data.discover import FoundFile
from evidex.retrieval.gallery import Gallery

_COLUMNS = (
    "id",
    "path",
    "kind",
    "sha256",
    "size",
    "mtime_ns",
    "window_x",
    "window_y",
    "reading",
    "complete",
    "captions",
)


@dataclass
class KnownFile:
    """The rows of one file in one state of its content."""

    path: str
    sha256: str
    size: int
    mtime_ns: int
    reading: str | None
    captions: tuple[str, ...] = ()
    complete: bool = False
    ids: list[str] = field(default_factory=list)
    places: set[tuple[int, int]] = field(default_factory=set)

    def is_as_found(self, file: FoundFile) -> bool:
        return (self.size, self.mtime_ns) == (file.size, file.mtime_ns)


class KnownFiles:
    """The files of a gallery by path and by content."""

    def __init__(self, gallery: Gallery) -> None:
        # Normally one state a path; a changed file whose indexing was cut short has rows of two.
        self._states: dict[str, list[KnownFile]] = {}
        self._complete: dict[str, KnownFile] = {}
        self.sizes: Counter[int] = Counter()
        for record in gallery.records(_COLUMNS):
            if record["kind"] == "text":
                continue
            state = self._state(record["path"], record["sha256"], record["size"], record["mtime_ns"], record["reading"])
            state.ids.append(record["id"])
            state.captions = tuple(record["captions"] or ())
            state.complete |= record["complete"]
            if record["window_x"] is not None:
                state.places.add((record["window_x"], record["window_y"]))
        for states in self._states.values():
            for state in states:
                self.sizes[state.size] += 1
                if state.complete:
                    self._complete.setdefault(state.sha256, state)

    def paths(self) -> list[str]:
        return list(self._states)

    def ids(self, path: str) -> list[str]:
        """All rows of ``path``, of whatever state."""
        return [row_id for state in self._states.get(path, ()) for row_id in state.ids]

    def as_found(self, file: FoundFile, reading: str | None) -> KnownFile | None:
        """The rows that were made of the file as it lies there now, as far as size and time tell."""
        for state in self._states.get(file.path, ()):
            if state.is_as_found(file) and state.reading == reading:
                return state
        return None

    def with_content(self, sha256: str, path: str = "") -> KnownFile | None:
        """A completely indexed file of this content; that at ``path`` if it is one."""
        for state in self._states.get(path, ()):
            if state.complete and state.sha256 == sha256:
                return state
        return self._complete.get(sha256)

    def register(self, state: KnownFile) -> None:
        """``state`` is now what the gallery holds for its path."""
        self.forget(state.path)
        self._states[state.path] = [state]
        if state.complete:
            self._complete.setdefault(state.sha256, state)

    def forget(self, path: str) -> None:
        for state in self._states.pop(path, []):
            if self._complete.get(state.sha256) is state:
                del self._complete[state.sha256]

    def _state(self, path: str, sha256: str, size: int, mtime_ns: int, reading: str | None) -> KnownFile:
        states = self._states.setdefault(path, [])
        for state in states:
            if (state.sha256, state.size, state.mtime_ns, state.reading) == (sha256, size, mtime_ns, reading):
                return state
        states.append(KnownFile(path, sha256, size, mtime_ns, reading))
        return states[-1]
