"""The examples of docs/serving.md, run against a real server; and the command itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from evidex.retrieval.gallery import Gallery
from evidex.server.settings import Settings
from tests.retrieval.archive import picture
from tests.server.places import live

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(bash|python)\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def address(gallery: Gallery) -> Iterator[str]:
    with live(Settings(gallery.path, port=0, token=None)) as found:
        yield found


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("command", [block for kind, block in BLOCKS if kind == "bash"])
def test_the_curl_examples_work(address: str, command: str, tmp_path: Path) -> None:
    picture(1).save(tmp_path / "query.jpg")
    environment = {**os.environ, "EVIDEX": address, "EVIDEX_TOKEN": "unused", "no_proxy": "*"}
    found = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, timeout=30, check=True
    )
    answer = json.loads(found.stdout)
    assert "error" not in answer
    if "batch" in command:
        assert [one["query"] for one in answer["answers"]] == ["ships in a harbour", "a desert with dunes"]
    elif "search" in command:
        assert answer["hits"]


@pytest.mark.parametrize("code", [block for kind, block in BLOCKS if kind == "python"])
def test_the_python_examples_work(address: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"EVIDEX": address}
    exec(compile(code, "docs/serving.md", "exec"), names)
    assert len(names["alike"]) == 4  # type: ignore[arg-type]
    assert bytes(names["picture"])[:2] == b"\xff\xd8"  # type: ignore[call-overload]
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_the_options_in_the_docs_exist() -> None:
    source = (Path(__file__).resolve().parents[2] / "src" / "evidex" / "cli" / "serve.py").read_text(encoding="utf-8")
    served = TEXT.partition("## Size and start")[0]  # after which other commands are measured
    own = "\n".join(line for line in served.splitlines() if not line.startswith("docker"))
    for option in set(re.findall(r"--([a-z][a-z-]+)", own)) - {"open"}:
        assert f"    {option.replace('-', '_')}: Annotated" in source, option


def test_the_command_serves_announces_and_ends_well(gallery: Gallery) -> None:
    process = _serving("--gallery", str(gallery.path), "--port", "0")
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found, line
        with httpx.Client(base_url=found[0], timeout=30) as client:
            assert client.get("/health").json() == {"status": "alive"}
            assert len(client.post("/search", json={"text": "a river", "top": 2}).json()["hits"]) == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) in (0, -signal.SIGTERM)
    finally:
        process.kill()
        process.communicate()


def test_a_request_under_way_is_answered_before_the_end(gallery: Gallery) -> None:
    process = _serving("--gallery", str(gallery.path), "--port", "0", "--batch-wait", "1500")
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found
        with httpx.Client(base_url=found[0], timeout=30) as client:
            while client.get("/ready").status_code != 200:
                time.sleep(0.05)
        curl = subprocess.Popen(
            [sys.executable, "-c", _ASK, f"{found[0]}search"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert curl.stdout is not None
        assert curl.stdout.readline() == "asking\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        out, error = curl.communicate(timeout=30)
        assert out == "200\n", error
    finally:
        process.kill()
        process.communicate()


_ASK = """
import sys, httpx
print("asking", flush=True)
print(httpx.post(sys.argv[1], json={"text": "a river"}, timeout=30).status_code)
"""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--gallery", "nowhere"), "is no gallery"),
        (("--gallery", "GALLERY", "--host", "203.0.113.7"), "cannot be used"),
    ],
)
def test_errors_of_the_command_are_one_line(gallery: Gallery, options: tuple[str, ...], words: str) -> None:
    chosen = [str(gallery.path) if option == "GALLERY" else option for option in options]
    process = _serving(*chosen)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 2
    assert out == ""
    assert words in error
    assert error.count("\n") == 1


_SERVE = """
import sys, typer
from evidex.cli import serve
from evidex.errors import EvidexError, outcome
try:
    typer.run(serve.command)
except EvidexError as error:
    sys.stderr.write(f"evidex: error: {error}\\n")
    sys.exit(outcome(error).exit_code)
"""


def _serving(*options: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
    environment.pop("EVIDEX_TOKEN", None)
    return subprocess.Popen(
        [sys.executable, "-c", _SERVE, *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
