"""A cluster is started here or found by its address; where that fails, one line says why and what to do."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from evidex.cluster.connection import Cluster
from evidex.errors import ClusterError, InputError, MissingPackageError


@contextmanager
def _listening(reply: bytes) -> Iterator[str]:
    """Somebody who is not Ray."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            line, _ = server.accept()
            with line:
                line.sendall(reply)
                line.recv(100)

        threading.Thread(target=answer, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError, match=r"needs ray, .* pip install 'evidex\[cluster\]'"):
        Cluster("local")


def test_an_address_where_nobody_is_fails_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ClusterError, match=rf"'127.0.0.1:{port}' does not answer \(.*refused"):
        Cluster(f"127.0.0.1:{port}")


def test_an_address_where_somebody_else_is_fails_too() -> None:
    with _listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address, pytest.raises(ClusterError, match="is no Ray"):
        Cluster(address)


@pytest.mark.parametrize("address", ["", "here", "host:", "host:99999", ":6379"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match=r"is no address of a Ray cluster; give local, auto, HOST:PORT"):
        Cluster(address)


def test_auto_is_what_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(ClusterError, match=r"'127\.0\.0\.1:1' does not answer"):
        Cluster("auto")


def test_a_cluster_that_cannot_be_started_here_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")

    def init(*_: object, **__: object) -> None:
        raise OSError("AF_UNIX path length cannot exceed 107 bytes: here\nand more. And more")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(ClusterError, match=r"^a Ray cluster cannot be started here \(AF_UNIX .*: here\); look"):
        Cluster("local")


@pytest.mark.slow
def test_a_local_cluster_ends_with_its_last_user() -> None:
    import ray

    first = Cluster("local", cpus=1)
    with Cluster("local"):
        assert ray.get(ray.put(1)) == 1
    assert ray.is_initialized()
    first.close()
    assert not ray.is_initialized()
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
    try:
        Cluster("auto").close()
        assert ray.is_initialized(), "what others started goes on"
    finally:
        ray.shutdown()
