"""The table of hits: it fits, never wraps, and leaves out what is empty."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evidex.cli.hit_table import Pictures, hit_lines
from evidex.cli.terminal import Terminal, columns
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
    return hit_lines(Terminal(io.StringIO(), width), answer)


def test_columns_that_are_empty_for_all_are_left_out() -> None:
    plain = _lines(_answer(_hit(1, "a.png"), _hit(2, "b.png")), 80)
    assert plain[0].split() == ["score", "file"]
    with_caption = _lines(_answer(_hit(1, "a.png"), _hit(2, "b.png", caption="a lake")), 80)
    assert with_caption[0].split() == ["score", "file", "caption"]
    with_place = _lines(_answer(_hit(1, "a.png", footprint=_RING), _hit(2, "b.png")), 80)
    assert "place (lat, lon)" in with_place[0]
    assert "-45.5000, -119.5000" in with_place[1]


def test_hits_that_the_answer_does_not_stand_on_are_dim() -> None:
    answer = _answer(_hit(1, "a.png", 0.5), _hit(2, "b.png", 0.3), _hit(3, "c.png", 0.04))
    dim = [line for line in hit_lines(Terminal(io.StringIO(), 80, styles=True), answer) if "\x1b[2m" in line]
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
    assert max(columns(line) for line in lines) <= width
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


def test_pictures_stand_between_score_and_file_and_move_nothing() -> None:
    answer = _answer(_hit(1, "a.png"), _hit(2, "b.png"))
    drawn = Pictures(lambda hit: ["####"] if hit.rank == 1 else ["####", "%%%%"], 4)
    lines = hit_lines(Terminal(io.StringIO(), 80), answer, drawn)
    assert [line.split() for line in lines] == [
        ["score", "file"], ["1", "0.500", "####", "a.png"], ["2", "0.500", "####", "b.png"], ["%%%%"],
    ]  # fmt: skip
    assert len({line.find("####") for line in lines[1:3]} | {lines[3].find("%%%%")}) == 1
    assert lines[0].find("file") == lines[1].find("a.png")
