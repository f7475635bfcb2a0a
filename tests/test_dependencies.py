"""What the package imports is what it says it needs, not what its needs happen to bring."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]


def _imported(tree: ast.AST) -> set[str]:
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {module.split(".")[0] for module in modules}


def test_every_package_that_is_imported_is_named_as_a_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    lines = [*project["dependencies"], *optional["train"], *optional["fast"], *optional["cluster"], project["name"]]
    named = {_plain(re.split(r"[^\w.-]", line)[0]) for line in lines}
    files = (ROOT / "src").rglob("*.py")
    modules = set().union(*(_imported(ast.parse(path.read_text(encoding="utf-8"))) for path in files))
    providers = packages_distributions()
    missing = [
        module
        for module in modules - sys.stdlib_module_names
        if not named & {_plain(name) for name in providers.get(module, [module])}
    ]
    assert sorted(missing) == []


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
