"""The page of a server that joins parts: what lies elsewhere is shown like what lies here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evidex.retrieval.gallery import Gallery
from evidex.server.settings import Settings
from tests.e2e.browsing import MARKS
from tests.retrieval.archive import tiny_model
from tests.server.places import live, make_gallery

pytestmark = MARKS


def test_hits_of_another_server_are_shown_with_picture_details_and_neighbours(
    tmp_path: Path, visit: Callable[..., Any]
) -> None:
    whole = make_gallery(tmp_path)
    here, there = (Gallery.create(tmp_path / name, tiny_model()) for name in ("here", "there"))
    for part, places in ((here, range(0, 24, 2)), (there, range(1, 24, 2))):
        part.append(whole.rows(list(places)), np.array(whole.vectors[list(places)]))
    with live(Settings(there.path, port=0)) as other, live(Settings(here.path, port=0, parts=(other,))) as address:
        page = visit(f"{address}/?q=a+river")
        page.locator(".hit").first.wait_for()
        ids = page.locator(".hit").evaluate_all("hits => hits.map(hit => hit.dataset.id)")
        elsewhere = [place for place, row_id in enumerate(ids) if row_id.startswith("1.")]
        assert 0 < len(elsewhere) < len(ids) == 24
        hit = page.locator(".hit").nth(elsewhere[0])
        hit.scroll_into_view_if_needed()
        for _ in range(400):
            if hit.locator("img").evaluate("image => image.complete && image.naturalWidth > 0"):
                break
            page.wait_for_timeout(25)
        else:
            raise AssertionError("the picture of a row elsewhere never came")
        hit.click()
        page.locator("ul.neighbours li").nth(7).wait_for()
