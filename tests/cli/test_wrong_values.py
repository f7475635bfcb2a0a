"""A wrong value of an option is told with its name, the value and what would do."""

from __future__ import annotations

import pytest

from tests.cli.running import Runner


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("search --gallery g --top 0 river", "--top 0 is too small; give 1 or more"),
        ("search --gallery g --top many river", "--top many is no whole number"),
        ("search --gallery g --top 1.5 river", "--top 1.5 is no whole number"),
        ("search --gallery g --top= river", "--top '' is no whole number"),
        ("serve --gallery g --port 70000", "--port 70000 is too large; give at most 65535"),
        ("evaluate --dataset d --defer 0.1 --defer 1.5", "--defer 1.5 is too large; give at most 1"),
        ("evaluate --dataset d --defer half", "--defer half is no number"),
        ("evaluate --dataset d --defer nan", "--defer nan is no number"),
        ("evaluate --dataset d --defer-by margin", "--defer-by: 'margin' is not one of 'vacuity', 'belief'"),
    ],
)
def test_the_value_and_its_bounds_are_told(evidex: Runner, asked: str, said: str) -> None:
    verb = asked.split()[0]
    assert evidex(*asked.split()).complaint == f"evidex: error: {said}; see 'evidex {verb} --help'"


def test_what_is_no_wrong_value_keeps_its_words(evidex: Runner) -> None:
    assert evidex("search", "river").complaint.startswith("evidex: error: missing option '--gallery'")


def test_an_option_of_one_value_is_not_given_twice(evidex: Runner) -> None:
    said = "--glob is given 2 times and takes one value; give it once"
    done = evidex("search", "river", "--gallery", "g", "--glob", "a*", "--top", "3", "--glob=b*")
    assert done.complaint == f"evidex: error: {said}; see 'evidex search --help'"
    several = evidex("evaluate", "--dataset", "nowhere", "--defer", "0", "--defer", "0.1", "--noisy", "--noisy")
    assert "times" not in several.complaint
