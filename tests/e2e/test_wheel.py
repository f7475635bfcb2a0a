"""The package as it is installed: built into a wheel, put into an empty environment, and asked from another folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "evidex"

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Installed:
    """An environment that holds evidex's wheel, and a folder outside the checkout to use it in."""

    wheel: Path
    bin: Path
    folder: Path

    def environment(self) -> dict[str, str]:
        """Nothing that leads back into the checkout or to what a user of this machine keeps."""
        kept = {name: value for name, value in os.environ.items() if name in ("LANG", "OMP_NUM_THREADS", "TMPDIR")}
        return {**kept, "PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.folder)}

    def run(self, program: str, *words: object) -> str:
        done = subprocess.run(
            [self.bin / program, *map(str, words)],
            capture_output=True, text=True, cwd=self.folder, env=self.environment(), timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


def _built(folder: Path) -> Path:
    """The wheel, built from a copy: a build beside the source would pack what an earlier one left there."""
    copy = folder / "source"
    leave = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", copy / "src", ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    # The pinned backend is in this environment; nothing is downloaded.
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index"]
    done = subprocess.run([*command, "-w", folder, copy], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("evidex-*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    wheel = _built(folder)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True, timeout=120)
    python = folder / "env" / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, wheel], check=True, timeout=300)
    # The dependencies are those of this environment; a path in a .pth file takes no editable install along.
    (packages,) = (folder / "env").glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (folder / "elsewhere").mkdir()
    return Installed(wheel, python.parent, folder / "elsewhere")


@pytest.fixture(scope="module")
def gallery(installed: Installed) -> Path:
    installed.run("evidex", "sample", "scenes", "--count", 31, "--size", 64)
    words = ("scenes", "--gallery", "gallery", "--workers", 1, "--no-calibrate", "--json")
    made = json.loads(installed.run("evidex", "index", *words))
    assert (made["added"], made["skipped"]) == (31, [])
    return installed.folder / "gallery"


@pytest.fixture
def address(installed: Installed, gallery: Path) -> Iterator[str]:
    command = [str(installed.bin / "evidex"), "serve", "--gallery", str(gallery), "--port", "0"]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=installed.folder, env=installed.environment()
    )
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        server.kill()  # asked to end, it would first finish compiling its kernels
        server.wait(60)


def test_every_file_of_the_package_is_in_the_wheel(installed: Installed) -> None:
    here = {
        f"evidex/{path.relative_to(PACKAGE)}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.name != ".gitignore"
    }
    assert {"evidex/degrade/lexicon.tsv", "evidex/models/compact.safetensors", "evidex/py.typed"} <= here
    assert "evidex/server/static/index.html" in here, "the page is not built; run make page"
    packed = {name for name in zipfile.ZipFile(installed.wheel).namelist() if not name.startswith("evidex-")}
    assert packed == here


def test_the_command_and_the_package_come_from_the_wheel(installed: Installed) -> None:
    assert "index" in installed.run("evidex", "--help")
    place = installed.run("python", "-c", "import evidex; print(evidex.__file__)").strip()
    assert Path(place).is_relative_to(installed.bin.parent)


def test_a_question_is_answered_with_the_model_that_comes_along(installed: Installed, gallery: Path) -> None:
    answer = json.loads(installed.run("evidex", "search", "many planes at an airport", "--gallery", gallery, "--json"))
    assert answer["verdict"] in ("answered", "refined", "abstained")
    assert len(answer["hits"]) == 10
    assert all(Path(hit["path"]).is_file() for hit in answer["hits"])


def test_texts_and_tables_that_come_along_are_read(installed: Installed) -> None:
    code = (
        "from evidex.degrade import Lexicon; from evidex.evaluation.absent import out_of_domain_queries as queries\n"
        "from evidex.evaluation.report.paper_rows import paper_rows\n"
        "print(len(Lexicon.load().entries), len(queries()), len(paper_rows()))"
    )
    assert all(int(count) > 50 for count in installed.run("python", "-c", code).split())


def test_a_plain_install_asks_for_nothing_that_only_training_or_speed_needs(installed: Installed) -> None:
    code = "from importlib.metadata import requires; print(*requires('evidex'), sep='\\n')"
    needs = [line for line in installed.run("python", "-c", code).splitlines() if "extra ==" not in line]
    names = {re.split(r"[^\w-]", line)[0].lower() for line in needs}
    assert {"onnxruntime", "pylance", "rasterio"} <= names
    assert not {"torch", "transformers", "tokenizers", "huggingface-hub", "matplotlib", "numba", "llvmlite"} & names


def test_the_container_asks_for_its_health_where_it_is_told(installed: Installed, address: str) -> None:
    recipe = (ROOT / "Dockerfile").read_text()
    (command,) = re.findall(r'CMD \["python", "-c", "(.*)"\]', recipe)
    asked = command.replace("http://127.0.0.1:8765/", address)
    assert asked != command
    for _ in range(120):  # until the model is loaded
        done = subprocess.run([installed.bin / "python", "-c", asked], capture_output=True, timeout=60)
        if done.returncode == 0:
            break
        time.sleep(0.5)
    assert done.returncode == 0
    nowhere = asked.replace("/ready", "/nothing-like-it")
    assert subprocess.run([installed.bin / "python", "-c", nowhere], capture_output=True, timeout=60).returncode == 1


def test_the_page_and_all_that_it_loads_are_served(address: str) -> None:
    page = httpx.get(address)
    assert page.status_code == 200
    parts = re.findall(r'(?:src|href)="([^"#]+\.(?:js|css))"', page.text)
    assert len(parts) >= 2
    for part in parts:
        assert httpx.get(f"{address.rstrip('/')}/{part.lstrip('./')}").status_code == 200, part
