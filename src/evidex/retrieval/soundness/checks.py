"""Which files of a gallery were found to be what the seal says, and in which state of theirs.

A file is read whole once and then taken for what it is as long as its size, times and inode stay the same; what was
found is kept in checked.json, so that the next process need not read everything again. That file is a shortcut only:
where it is missing or wrong the files are read.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from evidex.documents import parse_json
from evidex.files import derived_folder, write_atomic
from evidex.retrieval.soundness.seal import SEAL, Digest, Losses, Seal, damaged, digest_of, read_seal
from evidex.storage.objects import ObjectPlace, ObjectStatus, Place

CHECKED = "checked.json"
_PIECE = 1 << 18  # of what a patrol holds in memory at a time
_TICK_NS = 50_000_000
_STORE_TICK_NS = 2_000_000_000  # object stores tell the second
_LISTING_SECONDS = 1.0
_AT_ONCE = 8

State = tuple[int, int, int, int]
"""Size, both times and inode of a file."""


def state_of(place: Place | int) -> State | None:
    """Of a path or an open file; None where there is nothing."""
    try:
        status = os.fstat(place) if isinstance(place, int) else place.stat()
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def is_settled(state: State, tick_ns: int = _TICK_NS) -> bool:
    """Whether a later change must show in the times, which move on in steps of a few milliseconds.

    Times that lie ahead are of a clock that was, or is, ahead of ours: a later change shows in them too.
    """
    return not 0 <= time.time_ns() - state[2] <= tick_ns


class FileChecks:
    """Holds the files of one gallery against its seal; without a seal every file passes that is there."""

    def __init__(self, folder: Place, seal: Seal | None) -> None:
        self._folder = folder
        self._kept = derived_folder(folder) / CHECKED
        self._seal = seal
        self._tick = _STORE_TICK_NS if isinstance(folder, ObjectPlace) else _TICK_NS
        self._listing: tuple[float, dict[str, ObjectStatus]] = -_LISTING_SECONDS, {}
        # One that was read may have been written anew since; where none was to be had, it is not asked for again.
        self._seal_state = None if seal is not None else state_of(folder / SEAL)
        self._news = False
        self._sound: dict[str, State] = _read_checked(self._kept)
        self._unsound: dict[str, State] = {}

    @property
    def seal(self) -> Seal | None:
        return self._seal

    @property
    def lost(self) -> Losses:
        """Which rows repairs gave up that are not back yet."""
        return self._seal.lost if self._seal is not None else Losses()

    def take_up_seal(self) -> None:
        """Read the seal again if another process has written it."""
        now = state_of(self._folder / SEAL)
        if now != self._seal_state:
            if (seal := read_seal(self._folder)) is not None:
                self._seal = seal
            self._seal_state = self._lasting(now)

    def adopt(self, seal: Seal, state: State | None) -> None:
        """Go on with a seal that this process wrote; ``state`` is the file's, from before others could write it."""
        self._seal, self._seal_state = seal, self._lasting(state)

    def _lasting(self, state: State | None) -> State | None:
        """None for an object so young that another in its place would not show, as stores tell the second only."""
        young = isinstance(self._folder, ObjectPlace) and state is not None and not is_settled(state, self._tick)
        return None if young else state

    def check(self, names: Iterable[str]) -> None:
        """DamagedError for the first file that is missing or not what was written."""
        states = ((name, self._state(name)) for name in names)
        unsure = [(name, state) for name, state in states if state is None or self._sound.get(name) != state]
        if len(unsure) > 1 and isinstance(self._folder, ObjectPlace):
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(_AT_ONCE) as threads:  # most of the time is spent waiting for the store
                list(threads.map(lambda each: self._look(*each), unsure))
            return
        for name, state in unsure:
            self._look(name, state)

    def _state(self, name: str) -> State | None:
        """Of a file; those of a store are listed together, as asking for each of them takes too long."""
        if not isinstance(self._folder, ObjectPlace):
            return state_of(self._folder / name)
        listed_at, listing = self._listing
        if time.monotonic() - listed_at > _LISTING_SECONDS or name not in listing:
            listing = self._folder.listed()
            self._listing = time.monotonic(), listing
        status = listing.get(name)
        return None if status is None else (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def covers(self, names: Iterable[str], version: int) -> bool:
        """Whether the seal knows this version of the table and all its files."""
        self.take_up_seal()
        return self._seal is None or (self._seal.version >= version and all(name in self._seal.files for name in names))

    def expects(self, name: str) -> bool:
        """Whether the file ``name`` must be there."""
        self.take_up_seal()
        return self._seal is not None and None not in self._seal.files.get(name, (None,))

    def _look(self, name: str, state: State | None) -> None:
        self.take_up_seal()
        allowed = () if self._seal is None else self._seal.files.get(name, ())
        if state is None:
            raise damaged(self._folder, f"{name} is missing")
        if not allowed:
            return
        if self._unsound.get(name) == state or not self._is_one_of(name, allowed):
            self._refuse(name, state)
        if state_of(self._folder / name) == state and is_settled(state, self._tick):
            self._sound[name] = state
            self._news = True

    def _is_one_of(self, name: str, allowed: tuple[Digest | None, ...]) -> bool:
        """Whether a file is as the seal allows; an object may be replaced while it is read, and is read again then."""
        times = 2 if isinstance(self._folder, ObjectPlace) else 1
        return any(digest_of(self._folder / name) in allowed for _ in range(times))

    def _refuse(self, name: str, state: State) -> None:
        self._sound.pop(name, None)
        if is_settled(state, self._tick):
            self._unsound[name] = state  # so that it need not be read for every question
        raise damaged(self._folder, f"{name} is not what was written")

    def patrol(self, names: Iterable[str]) -> Iterator[None]:
        """Read the files again though nothing tells of a change, pausing after every piece; DamagedError as `check`."""
        import zlib

        buffer = bytearray(_PIECE)
        for name in names:
            state = self._state(name)
            allowed = () if self._seal is None else self._seal.files.get(name, ())
            if state is None or not allowed:
                continue
            size = check = 0
            with suppress(FileNotFoundError), (self._folder / name).open("rb", buffering=0) as stream:
                while count := stream.readinto(buffer):
                    size, check = size + count, zlib.crc32(memoryview(buffer)[:count], check)
                    yield
            found: Digest = size, check
            if found not in allowed and state_of(self._folder / name) == state:
                self._refuse(name, state)

    def keep(self) -> None:
        """Note what was found, so that the next process need not read it again."""
        if not self._news:
            return
        files = self._seal.files if self._seal is not None else {}
        self._sound = {name: state for name, state in self._sound.items() if name in files}
        self._unsound = {name: state for name, state in self._unsound.items() if name in files}
        self._news = False
        with suppress(OSError):  # on a disk that cannot be written the files are read every time
            write_atomic(self._kept, json.dumps({"files": self._sound}), durable=False)


def _read_checked(path: Path) -> dict[str, State]:
    try:
        files = parse_json(path.read_bytes())["files"]
        return {str(name): (int(a), int(b), int(c), int(d)) for name, (a, b, c, d) in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
