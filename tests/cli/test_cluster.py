"""Commands on a cluster that is not there, or without Ray: one line, exit code 2, and nothing is made."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from tests.cli.running import Runner
from tests.retrieval.archive import arbitrary_gallery, tiny_model, write_images


@pytest.fixture
def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture(params=["index", "reindex", "search", "serve"])
def command(request: pytest.FixtureRequest, tmp_path: Path) -> list[object]:
    gallery, new = tmp_path / "gallery", tmp_path / "new"
    arbitrary_gallery(gallery, tiny_model(), 5)
    write_images(tmp_path / "scenes", 1)
    commands: dict[str, list[object]] = {
        "index": [tmp_path / "scenes", "--gallery", new],
        "reindex": ["--gallery", gallery, "--to", new, "--model", "compact"],
        "search": ["a lake", "--gallery", gallery],
        "serve": ["--gallery", gallery, "--port", "0"],
    }
    return [request.param, *commands[request.param]]


def test_a_cluster_that_does_not_answer(command: list[object], nobody: str, evidex: Runner, tmp_path: Path) -> None:
    line = evidex(*command, "--cluster", nobody).complaint
    assert f"the Ray cluster at '{nobody}' does not answer" in line
    assert not (tmp_path / "new").exists()


def test_without_ray(command: list[object], evidex: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    line = evidex(*command, "--cluster", "local").complaint
    assert "a cluster needs ray, which is not installed; pip install 'evidex[cluster]'" in line
    assert not (tmp_path / "new").exists()


def test_shards_of_no_cluster_are_refused(evidex: Runner, tmp_path: Path) -> None:
    arbitrary_gallery(tmp_path / "gallery", tiny_model(), 5)
    for option in ("--shards", "--replicas"):
        line = evidex("serve", "--gallery", tmp_path / "gallery", option, "2").complaint
        assert "name it with --cluster" in line
