"""A picture that lies in the archive several times, on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.server.settings import Settings
from tests.e2e.browsing import MARKS, searched
from tests.retrieval.archive import picture, tiny_model
from tests.server.places import live

pytestmark = MARKS


@pytest.fixture(scope="module")
def doubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("doubled")
    for number in range(4):
        picture(number, (96, 80)).save(folder / f"scene_{number}.png")
    for name in ("again.png", "once_more.png"):
        picture(0, (96, 80)).save(folder / name)
    picture(0, (96, 80)).resize((192, 160)).save(folder / "large.png")
    made = Gallery.create(folder / "gallery", tiny_model())
    made.add(folder, options=IndexOptions(workers=1))
    with live(Settings(made.path, port=0)) as address:
        yield address


def test_copies_are_one_hit_that_unfolds_its_other_places(visit: Callable[..., Any], doubled: str) -> None:
    page = visit(doubled)
    searched(page, "a river")
    assert page.locator(".hit").count() == 4
    folded = page.locator(".copies")
    assert folded.count() == 1
    assert folded.locator("summary").inner_text() == "3 more places"
    assert not folded.locator("li").first.is_visible()
    folded.locator("summary").focus()
    page.keyboard.press("Enter")
    assert folded.locator("li").count() == 3
    told = folded.locator("ul").inner_text()
    assert told.count("the same file") + told.count("saved again or resized") == 3
    assert "saved again or resized" in told
    place = folded.locator("li button").first
    name = place.inner_text()
    place.focus()
    page.keyboard.press("Enter")
    page.locator("#details .facts").wait_for()
    assert name in page.locator("#details .facts").inner_text()
