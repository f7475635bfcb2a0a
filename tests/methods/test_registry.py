"""The table is the paper's: every method of Table I, each with a state that is true."""

import json
import subprocess
import sys
import typing

from evidex.config import LossConfig, MethodConfig
from evidex.evaluation.report.paper_rows import rows_of
from evidex.methods import METHODS
from evidex.methods.protocol import implementation
from evidex.methods.registry import OURS, TRAINABLE


def test_the_rows_are_those_of_table_one() -> None:
    printed = [row.method for row in rows_of("I") if row.dataset == "RSICD" and not row.method.startswith("ELC")]
    assert [method.title for method in METHODS.values()] == printed
    assert len(METHODS) == 17


def test_configurations_can_name_what_is_implemented_and_nothing_else() -> None:
    names = typing.get_args(typing.get_type_hints(MethodConfig)["name"])
    assert set(names) == {"", *OURS, *TRAINABLE}
    assert set(typing.get_args(typing.get_type_hints(LossConfig)["objective"])) <= set(names)
    for name in names[1:]:
        assert implementation(name) is not None


def test_a_row_that_is_quoted_says_what_was_looked_for() -> None:
    for method in METHODS.values():
        assert method.source
        assert "to do" not in method.source
        if method.state == "quoted":
            assert "read" in method.source or "looked for" in method.source, method.name


def test_the_command_prints_the_table_without_torch() -> None:
    script = (
        "import sys; from evidex.cli.app import main; sys.argv[1:] = ['methods', '--json']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)
    assert [row["name"] for row in rows] == list(METHODS)
    assert {row["state"] for row in rows} >= {"implemented", "quoted, not implemented"}
    galr = next(row for row in rows if row["name"] == "galr")
    assert galr["state"] == "implemented: trains where the objects of each picture are given"
    assert "objects.json" in galr["needs"]
    assert galr["table_1"]["RSICD"] == "113.78"
    assert all(set(row["table_1"]) == {"RSICD", "RSITMD"} for row in rows)
