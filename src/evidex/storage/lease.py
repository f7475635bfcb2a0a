"""One writer at a time for a gallery in an object store, which knows no locks.

Who writes is one entry in the configuration of a table of its own, changed by Lance's commits: of two that change the
same version one is refused. The holder gives a sign of life every few seconds; one whose sign has not
changed for a while, or whose process on this very machine is gone, has lost its place. A writer asks before each change
whether it still has its place (`check_hold`) and ends if not; where it loses it between that and the commit, Lance's
commits still keep every row.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from evidex.documents import parse_json
from evidex.errors import EvidexError, GalleryError
from evidex.storage.objects import ObjectPlace, lance_place

WRITER = ".writer.lance"
SIGN = ".writer"
_HOLDER = "holder"
_SIGN_SECONDS = 4.0
_SILENCE_SECONDS = 40.0
_LOOK_SECONDS = 0.5
_KEPT_VERSIONS = 64
_REFUSALS = 100
_LOG = logging.getLogger("evidex.gallery")

_turns: dict[ObjectPlace, threading.RLock] = {}
_held: dict[ObjectPlace, str] = {}
"""What this process holds, and as whom; the thread that does may hold it again."""


@contextmanager
def lease(place: ObjectPlace, *, wait: bool) -> Iterator[None]:
    """Hold ``place`` against other writers; where one is at work wait for it, or raise GalleryError."""
    turn = _turns.setdefault(place, threading.RLock())
    if not turn.acquire(blocking=wait):
        raise _taken(place)
    try:
        if place in _held:
            check_hold(place)
            yield
        else:
            with _leased(place, wait):
                yield
    finally:
        turn.release()


def check_hold(place: ObjectPlace) -> None:
    """GalleryError where this process holds ``place`` no longer, though it did and goes on as if."""
    token = _held.get(place)
    if token is not None and _holder(place) != token:
        raise GalleryError(
            f"'{place}' was taken over by another process, as this one gave no sign for {_SILENCE_SECONDS:.0f} s; run "
            "this again, what is written stays"
        )


@contextmanager
def _leased(place: ObjectPlace, wait: bool) -> Iterator[None]:
    token = _acquire(place, wait)
    _held[place] = token
    over = threading.Event()
    signs = threading.Thread(target=_give_signs, args=(place, token, over), daemon=True)
    signs.start()
    try:
        yield
    finally:
        over.set()
        signs.join()
        del _held[place]
        with suppress(EvidexError, OSError, ValueError):  # then it lapses by itself
            _release(place, token)


def _acquire(place: ObjectPlace, wait: bool) -> str:
    mine = json.dumps({"token": uuid.uuid4().hex, "host": _host(), "pid": os.getpid()})
    seen: tuple[Any, float] = None, time.monotonic()
    told, refusals = False, 0
    while refusals < _REFUSALS:
        table = _table(place)
        holder = str(table.config().get(_HOLDER, ""))
        now = holder, _sign(place)
        if now != seen[0]:
            seen = now, time.monotonic()
        silent = time.monotonic() - seen[1] > _SILENCE_SECONDS
        if not holder or silent or _is_gone(holder):
            if _changed(place, table, mine):
                return mine
            refusals += 1
            continue
        if not wait:
            raise _taken(place)
        if not told:
            _LOG.warning("'%s' is being written by another process; waiting for it to end", place)
            told = True
        time.sleep(_LOOK_SECONDS)
    raise GalleryError(
        f"'{place}' cannot be held for writing, as {_REFUSALS} changes in a row were refused; run this again, or look "
        "who else writes there"
    )


def _taken(place: ObjectPlace) -> GalleryError:
    return GalleryError(f"'{place}' is being indexed by another process; wait for it to end, then run this again")


def _release(place: ObjectPlace, token: str) -> None:
    if not (place / WRITER).is_dir():
        (place / SIGN).unlink(missing_ok=True)  # all of the gallery was removed
        return
    table = _table(place)
    if table.config().get(_HOLDER) == token:
        _changed(place, table, "")
    if int(table.version) > _KEPT_VERSIONS:
        table.cleanup_old_versions(older_than=timedelta(hours=1))


def _changed(place: ObjectPlace, table: Any, holder: str) -> bool:
    """Whether this very version of the table could be given another holder."""
    try:
        table.update_config({_HOLDER: holder})
    except OSError as error:
        if (trouble := place.trouble(error)) is not None:
            raise trouble from None
        return False
    return True


def _table(place: ObjectPlace) -> Any:
    import lance
    import pyarrow as pa

    where = lance_place(place / WRITER)
    try:
        if _is_made(place):
            return lance.dataset(**where)
        # Fails where another process has made it meanwhile.
        options = {"storage_options": where["storage_options"], "max_retries": 0}
        empty = lance.LanceOperation.Overwrite(pa.schema([pa.field("nothing", pa.int8())]), [])
        with suppress(OSError):
            lance.LanceDataset.commit(where["uri"], empty, **options)
        return lance.dataset(**where)
    except (OSError, ValueError) as error:
        if isinstance(error, EvidexError):
            raise
        raise place.trouble(error) or GalleryError(f"'{place}' cannot be held for writing ({error})") from None


def _is_made(place: ObjectPlace) -> bool:
    return any((place / WRITER / "_versions").glob("*.manifest"))


def _holder(place: ObjectPlace) -> str | None:
    """Who holds it by now; None where all of the gallery was removed."""
    return str(_table(place).config().get(_HOLDER, "")) if _is_made(place) else None


def _give_signs(place: ObjectPlace, token: str, over: threading.Event) -> None:
    count = 0
    while not over.wait(_SIGN_SECONDS if count else 0):
        count += 1
        with suppress(EvidexError, OSError):  # the next one may come through
            if _holder(place) != token:
                return  # a sign of ours would be taken for one of who holds it now
            (place / SIGN).write_bytes(json.dumps({"holder": token, "count": count}).encode())


def _sign(place: ObjectPlace) -> bytes | None:
    try:
        return (place / SIGN).read_bytes()
    except FileNotFoundError:
        return None


def _is_gone(holder: str) -> bool:
    """Whether the holder is a process of this machine that has ended."""
    try:
        said = parse_json(holder)
        host, pid = str(said["host"]), int(said["pid"])
    except (ValueError, KeyError, TypeError):
        return True
    if host != _host() or pid == os.getpid():
        return host == _host()  # our own, of an earlier hold whose end was not heard
    return not Path(f"/proc/{pid}").exists() if Path("/proc/self").exists() else False


def _host() -> str:
    """This machine since it was last started; in a container, this container."""
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {started} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 (a link to no path)
    except OSError:
        return f"{socket.gethostname()} {uuid.getnode()}"
