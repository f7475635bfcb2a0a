"""The table of hits: it fits, never wraps, and leaves out what is empty."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from evidex.cli.hit_table import cut_left, hit_table
from evidex.data.footprints import Footprint, Window
from evidex.retrieval.answers import Answer, Timings
from evidex.retrieval.hits import Hit, Refinement
from evidex.retrieval.standing import Standing

_RING = Footprint(((-120.0, -45.0), (-120.0, -46.0), (-119.0, -46.0), (-119.0, -45.0)))


def _hit(
    rank: int, path: str, score: float = 0.5, caption: str | None = None, footprint: Footprint | None = None
) -> Hit:
    return Hit(rank, f"id{rank}", score, "image", path, Path(path), caption, 8, 8, None, footprint, None, None)


def _answer(*hits: Hit, entered: tuple[str, ...] = ()) -> Answer:
    change = Refinement(4, entered, (), True, 0.5) if entered else None
    standing = Standing(refined=bool(entered), percentile=0.2)
    return Answer("q", hits, standing, 0.1, 10, None, change, Timings(1, 1, 1, 1))


def _lines(answer: Answer, width: int) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width).print(hit_table(answer, width))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_columns_that_are_empty_for_all_are_left_out() -> None:
    plain = _lines(_answer(_hit(1, "a.png"), _hit(2, "b.png")), 80)
    assert plain[0].split() == ["score", "file"]
    with_caption = _lines(_answer(_hit(1, "a.png"), _hit(2, "b.png", caption="a lake")), 80)
    assert with_caption[0].split() == ["score", "file", "caption"]
    with_place = _lines(_answer(_hit(1, "a.png", footprint=_RING), _hit(2, "b.png")), 80)
    assert "place (lat, lon)" in with_place[0]
    assert "-45.5000, -119.5000" in with_place[1]


def test_hits_that_the_answer_does_not_stand_on_are_dim() -> None:
    stream = io.StringIO()
    answer = _answer(_hit(1, "a.png", 0.5), _hit(2, "b.png", 0.3), _hit(3, "c.png", 0.04))
    Console(file=stream, width=80, force_terminal=True).print(hit_table(answer, 80))
    dim = [line for line in stream.getvalue().splitlines() if "\x1b[2m" in line]
    assert len(dim) == 1
    assert "0.040" in dim[0]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("placed", [False, True])
def test_every_hit_is_one_line_that_fits(width: int, placed: bool) -> None:
    rng = np.random.default_rng(width)
    hits = []
    for rank in range(1, 13):
        path = "/archive/" + "/".join("x" * int(n) for n in rng.integers(1, 40, 4)) + f"/scene_{rank}.tif"
        caption = "many planes near a terminal " * int(rng.integers(0, 5)) or None
        hits.append(_hit(rank, path, float(rng.uniform(-1, 1)), caption, _RING if placed and rank % 2 else None))
    lines = _lines(_answer(*hits, entered=("id3",)), width)
    assert len(lines) == 1 + len(hits)
    assert max(cell_len(line) for line in lines) <= width
    for hit, line in zip(hits, lines[1:], strict=True):
        shown, score, file = line.split()[:3]
        assert shown == f"{hit.rank}{'+' if hit.rank == 3 else ''}"
        assert score == f"{hit.score:.3f}"
        # The end of the path is what tells files apart; the narrowest terminal has room for little of it.
        assert file.endswith("tif")
        assert hit.path.endswith(file.lstrip("…"))


def test_the_place_in_a_scene_is_kept() -> None:
    hit = replace(_hit(1, "/a" * 60 + "/scene.tif"), window=Window(512, 1024, 512, 512))
    (_, line) = _lines(_answer(hit), 60)
    assert line.endswith("/scene.tif @ 512,1024")


def test_markup_in_names_is_text() -> None:
    (_, line) = _lines(_answer(_hit(1, "a[red]b.png", caption="[bold]x")), 80)
    assert "a[red]b.png" in line
    assert "[bold]x" in line


def test_scores_beyond_one_are_rounding() -> None:
    assert _hit(1, "a", 1.0000004).json()["score"] == 1.0
    assert _hit(1, "a", -1.0004).shown_score == -1.0
    assert _hit(1, "a", 0.25).json()["score"] == 0.25
    (_, line) = _lines(_answer(_hit(1, "a.png", 1.0007)), 80)
    assert line.split()[1] == "1.000"


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [("abc", 3, "abc"), ("abcd", 3, "…cd"), ("絵画.png", 6, "….png"), ("絵画.png", 7, "…画.png"), ("ab", 1, "…")],
)
def test_cutting_from_the_left(text: str, width: int, expected: str) -> None:
    assert cut_left(text, width) == expected
