"""The map of likeness over a hit's preview: laid on, taken off, and what it says where nothing is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.server.settings import Settings
from tests.e2e.browsing import MARKS
from tests.locating.places import NO_TANKS, compact, write_scene
from tests.retrieval.archive import picture
from tests.server.places import live

pytestmark = MARKS
_BRIGHTEST = """canvas => {
    const { width, height } = canvas, data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
    const alpha = (x, y) => data[4 * (Math.floor(y * height) * width + Math.floor(x * width)) + 3];
    return { tanks: alpha(0.83, 0.62), elsewhere: alpha(0.1, 0.1), width, height };
}"""


@pytest.fixture(scope="module")
def tanks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("tanks")
    (folder / "scenes").mkdir()
    write_scene(folder / "scenes" / "tanks.tif")
    write_scene(folder / "scenes" / "none.tif", NO_TANKS)
    gallery = Gallery.create(folder / "gallery", compact(), source="compact")
    gallery.add(folder / "scenes", options=IndexOptions(workers=1))
    with live(Settings(gallery.path, port=0)) as address:
        yield address


def _opened(page: Any, name: str) -> Any:
    page.locator(".hit", has_text=name).first.click()
    button = page.get_by_role("button", name="Where is it?")
    button.wait_for()
    return button


def test_the_map_lies_over_the_preview_and_comes_off_again(visit: Callable[..., Any], tanks: str) -> None:
    page = visit(f"{tanks}/?q=storage+tanks")
    button = _opened(page, "tanks.tif")
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    heat = page.locator("#details canvas.heat")
    heat.wait_for()
    assert button.get_attribute("aria-pressed") == "true"
    assert "1 place looks" in page.locator(".located").inner_text()
    seen = heat.evaluate(_BRIGHTEST)
    assert seen["tanks"] > 60 > seen["elsewhere"]
    page.locator("#details img.preview.loaded").wait_for()
    over, under = heat.bounding_box(), page.locator("#details img.preview").bounding_box()
    assert all(abs(over[side] - under[side]) <= 1 for side in ("x", "y", "width", "height"))
    button.click()
    assert not heat.is_visible()
    assert not page.locator(".located").is_visible()
    button.click()
    assert heat.is_visible()


def test_where_nothing_is_the_map_is_clear_and_the_line_says_so(visit: Callable[..., Any], tanks: str) -> None:
    page = visit(f"{tanks}/?q=storage+tanks")
    _opened(page, "none.tif").click()
    page.locator(".located").get_by_text("Nothing here looks like storage tanks.").wait_for()
    seen = page.locator("#details canvas.heat").evaluate(_BRIGHTEST)
    assert seen["tanks"] == seen["elsewhere"] == 0


def test_an_example_that_was_dropped_is_looked_for_and_a_refusal_leaves_the_hits(
    visit: Callable[..., Any], tanks: str, tmp_path: Path
) -> None:
    picture(2, (60, 60)).save(tmp_path / "example.png")
    page = visit(tanks)
    page.locator("#file").set_input_files(tmp_path / "example.png")
    page.locator(".hit").first.wait_for()
    _opened(page, "tanks.tif").click()
    page.locator(".located").get_by_text("The places most like example.png.").wait_for()
    page.route("**/locate", lambda route: route.fulfill(status=429, json={"error": "too many maps are being made"}))
    page.get_by_role("button", name="Close the details").click()
    _opened(page, "none.tif").click()
    page.get_by_text("This cannot be looked for here: too many maps are being made").wait_for()
    assert page.locator(".hit").count() == 2


def test_without_a_question_there_is_nothing_to_look_for(visit: Callable[..., Any], tanks: str) -> None:
    page = visit(f"{tanks}/?q=storage+tanks")
    _opened(page, "tanks.tif")
    page.goto(page.url.replace("q=storage+tanks&", ""))
    page.get_by_role("button", name="More like this").wait_for()
    assert page.get_by_role("button", name="Where is it?").count() == 0
