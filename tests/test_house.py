"""What the checkout keeps to: sizes, package data that exists, records without gaps, tests that mirror data/."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "evidex"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PATTERNS = PROJECT["tool"]["setuptools"]["package-data"]["evidex"]


LONGEST_MODULE, LONGEST_FUNCTION, MOST_PARAMETERS = 350, 60, 8
COMMANDS = "cli/"  # a command has a parameter for each option it knows
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _functions() -> dict[str, tuple[Function, str]]:
    """All functions of the package by place and name, with the module they are in."""
    return dict(_read_functions())


def _read_functions() -> Iterator[tuple[str, tuple[Function, str]]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, Function):
                yield f"{module}:{node.lineno} {node.name}", (node, module)


def _lines(function: Function) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def _parameters(function: Function) -> int:
    """Those that a caller gives: not the object that a method is of."""
    given = function.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    starred = (given.vararg is not None) + (given.kwarg is not None)
    return len(names) + starred - (names[:1] in (["self"], ["cls"]))


def test_no_module_is_long() -> None:
    modules = [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_MODULE} == {}


def test_no_function_is_long() -> None:
    lengths = {name: _lines(function) for name, (function, _) in _functions().items()}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION} == {}


def test_no_function_has_many_parameters_but_commands() -> None:
    counts = {
        name: _parameters(function)
        for name, (function, module) in _functions().items()
        if not module.startswith(COMMANDS)
    }
    assert {name: count for name, count in counts.items() if count > MOST_PARAMETERS} == {}


@pytest.mark.parametrize("pattern", [pattern for pattern in PATTERNS if not pattern.startswith("server/static")])
def test_every_pattern_of_package_data_matches_a_file(pattern: str) -> None:
    assert list(PACKAGE.glob(pattern))


def test_every_file_that_is_no_code_is_package_data() -> None:
    packed = {path for pattern in PATTERNS for path in PACKAGE.glob(pattern)}
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    others = {path for path in files if path.suffix != ".py"}
    assert {path for path in others - packed if path.name != ".gitignore"} == set()


def test_the_records_of_decisions_are_numbered_without_gaps() -> None:
    files = sorted((ROOT / "docs" / "adr").glob("0*.md"))
    assert [int(path.name[:4]) for path in files] == list(range(1, len(files) + 1))
    for path in files:
        title = path.read_text().splitlines()[0]
        assert re.match(rf"# {int(path.name[:4])}\. \S", title), title
    listed = (ROOT / "docs" / "adr" / "README.md").read_text()
    assert [f"- [{path.read_text().splitlines()[0][2:]}]({path.name})" for path in files] == listed.splitlines()[4:]


@pytest.mark.parametrize("module", sorted(path.stem for path in (PACKAGE / "data").glob("[!_]*.py")))
def test_every_module_of_data_has_tests_of_its_name(module: str) -> None:
    assert (ROOT / "tests" / "data" / f"test_{module}.py").is_file()


def test_what_builds_the_package_is_what_the_tests_build_it_with() -> None:
    (backend,) = PROJECT["build-system"]["requires"]
    assert backend in PROJECT["project"]["optional-dependencies"]["dev"]
    assert backend in (ROOT / "constraints.txt").read_text().split()
