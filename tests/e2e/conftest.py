"""A real browser for the tests of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evidex.retrieval.gallery import Gallery
from evidex.server.settings import Settings
from tests.e2e.browsing import CHROMIUM, DESK
from tests.server.places import live, make_gallery


@pytest.fixture(scope="session")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    return make_gallery(tmp_path_factory.mktemp("page"), count=30, size=96)


@pytest.fixture(scope="module")
def address(gallery: Gallery) -> Iterator[str]:
    with live(Settings(gallery.path, port=0, max_pixels=100_000, refresh_seconds=0.2)) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; pip install '.[dev]'")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens an address; at the end of the test the page must not have failed anywhere."""
    contexts, failures = [], []

    def opened(url: str, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": DESK, "reduced_motion": "reduce", **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on(
            "console", lambda message: failures.append(message.text) if "Content Security" in message.text else None
        )
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert failures == []
