"""A picture and words together, on the page."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from tests.e2e.browsing import MARKS, searched
from tests.retrieval.archive import picture

pytestmark = MARKS


def _order(page: Any) -> list[str]:
    found: list[str] = page.locator(".hit").evaluate_all("hits => hits.map(hit => hit.dataset.id)")
    return found


def test_words_join_the_picture_that_is_asked_with(visit: Callable[..., Any], address: str) -> None:
    page = visit(address)
    stream = io.BytesIO()
    picture(4).save(stream, "PNG")
    example = {"name": "example.png", "mimeType": "image/png", "buffer": stream.getvalue()}
    page.locator("#file").set_input_files(example)
    page.locator("#results:not([aria-busy]) .verdict").wait_for()
    alone = _order(page)
    assert "Add words" in page.get_by_label("What to look for").get_attribute("placeholder")
    with page.expect_response("**/search") as response:
        searched(page, "dense houses and roads -river")
    assert response.value.json()["query"] == "example.png + dense houses and roads -river"
    page.locator(".verdict.unknown").wait_for()
    assert "questions in several parts" in page.locator(".verdict").inner_text()
    assert page.locator("#query-picture").get_by_text("example.png").is_visible()
    assert _order(page) != alone
    assert page.title().startswith("example.png + dense houses")
    page.get_by_role("button", name="Remove the picture from the query").click()
    page.wait_for_url(lambda url: "image=" not in url)
    page.locator("#results:not([aria-busy]) .verdict").wait_for()
    assert "dense" in page.url


def test_words_join_a_hit_whose_like_is_looked_for(visit: Callable[..., Any], address: str) -> None:
    page = visit(address)
    searched(page, "a river")
    page.locator(".hit").nth(3).focus()
    page.keyboard.press("s")
    page.locator("#query-picture").get_by_text("Like this hit").wait_for()
    assert page.get_by_label("What to look for").input_value() == ""
    searched(page, "a lake")
    page.locator(".verdict.unknown").wait_for()
    assert "item=" in page.url
    assert "q=a+lake" in page.url
