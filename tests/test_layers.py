"""Imports point down only, in the order that docs/architecture.md states: folder by folder, lazy imports too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "evidex"


@cache
def _layers() -> dict[str, tuple[int, int]]:
    """Each name of the stated order: how far down it is, and which of the groups there it belongs to."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    block = re.search(r"Imports point down only.*?```\n(.*?)```", page, re.S)
    assert block is not None
    layers = {}
    for depth, line in enumerate(re.sub(r"\n +", " ", block[1]).splitlines()):
        for number, group in enumerate(line.split(",")):
            for name in group.split("+"):
                assert name.strip() not in layers, f"{name.strip()} is stated twice"
                layers[name.strip()] = depth, number
    return layers


@cache
def _modules() -> frozenset[str]:
    """All modules as paths without a suffix, such as ``losses/edl`` and ``losses/__init__``."""
    return frozenset(str(path.relative_to(PACKAGE).with_suffix("")) for path in PACKAGE.rglob("*.py"))


def _place(module: str) -> tuple[int, int]:
    """Where a module stands: by its own name if that is stated, else by the nearest folder's."""
    layers = _layers()
    name = module
    while name not in layers:
        assert "/" in name, f"docs/architecture.md does not say where {module} stands"
        name = name.rpartition("/")[0]
    return layers[name]


def _module(dotted: str) -> str | None:
    path = dotted.removeprefix("evidex").removeprefix(".").replace(".", "/")
    names = (path, f"{path}/__init__".lstrip("/"))
    return next((name for name in names if name in _modules()), None)


def _imports(module: str) -> Iterator[tuple[str, int]]:
    """The modules of evidex that ``module`` imports anywhere in its file, with the line."""
    for node in ast.walk(ast.parse((PACKAGE / f"{module}.py").read_text())):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports relatively"
            named = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for dotted in named:
            if dotted.split(".")[0] == "evidex":
                found = _module(dotted) or _module(dotted.rpartition(".")[0])
                assert found is not None, f"{module}:{node.lineno} imports {dotted}, which is not there"
                yield found, node.lineno


def _points_up(importer: str, imported: str) -> bool:
    above, below = _place(importer), _place(imported)
    return above != below and above[0] >= below[0]


def test_no_import_points_up() -> None:
    upward = [
        f"{module}.py:{line} imports {imported}"
        for module in sorted(_modules())
        for imported, line in _imports(module)
        if _points_up(module, imported)
    ]
    assert upward == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not within a layer either, and not by imports that wait until they are used."""
    remaining = {module: {found for found, _ in _imports(module)} - {module} for module in _modules()}
    while free := {module for module, imported in remaining.items() if not imported & remaining.keys()}:
        remaining = {module: imported for module, imported in remaining.items() if module not in free}
    # What only imports from a circle is none of it.
    while loose := remaining.keys() - set().union(*remaining.values()):
        remaining = {module: imported for module, imported in remaining.items() if module not in loose}
    assert sorted(remaining) == []


def test_everything_that_is_stated_exists() -> None:
    for name in _layers():
        assert name in _modules() or (PACKAGE / name / "__init__.py").is_file(), name


def test_an_import_that_points_up_or_sideways_is_seen() -> None:
    assert _points_up("losses/edl", "training/step")
    assert _points_up("data/images", "encoders/model")
    assert _points_up("retrieval/scan/scan", "retrieval/gallery")
    assert _points_up("encoders/clip/encoder", "encoders/model")
    assert _points_up("losses/edl", "degrade/image")  # side by side
    assert not _points_up("training/step", "losses/edl")
    assert not _points_up("retrieval/gallery", "retrieval/certainty/calibrating")  # stated as one
    assert _points_up("retrieval/gallery", "retrieval/verifying/verify")
    assert _points_up("retrieval/indexing/run", "retrieval/gallery")
    assert not _points_up("losses/edl", "losses/dirichlet")
