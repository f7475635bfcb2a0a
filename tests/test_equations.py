"""The table of equations is whole: each of the paper's has a function and a test that are there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
_EQUATIONS = 26
_ROW = re.compile(r"^\| (\d+) \| [^|]+ \| `([\w.]+)` \| `(tests/[\w/]+\.py)(?:::(\w+))?` \|$", re.MULTILINE)


def test_every_numbered_equation_has_its_function_and_its_test() -> None:
    rows = _ROW.findall((ROOT / "docs" / "method.md").read_text(encoding="utf-8"))
    assert [int(number) for number, *_ in rows] == list(range(1, _EQUATIONS + 1))
    for number, function, file, test in rows:
        module, _, name = function.rpartition(".")
        assert hasattr(importlib.import_module(f"evidex.{module}"), name), f"Eq. {number}: no {function}"
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not test or f"def {test}(" in text, f"Eq. {number}: {file} has no {test}"
