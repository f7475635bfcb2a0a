"""The page in a real browser: what an analyst does with it, and what it says when something is wrong."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from evidex.retrieval.gallery import Gallery
from evidex.server.settings import Settings
from tests.e2e.browsing import MARKS, searched
from tests.retrieval.archive import picture, tiny_model
from tests.server.places import live, texts_by_verdict

pytestmark = MARKS


def _until(page: Any, expression: str, argument: Any = None) -> None:
    """Wait until it holds; the browser's own waiting evaluates strings, which the page's policy forbids."""
    for _ in range(400):
        if page.evaluate(expression, argument):
            return
        page.wait_for_timeout(25)
    raise AssertionError(f"never came true: {expression}")


def _ids(page: Any) -> list[str]:
    found: list[str] = page.locator(".hit").evaluate_all("hits => hits.map(hit => hit.dataset.id)")
    return found


def _drop(page: Any, name: str, kind: str, content: bytes) -> None:
    data = base64.b64encode(content).decode()
    page.evaluate(
        """([name, kind, data]) => {
            const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], name, { type: kind }));
            for (const step of ["dragenter", "dragover", "drop"])
                document.body.dispatchEvent(
                    new DragEvent(step, { dataTransfer: transfer, bubbles: true, cancelable: true }));
        }""",
        [name, kind, data],
    )


def _png(seed: int, size: tuple[int, int] = (48, 40)) -> bytes:
    stream = io.BytesIO()
    picture(seed, size).save(stream, "PNG")
    return stream.getvalue()


def test_a_text_search_shows_hits_with_pictures_and_goes_into_the_history(
    visit: Callable[..., Any], address: str, gallery: Gallery
) -> None:
    text = texts_by_verdict(gallery)["answered"]
    page = visit(address)
    assert "30 pictures" in page.locator(".welcome").inner_text()
    searched(page, text)
    assert page.locator(".verdict.answered h2").inner_text() in ("Good matches", "Plausible matches")
    page.get_by_text("What this stands on").click()
    assert page.get_by_role("meter", name="Certainty").get_attribute("aria-valuetext").startswith("surer than")
    first = _ids(page)
    assert len(first) == 24
    _until(page, "document.querySelector('.hit img').naturalWidth > 0")
    assert re.fullmatch(r"-?\d\.\d{3}", page.locator(".hit .score").first.inner_text().split()[-1])
    assert "q=" in page.url
    searched(page, "planes near a terminal")
    page.go_back()
    _until(page, "text => document.getElementById('words').value === text", text)
    _until(page, "id => document.querySelector('.hit')?.dataset.id === id", first[0])
    again = visit(page.url)
    again.locator(".hit").first.wait_for()
    assert _ids(again) == first


def test_refined_and_abstained_verdicts_are_said_in_words(
    visit: Callable[..., Any], address: str, gallery: Gallery
) -> None:
    texts = texts_by_verdict(gallery)
    page = visit(address)
    searched(page, texts["refined"])
    page.locator(".verdict.refined").wait_for()
    assert page.locator(".verdict h2").inner_text() == "Perhaps: look twice"
    assert "Asked again in 4 similar forms" in page.locator(".change").inner_text()
    searched(page, texts["abstained"])
    page.locator(".verdict.abstained").wait_for()
    assert page.locator(".verdict h2").inner_text() == "Probably nothing here matches"
    assert page.locator("#hits h3").inner_text() == "The nearest things, not an answer"
    page.get_by_label("Asking").select_option("plain")
    _until(page, "!document.querySelector('.change')")
    assert "mode=plain" in page.url


def test_hits_that_may_be_right_are_not_called_no_answer(
    visit: Callable[..., Any], address: str, gallery: Gallery
) -> None:
    """Of what is refused for a guarantee alone."""
    text = texts_by_verdict(gallery)["abstained"]
    page = visit(address)

    def unsure(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"standing": "unsure"})

    page.route("**/search", unsure)
    searched(page, text)
    page.locator(".verdict.abstained").wait_for()
    assert re.fullmatch(r"\d+ hits", page.locator("#hits h3").inner_text())


def test_a_dropped_picture_is_searched_for(visit: Callable[..., Any], address: str) -> None:
    page = visit(address)
    _drop(page, "example.png", "image/png", _png(4))
    page.locator(".hit").first.wait_for()
    assert "example.png" in page.locator("#query-picture").inner_text()
    dropped = _ids(page)
    page.locator("#file").set_input_files({"name": "other.png", "mimeType": "image/png", "buffer": _png(5)})
    _until(page, "document.querySelector('#query-picture').innerText.includes('other.png')")
    page.go_back()
    _until(page, "document.querySelector('#query-picture').innerText.includes('example.png')")
    _until(page, "id => document.querySelector('.hit')?.dataset.id === id", dropped[0])
    page.reload()
    page.get_by_text("Drop it again to repeat this search").wait_for()


def test_bad_pictures_are_refused_in_words(visit: Callable[..., Any], address: str) -> None:
    page = visit(address)
    _drop(page, "notes.txt", "text/plain", b"no picture at all")
    notice = page.get_by_role("alert")
    notice.get_by_text("This picture cannot be used: 'notes.txt' is no image").wait_for()
    _drop(page, "large.png", "image/png", _png(1, (500, 500)))
    notice.get_by_text("500×500 pixels").wait_for()
    searched(page, "a river")
    assert notice.is_hidden()


def test_a_hit_opens_with_its_neighbours_and_becomes_the_query(
    visit: Callable[..., Any], address: str, gallery: Gallery
) -> None:
    page = visit(address)
    searched(page, "a river")
    hit = _ids(page)[2]
    page.locator(".hit").nth(2).click()
    panel = page.get_by_role("complementary", name="Details")
    panel.locator(".neighbours button").first.wait_for()
    assert panel.locator(".neighbours button").count() == 8
    row = gallery.find(hit)
    facts = panel.locator(".facts").inner_text()
    assert row.name in facts
    assert "EPSG:32630" in facts
    assert "96 × 96" in facts
    panel.locator(".neighbours button").first.click()
    _until(page, "id => !location.search.includes(id)", hit)
    panel.locator(".neighbours button").first.wait_for()
    panel.get_by_role("button", name="More like this").click()
    page.locator("#query-picture").get_by_text("Like this hit").wait_for()
    item = re.search(r"item=(\w+)", page.url)
    assert item is not None
    _until(page, "id => document.querySelector('.hit')?.dataset.id === id", item[1])
    assert panel.is_hidden()


def test_the_keyboard_is_enough(visit: Callable[..., Any], address: str) -> None:
    page = visit(address)
    page.locator(".welcome").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("a river")
    page.keyboard.press("Enter")
    page.locator(".hit").first.wait_for()
    page.locator(".hit").first.focus()
    for key, place in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 23), ("Home", 0)):
        page.keyboard.press(key)
        assert page.locator(".hit").nth(place).evaluate("hit => hit === document.activeElement"), key
    page.keyboard.press("ArrowDown")
    below = page.evaluate("document.activeElement.dataset.id")
    assert below in _ids(page)[2:]
    page.keyboard.press("Enter")
    page.locator("#details .facts").wait_for()
    page.keyboard.press("Escape")
    page.locator("#details").wait_for(state="hidden")
    assert page.evaluate("document.activeElement.dataset.id") == below
    page.keyboard.press("s")
    page.wait_for_url(f"**item={below}*")
    page.keyboard.press("?")
    assert page.get_by_role("dialog", name="Keys and help").is_visible()


def test_the_map_shows_hits_and_an_area_drawn_on_it_filters(
    visit: Callable[..., Any], address: str, gallery: Gallery
) -> None:
    page = visit(address)
    searched(page, "a river")
    assert page.locator("#map .pin").count() == 24
    assert page.locator("#map .footprint").count() == 24
    assert page.locator("#map .graticule").count() > 5
    heights = page.locator("#map .graticule").evaluate_all(
        "all => all.map(line => line.getBoundingClientRect().height)"
    )
    assert max(heights) > 300
    page.get_by_role("button", name="Draw an area").click()
    frame = page.locator("#map").bounding_box()
    x, y = frame["x"] + frame["width"] * 0.25, frame["y"] + frame["height"] * 0.3
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + frame["width"] * 0.5, y + frame["height"] * 0.4, steps=4)
    page.mouse.up()
    page.wait_for_url("**bbox=*")
    page.locator("#results:not([aria-busy])").wait_for()
    _until(page, "document.querySelectorAll('.hit').length < 24")
    west, south, east, north = (float(value) for value in re.findall(r"bbox=([-\d.,]+)", page.url)[0].split(","))
    inside = {
        row.id for row in gallery.rows(range(30))
        if row.footprint and (box := row.footprint.bounds).west <= east and box.east >= west
        and box.south <= north and box.north >= south
    }  # fmt: skip
    assert 0 < len(inside) < 30
    assert set(_ids(page)) <= inside
    assert len(_ids(page)) == min(len(inside), 24)
    assert page.locator("#map path.area").count() == 1
    page.get_by_role("button", name="Remove the area").click()
    _until(page, "document.querySelectorAll('.hit').length === 24")
    page.locator(".hit").first.click()
    page.get_by_role("button", name="Show on the map").click()
    overlay = page.locator("#map img.overlay.loaded:visible").first
    overlay.wait_for()
    wide = "[...document.querySelectorAll('#map img.overlay.loaded')].some(i => i.getBoundingClientRect().width > 100)"
    _until(page, wide)  # the map glides there
    picture_box = overlay.bounding_box()
    footprint = page.locator("#map .footprint.pointed").bounding_box()
    assert abs(picture_box["x"] - footprint["x"]) < 6
    assert abs(picture_box["width"] - footprint["width"]) < 12


def test_times_filter(visit: Callable[..., Any], address: str, gallery: Gallery) -> None:
    page = visit(address)
    searched(page, "a river")
    page.get_by_label("Taken from").fill("2021-01-01")
    page.wait_for_url("**after=2021-01-01*")
    page.get_by_label("until").fill("2022-01-01")
    page.wait_for_url("**before=2022-01-01*")
    expected = {row.id for row in gallery.rows(range(30)) if row.acquired and row.acquired.year == 2021}
    _until(page, "count => document.querySelectorAll('.hit').length === count", len(expected))
    assert set(_ids(page)) == expected
    page.get_by_label("until").fill("2019-01-01")
    page.get_by_text("No image of the archive passes these filters").wait_for()
    page.get_by_role("button", name="Clear filters").click()
    _until(page, "document.querySelectorAll('.hit').length === 24")


def test_a_lost_server_is_told_and_found_again(visit: Callable[..., Any], address: str) -> None:
    page = visit(address)
    searched(page, "a river")
    page.context.set_offline(True)
    page.get_by_label("What to look for").fill("a lake")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("alert").get_by_text("The server does not answer").wait_for()
    assert page.locator(".hit").count() == page.locator(".verdict").count() == 0  # they were another question's
    page.context.set_offline(False)
    page.get_by_role("alert").wait_for(state="hidden")
    _until(page, "document.title.startsWith('a lake')")
    page.locator("#results:not([aria-busy]) .hit").first.wait_for()


def test_an_empty_gallery_says_how_to_fill_it_and_fills(visit: Callable[..., Any], tmp_path: Path) -> None:
    made = Gallery.create(tmp_path / "gallery", tiny_model())
    with live(Settings(made.path, port=0, refresh_seconds=0.2)) as url:
        page = visit(url)
        page.get_by_text("This gallery is empty").wait_for()
        assert "evidex index PATH --gallery DIR" in page.locator(".hint").inner_text()
        searched(page, "a river")
        assert page.locator(".verdict h2").inner_text() == "There was nothing to search"
        made.add_texts(["a lake"])
        picture(1).save(tmp_path / "one.png")
        made.add(tmp_path / "one.png")
        page.locator(".brand").click()
        page.get_by_text("What are you looking for?").wait_for()
        searched(page, "a river")
        assert page.locator(".hit").count() == 1
        assert page.locator("#map-side").is_hidden()
        assert "not calibrated" in page.locator(".verdict").inner_text()


def test_a_token_is_asked_for_and_pictures_come_with_it(visit: Callable[..., Any], gallery: Gallery) -> None:
    with live(replace(Settings(gallery.path, port=0), token="s3cret")) as url:
        page = visit(url)
        dialog = page.get_by_role("dialog", name="This archive asks for a token")
        dialog.get_by_label("Token").fill("wrong")
        dialog.get_by_role("button", name="Enter").click()
        dialog.get_by_text("the token is missing or wrong").wait_for()
        dialog.get_by_label("Token").fill("s3cret")
        dialog.get_by_role("button", name="Enter").click()
        searched(page, "a river")
        _until(page, "document.querySelector('.hit img').naturalWidth > 0")
        given = visit(f"{url}/#token=s3cret")
        searched(given, "a river")
        assert "s3cret" not in given.url


def test_what_is_typed_while_the_server_is_slow_stays(visit: Callable[..., Any], address: str) -> None:
    page = visit(address)
    searched(page, "a lake")
    held: list[Any] = []
    page.route("**/gallery", lambda route: held.append(route))
    page.reload()
    page.get_by_label("What to look for").fill("a river")
    while not held:
        page.wait_for_timeout(25)
    held[0].continue_()
    page.locator("#results:not([aria-busy]) .verdict").wait_for()
    assert page.get_by_label("What to look for").input_value() == "a river"
