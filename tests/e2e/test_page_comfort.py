"""The page as it is used: keys that work at once, words that stay in their boxes, nothing that covers something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidex.retrieval.gallery import Gallery
from evidex.server.settings import Settings
from tests.e2e.browsing import DESK, MARKS, PHONE, searched
from tests.retrieval.archive import tiny_model
from tests.server.places import live, make_gallery, texts_by_verdict

pytestmark = MARKS
LONG = "w" * 150


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Three rows like 'a lake', one without a caption, one with a word without end; all others far from it."""
    folder: Path = tmp_path_factory.mktemp("odd")
    whole = make_gallery(folder, calibrated=False)
    model = tiny_model()
    lake = model.encode_texts(["a lake"])[0]
    rows = whole.rows(range(12))
    rows[0] = replace(rows[0], captions=())
    rows[1] = replace(rows[1], captions=(f"a {LONG} of water",))
    away = np.random.default_rng(0).standard_normal((12, model.dim)).astype(np.float32)
    away -= (away @ lake)[:, None] * lake
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    cosines = np.array([0.9, 0.85, 0.8, *np.linspace(0.2, 0.04, 9)], np.float32)[:, None]
    made = Gallery.create(folder / "made", model)
    made.append(rows, cosines * lake + np.sqrt(1 - cosines**2) * away)
    with live(Settings(made.path, port=0)) as address:
        yield address


def _focused(page: Any) -> str:
    found: str = page.evaluate("document.activeElement.dataset.id ?? document.activeElement.innerText")
    return found


@pytest.mark.parametrize("key", ["ArrowRight", "ArrowDown"])
def test_the_arrows_go_to_the_hits_at_once_however_the_search_began(
    visit: Callable[..., Any], address: str, key: str
) -> None:
    page = visit(address)
    searched(page, "a river")
    first = page.locator(".hit").first.get_attribute("data-id")
    page.keyboard.press(key)
    assert _focused(page) == first
    page.reload()
    page.locator(".hit").first.wait_for()
    page.keyboard.press(key)
    assert _focused(page) == first
    page.locator(".brand").click()
    page.get_by_role("button", name="ships in a harbour").click()
    page.locator(".hit").first.wait_for()
    page.keyboard.press(key)
    assert _focused(page) == page.locator(".hit").first.get_attribute("data-id")
    page.get_by_label("What to look for").fill("a lake")
    page.keyboard.press(key)
    assert page.get_by_label("What to look for").evaluate("field => field === document.activeElement")


def test_the_help_begins_with_what_closes_it(visit: Callable[..., Any], address: str) -> None:
    page = visit(address)
    page.locator(".welcome").wait_for()
    for by_key in (True, False):
        if by_key:
            page.keyboard.press("?")
        else:
            page.get_by_role("button", name="Keys and help").click()
        assert _focused(page) == "Close"
        page.keyboard.press("Enter")
        assert page.get_by_role("dialog", name="Keys and help").is_hidden()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_a_word_without_end_stays_in_its_box(visit: Callable[..., Any], odd: str, size: dict[str, int]) -> None:
    page = visit(f"{odd}/?q={LONG}&top=12&after={LONG[:30]}", viewport=size)
    page.get_by_role("alert").get_by_text("is no time").wait_for()
    boxes = ["#notice p"]
    assert _spilling(page, boxes) == []
    page.goto(f"{odd}/?q={LONG}&top=12&bbox={LONG}")
    page.locator(".hit").first.wait_for()
    page.locator(f".hit:has-text('{LONG[:20]}')").click()
    page.locator("#details .neighbours").wait_for()
    boxes += [".verdict", ".verdict p", ".hit", ".hit .name", "#details", "#details h2", "#details .captions li"]
    assert _spilling(page, boxes) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def _spilling(page: Any, boxes: list[str]) -> list[str]:
    found: list[str] = page.evaluate(
        """boxes => boxes.flatMap((box) => [...document.querySelectorAll(box)]
            .filter((one) => one.scrollWidth > one.clientWidth + 1
                || one.getBoundingClientRect().right > innerWidth + 1)
            .map((one) => `${box}: ${one.scrollWidth} in ${one.clientWidth}`))""",
        boxes,
    )
    return found


def test_names_of_files_keep_their_case_as_titles_and_captions_begin_like_sentences(
    visit: Callable[..., Any], odd: str
) -> None:
    page = visit(f"{odd}/?q=a+lake")
    page.locator(".hit").first.wait_for()
    case = "title => getComputedStyle(title, '::first-letter').textTransform"
    assert page.locator(".hit .name").first.inner_text().endswith(".tif")
    assert page.locator(".hit .name").nth(0).evaluate(case) == "none"
    assert page.locator(".hit .name").nth(2).evaluate(case) == "uppercase"
    page.locator(".hit").first.click()
    assert page.locator("#details h2").evaluate(case) == "none"


