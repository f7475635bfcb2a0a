"""Hits that are marked right or wrong on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.marks import Asked, Marks
from evidex.server.settings import Settings
from tests.e2e.browsing import MARKS, searched
from tests.server.places import live

pytestmark = MARKS


@pytest.fixture(autouse=True)
def _without_marks(gallery: Gallery) -> Iterator[None]:
    yield
    Marks(gallery.path).delete()


def _ids(page: Any) -> list[str]:
    found: list[str] = page.locator(".hit").evaluate_all("hits => hits.map(hit => hit.dataset.id)")
    return found


def _kept(gallery: Gallery) -> dict[str, str | None]:
    return {mark.id: mark.says for mark in Marks(gallery.path).of(Asked("a river"))}


def test_hits_are_marked_by_mouse_and_key_and_undone(visit: Callable[..., Any], address: str, gallery: Gallery) -> None:
    page = visit(address)
    searched(page, "a river")
    ids, bar = _ids(page), page.locator("#marks")
    assert bar.is_hidden()
    page.locator(".hit").first.hover()
    page.get_by_role("button", name="Hit 1 is right").click()
    bar.get_by_text("1 hit marked right, 0 wrong").wait_for()
    assert page.get_by_role("button", name="Hit 1 is right").get_attribute("aria-pressed") == "true"
    page.locator(".hit").nth(1).focus()
    page.keyboard.press("w")
    bar.get_by_text("1 hit marked right, 1 wrong").wait_for()
    assert _kept(gallery) == {ids[0]: "right", ids[1]: "wrong"}
    page.keyboard.press("r")  # another opinion on the same hit
    bar.get_by_text("2 hits marked right, 0 wrong").wait_for()
    page.keyboard.press("u")
    bar.get_by_text("1 hit marked right, 1 wrong").wait_for()
    bar.get_by_role("button", name="Undo").click()
    bar.get_by_text("1 hit marked right, 0 wrong").wait_for()
    assert _kept(gallery) == {ids[0]: "right"}
    page.reload()
    bar.get_by_text("1 hit marked right, 0 wrong").wait_for()
    assert page.get_by_role("button", name="Hit 1 is right").get_attribute("aria-pressed") == "true"
    searched(page, "a lake")
    bar.wait_for(state="hidden")


def test_marks_rank_the_question_anew_and_back(visit: Callable[..., Any], address: str) -> None:
    page = visit(address)
    searched(page, "a river")
    before = _ids(page)
    page.locator(".hit").nth(12).focus()
    page.keyboard.press("r")
    page.locator("#marks").get_by_role("button", name="Rank by them").click()
    page.locator(".verdict.unknown").wait_for()
    page.locator("#results:not([aria-busy])").wait_for()
    after = _ids(page)
    assert after.index(before[12]) < 12
    assert "marked=1" in page.url
    page.locator("#marks").get_by_role("button", name="Rank without them").click()
    page.wait_for_url(lambda url: "marked" not in url)
    page.locator("#results:not([aria-busy]) .hit").first.wait_for()
    page.locator("#marks").get_by_role("button", name="Rank by them").wait_for()
    assert _ids(page) == before


def test_where_no_marks_are_taken_there_is_nothing_to_mark_with(visit: Callable[..., Any], gallery: Gallery) -> None:
    with live(Settings(gallery.path, port=0, marks=False)) as url:
        page = visit(url)
        searched(page, "a river")
        assert page.locator(".marks").count() == 0
        page.locator(".hit").first.focus()
        page.keyboard.press("r")
        assert page.locator("#marks").is_hidden()
