"""What the checkout promises about itself: package data that exists, records without gaps, tests that mirror data/."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "evidex"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PATTERNS = PROJECT["tool"]["setuptools"]["package-data"]["evidex"]


@pytest.mark.parametrize("pattern", [pattern for pattern in PATTERNS if not pattern.startswith("server/static")])
def test_every_pattern_of_package_data_matches_a_file(pattern: str) -> None:
    assert list(PACKAGE.glob(pattern))


def test_every_file_that_is_no_code_is_package_data() -> None:
    packed = {path for pattern in PATTERNS for path in PACKAGE.glob(pattern)}
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    others = {path for path in files if path.suffix != ".py"}
    assert {path for path in others - packed if path.name != ".gitignore"} == set()


def test_the_records_of_decisions_are_numbered_without_gaps() -> None:
    files = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [int(path.name[:4]) for path in files] == list(range(1, len(files) + 1))
    for path in files:
        title = path.read_text().splitlines()[0]
        assert re.match(rf"# {int(path.name[:4])}\. \S", title), title


@pytest.mark.parametrize("module", sorted(path.stem for path in (PACKAGE / "data").glob("[!_]*.py")))
def test_every_module_of_data_has_tests_of_its_name(module: str) -> None:
    assert (ROOT / "tests" / "data" / f"test_{module}.py").is_file()


def test_what_builds_the_package_is_what_the_tests_build_it_with() -> None:
    (backend,) = PROJECT["build-system"]["requires"]
    assert backend in PROJECT["project"]["optional-dependencies"]["dev"]
    assert backend in (ROOT / "constraints.txt").read_text().split()
