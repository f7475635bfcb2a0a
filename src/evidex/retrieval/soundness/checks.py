"""Which files of a gallery were found to be what the seal says, and in which state of theirs.

A file is read whole once and then taken for what it is as long as its size, times and inode stay the same; what was
found is kept in checked.json, so that the next process need not read everything again. That file is a shortcut only:
where it is missing or wrong the files are read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from evidex.documents import parse_json
from evidex.files import write_json_atomic
from evidex.retrieval.soundness.seal import SEAL, Digest, Seal, damaged, digest_of, read_seal

CHECKED = "checked.json"
_PIECE = 1 << 24
_TICK_NS = 50_000_000

State = tuple[int, int, int, int]
"""Size, both times and inode of a file."""


def state_of(place: Path | int) -> State | None:
    """Of a path or an open file; None where there is nothing."""
    try:
        status = os.fstat(place) if isinstance(place, int) else place.stat()
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def is_settled(state: State) -> bool:
    """Whether a later change must show in the times, which move on in steps of a few milliseconds."""
    return time.time_ns() - state[2] > _TICK_NS


class FileChecks:
    """Holds the files of one gallery against its seal; without a seal every file passes that is there."""

    def __init__(self, folder: Path, seal: Seal | None) -> None:
        self._folder = folder
        self._seal = seal
        self._seal_state = state_of(folder / SEAL)
        self._sound: dict[str, State] = _read_checked(folder)
        self._unsound: dict[str, State] = {}

    @property
    def seal(self) -> Seal | None:
        return self._seal

    def take_up_seal(self) -> None:
        """Read the seal again if another process has written it."""
        now = state_of(self._folder / SEAL)
        if now != self._seal_state:
            if (seal := read_seal(self._folder)) is not None:
                self._seal = seal
            self._seal_state = now

    def adopt(self, seal: Seal) -> None:
        """Go on with a seal that this process wrote."""
        self._seal, self._seal_state = seal, state_of(self._folder / SEAL)

    def check(self, names: Iterable[str]) -> None:
        """DamagedError for the first file that is missing or not what was written."""
        news = False
        for name in names:
            state = state_of(self._folder / name)
            if state is None or self._sound.get(name) != state:
                news |= self._look(name, state)
        if news:
            self._keep()

    def expects(self, name: str) -> bool:
        """Whether the file ``name`` must be there."""
        self.take_up_seal()
        return self._seal is not None and None not in self._seal.files.get(name, (None,))

    def _look(self, name: str, state: State | None) -> bool:
        """Read the file; whether something was learnt that is worth keeping."""
        self.take_up_seal()
        allowed = () if self._seal is None else self._seal.files.get(name, ())
        if state is None:
            raise damaged(self._folder, f"{name} is missing")
        if not allowed:
            return False
        if self._unsound.get(name) == state or digest_of(self._folder / name) not in allowed:
            self._refuse(name, state)
        if state_of(self._folder / name) == state and is_settled(state):
            self._sound[name] = state
        return True

    def _refuse(self, name: str, state: State) -> None:
        self._sound.pop(name, None)
        if is_settled(state):
            self._unsound[name] = state  # so that it need not be read for every question
        raise damaged(self._folder, f"{name} is not what was written")

    def patrol(self, names: Iterable[str]) -> Iterator[None]:
        """Read the files again though nothing tells of a change, pausing after every piece; DamagedError as `check`."""
        import zlib

        for name in names:
            state = state_of(self._folder / name)
            allowed = () if self._seal is None else self._seal.files.get(name, ())
            if state is None or not allowed:
                continue
            size = check = 0
            with suppress(FileNotFoundError), (self._folder / name).open("rb", buffering=0) as stream:
                while piece := stream.read(_PIECE):
                    size, check = size + len(piece), zlib.crc32(piece, check)
                    yield
            found: Digest = size, check
            if found not in allowed and state_of(self._folder / name) == state:
                self._refuse(name, state)

    def _keep(self) -> None:
        files = self._seal.files if self._seal is not None else {}
        known = {name: list(state) for name, state in self._sound.items() if name in files}
        with suppress(OSError):  # on a disk that cannot be written the files are read every time
            write_json_atomic(self._folder / CHECKED, {"files": known})


def _read_checked(folder: Path) -> dict[str, State]:
    try:
        files = parse_json((folder / CHECKED).read_bytes())["files"]
        return {str(name): (int(a), int(b), int(c), int(d)) for name, (a, b, c, d) in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
