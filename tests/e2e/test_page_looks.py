"""The page at any width and in either light, and for those who cannot see it well."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evidex.retrieval.gallery import Gallery
from tests.e2e.browsing import DESK, MARKS, PHONE, searched
from tests.server.places import texts_by_verdict

AXE = Path(__file__).resolve().parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = MARKS


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_spills_at_phone_width(visit: Callable[..., Any], address: str, scheme: str) -> None:
    page = visit(address, viewport=PHONE, has_touch=True, color_scheme=scheme)
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    page.locator(".welcome").wait_for()
    assert page.evaluate(wide)
    searched(page, "a river")
    assert page.evaluate(wide)
    columns = page.locator(".grid").evaluate("grid => getComputedStyle(grid).gridTemplateColumns.split(' ').length")
    assert columns == 2
    page.locator(".hit").first.click()
    page.locator("#details .neighbours").wait_for()
    assert page.evaluate(wide)
    box = page.locator("#details").bounding_box()
    assert (box["x"], box["width"]) == (0, 390)
    page.get_by_role("button", name="Show on the map").click()
    page.locator("#map img.overlay:visible").first.wait_for()
    page.locator("#map").scroll_into_view_if_needed()
    assert page.locator("#map").bounding_box()["width"] <= 390


def test_dark_and_light_can_be_chosen_and_are_kept(visit: Callable[..., Any], address: str) -> None:
    page = visit(address, color_scheme="light")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Change between dark and light").click()
    dark = page.evaluate(ground)
    assert light != dark
    page.reload()
    assert page.evaluate(ground) == dark


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed; run npm ci in frontend/")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_axe_finds_nothing_serious(
    visit: Callable[..., Any], address: str, gallery: Gallery, scheme: str, size: dict[str, int]
) -> None:
    page = visit(address, viewport=size, color_scheme=scheme)
    page.locator(".welcome").wait_for()
    found = _axe(page)
    for text in texts_by_verdict(gallery).values():
        searched(page, text)
        page.wait_for_timeout(300)  # pictures fade in
        found += _axe(page)
    page.get_by_text("Area", exact=True).click()
    found += _axe(page)
    page.get_by_text("Area", exact=True).click()
    page.locator(".hit").first.click()
    page.locator("#details .neighbours").wait_for()
    found += _axe(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Keys and help").click()
    found += _axe(page)
    assert found == [], json.dumps(found, indent=1)


def _axe(page: Any) -> list[str]:
    page.evaluate(AXE.read_text(encoding="utf-8"))
    report = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{rule['id']} ({rule['impact']}): {node['target']} {node['failureSummary']}"
        for rule in report["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"][:3]
    ]
