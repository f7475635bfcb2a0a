"""A Ray cluster by its address: one that runs already, or one started here and ended with its last user."""

from __future__ import annotations

import os
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from evidex.errors import ClusterError, EvidexError, InputError, MissingPackageError

LOCAL = "local"
_AUTO = "auto"
_CLIENT = "ray://"
_SECONDS = 5.0
# Vectors are mapped from files and answers are small: only batches of rows pass through the store.
_STORE_BYTES = 256 * 2**20
# The opening of HTTP/2 and an empty SETTINGS frame; whoever speaks it answers with a SETTINGS frame of its own.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS = 4


class Cluster:
    """This process as a driver of the Ray cluster at ``address``; use it in a ``with`` block, or call `close`.

    ``address`` is ``local`` (a cluster on this machine, ended when the last connection is closed), ``auto`` (the one
    that runs here or that RAY_ADDRESS names), ``HOST:PORT`` or ``ray://HOST:PORT``. A process drives one cluster at a
    time: where it drives one already, that one is used, and what others started is never ended.
    """

    _lock = threading.Lock()
    _users = 0
    _ours = False

    def __init__(self, address: str, *, cpus: int | None = None, store_bytes: int = _STORE_BYTES) -> None:
        self.address = address
        self._open = False
        ray = _imported()
        with Cluster._lock:
            if not ray.is_initialized():
                _start(ray, address, _cores() if cpus is None else cpus, store_bytes)
                _tell_nothing(ray, True)
                Cluster._ours, Cluster._users = True, 0
            Cluster._users += 1
            self._open = True

    def close(self) -> None:
        """Let go of the cluster; the last to do so ends what this process started. Again: nothing happens."""
        with Cluster._lock:
            if not self._open:
                return
            self._open = False
            Cluster._users -= 1
            if Cluster._users == 0 and Cluster._ours:
                Cluster._ours = False
                _imported().shutdown()
                _tell_nothing(_imported(), False)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _imported() -> Any:
    # Read by Ray when it is imported, or by the processes that it starts: those would stand back behind all others.
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "RAY_worker_niceness"):
        os.environ.setdefault(name, "0")
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingPackageError("a cluster", "ray", extra="cluster") from None
    return ray


def _start(ray: Any, address: str, cpus: int, store_bytes: int) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == LOCAL:
        remedy = "look into its logs, or name one that runs"
        with warnings.catch_warnings(), _telling("a Ray cluster cannot be started here", remedy):
            # Ray's processes are other programs: nothing of Lance's goes on in them.
            warnings.filterwarnings("ignore", "lance is not fork-safe", UserWarning)
            # Whatever RAY_ADDRESS says: an explicit "local" starts one.
            ray.init(LOCAL, num_cpus=cpus, object_store_memory=store_bytes, include_dashboard=False, **quiet)
        return
    named = os.environ.get("RAY_ADDRESS") or _AUTO if address == _AUTO else address
    if named != _AUTO:
        _check_answers(named)
    if named.startswith(_CLIENT):
        _check_client()
    remedy = (
        "start one with 'ray start --head', join it from this machine with 'ray start --address HOST:PORT', or give "
        "--cluster local"
    )
    with _telling(f"no Ray cluster at '{address}'", remedy):
        ray.init(named, **quiet)


def _tell_nothing(ray: Any, quiet: bool) -> None:
    """Ray prints what it lost, in many lines, where commands print JSON; there is no other way to stop it."""
    ray._private.worker._worker_logs_enabled = not quiet


@contextmanager
def _telling(what: str, remedy: str) -> Iterator[None]:
    """Whatever Ray says of its start, in one line."""
    try:
        yield
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        cause = str(error).partition("\n")[0].partition(". ")[0][:300]
        raise ClusterError(f"{what} ({cause}); {remedy}") from None


def failure_of(error: Any, who: str) -> EvidexError:
    """What work on the cluster failed of (a RayTaskError), in one line."""
    cause = error.cause
    if isinstance(cause, EvidexError):
        cause.args = (f"{who}: {cause}",)
        return cause
    line = " ".join(str(cause).split())[:200]
    return ClusterError(f"{who} failed ({type(cause).__name__}: {line}); look into Ray's logs")


def _check_answers(address: str) -> None:
    """Ray itself tries for minutes where nobody answers, or somebody else does."""
    host, colon, port = address.removeprefix(_CLIENT).rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(
            f"'{address}' is no address of a Ray cluster; give local, auto, HOST:PORT (6379 as a rule) or ray://HOST:PORT"
        )
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS) as line:
            line.sendall(_GREETING)
            reply = line.recv(9)
    except OSError as error:
        raise ClusterError(
            f"the Ray cluster at '{address}' does not answer ({error}); is it running, and can this machine reach it?"
        ) from None
    if len(reply) < 4 or reply[3] != _SETTINGS:
        raise ClusterError(f"what answers at '{address}' is no Ray cluster; give the address that 'ray start' printed")


def _check_client() -> None:
    from importlib.util import find_spec

    if find_spec("grpc") is None:
        raise InputError("ray:// addresses need Ray's client, which is not installed; pip install 'ray[client]'")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