def test_hits_far_below_are_set_apart_under_a_line(visit: Callable[..., Any], odd: str) -> None:
    page = visit(f"{odd}/?q=a+lake")
    line = page.locator(".grid .apart-line")
    line.wait_for()
    best = float(page.locator(".grid .score").first.inner_text().split()[-1])
    assert line.inner_text() == (
        f"The last 9 hits are less than half as like the question as the best (below {best / 2:.2f}); "
        "the answer does not stand on them."
    )
    assert page.locator(".apart .hit").count() == 9
    above = page.locator(".grid > li:not(.apart) .hit").last.bounding_box()
    below = page.locator(".apart .hit").first.bounding_box()
    assert above["y"] + above["height"] <= line.bounding_box()["y"]
    assert line.bounding_box()["y"] + line.bounding_box()["height"] <= below["y"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert _focused(page) == page.locator(".apart .hit").first.get_attribute("data-id")
    page.keyboard.press("ArrowUp")
    assert _focused(page) == page.locator(".hit").first.get_attribute("data-id")


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_scale_notes_and_buttons_cover_nothing(visit: Callable[..., Any], address: str, size: dict[str, int]) -> None:
    page = visit(address, viewport=size)
    searched(page, "a river")
    page.get_by_role("button", name="Draw an area").click()  # which has a note
    page.locator("#map").scroll_into_view_if_needed()
    boxes = {
        f"{name} {number}": box
        for name in ("#map-scale .leaflet-control", "#map-note", ".map-tools button", ".leaflet-control-zoom",
                     ".degrees span", "header", "#about")
        for number, one in enumerate(page.locator(name).all())
        if (box := one.bounding_box()) is not None
    }  # fmt: skip
    assert len(boxes) > 10
    assert [pair for pair in combinations(boxes, 2) if _meet(boxes[pair[0]], boxes[pair[1]])] == []
    frame = page.locator("#map").bounding_box()
    assert [name for name, box in boxes.items() if "#map" in name and _meet(box, frame)] == []
    floating = page.locator("body > *, main *").evaluate_all(
        """all => all.filter((one) => getComputedStyle(one).position === "fixed" && one.getClientRects().length
            && !one.closest("dialog, #details")).map((one) => one.className || one.id)"""
    )
    assert floating == []
    if size == PHONE:
        assert page.locator("header .to-map").is_visible()
        page.evaluate("scrollTo(0, 0)")
        page.locator(".to-map").click()
        assert page.locator("#map").evaluate("map => map.getBoundingClientRect().top < innerHeight / 2")


def _meet(one: dict[str, float], other: dict[str, float]) -> bool:
    return all(
        one[start] + one[size] > other[start] + 0.5 and other[start] + other[size] > one[start] + 0.5
        for start, size in (("x", "width"), ("y", "height"))
    )


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("bbox=1,2,x,4", "bbox=1,2,x,4, which is no area (west,south,east,north in degrees)"),
        ("bbox=1,,3,4", "which is no area"),
        ("bbox=1,2,3", "which is no area"),
        ("top=0", "top=0, which is no number of hits from 1 to 200"),
        ("mode=wild", "mode=wild, which is no way to ask"),
    ],
)
def test_what_the_address_says_wrongly_is_told(visit: Callable[..., Any], address: str, part: str, words: str) -> None:
    page = visit(f"{address}/?q=a+river&{part}")
    page.locator("#results:not([aria-busy]) .hit").first.wait_for()
    assert words in page.get_by_role("alert").inner_text()
    searched(page, "a lake")
    page.get_by_role("alert").wait_for(state="hidden")
    page.goto(f"{address}/?{part}")
    page.locator(".welcome").wait_for()
    assert words in page.get_by_role("alert").inner_text()


def test_how_sure_the_answer_is_is_said_once(visit: Callable[..., Any], address: str, gallery: Gallery) -> None:
    page = visit(address)
    for verdict in ("answered", "abstained"):
        searched(page, texts_by_verdict(gallery)[verdict])
        page.locator(f".verdict.{verdict}").wait_for()
        assert page.locator(".verdict").inner_text().count("Of 100 usual questions") == 0  # plain words at first
        page.locator(".verdict summary").click()
        assert page.locator(".verdict").inner_text().count("Of 100 usual questions") == 1
