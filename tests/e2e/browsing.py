"""Where the tests of the page can run, and how large its windows are."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from evidex.server.page import BUILT

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed; apt-get install chromium"),
    pytest.mark.skipif(
        not (BUILT / "index.html").is_file(), reason="the page is not built; run npm ci && npm run build in frontend/"
    ),
]
DESK, PHONE = {"width": 1360, "height": 860}, {"width": 390, "height": 844}


def searched(page: Any, text: str) -> None:
    page.get_by_label("What to look for").fill(text)
    page.get_by_role("button", name="Search", exact=True).click()
    page.locator("#results:not([aria-busy]) .verdict").wait_for()
