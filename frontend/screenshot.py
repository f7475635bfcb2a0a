"""Take the picture of the page that the documentation shows.

python frontend/screenshot.py http://127.0.0.1:8765 "boats in a harbor" docs/images/page.png
python frontend/screenshot.py http://127.0.0.1:8765 "green farmland" docs/images/verdict_plausible.png --verdict
"""

from __future__ import annotations

import argparse
import io
import shutil
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import FloatRect, Page, sync_playwright

_MOST_BYTES = 400_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", help="of a running 'evidex serve'")
    parser.add_argument("query")
    parser.add_argument("target", type=Path)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--verdict", action="store_true", help="only the verdict and the first row of hits")
    options = parser.parse_args()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(
            viewport={"width": 1000 if options.verdict else 1280, "height": 800},
            color_scheme="dark" if options.dark else "light",
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.goto(f"{options.address}/?q={quote(options.query)}")
        page.locator(".hit img.loaded").first.wait_for()
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(1000)
        taken = page.screenshot(clip=_verdict(page) if options.verdict else None)
        colours = page.locator(".verdict" if options.verdict else ".gauge .bar")
        box = colours.bounding_box() or {"x": 0, "y": 0, "width": 1, "height": 1}
        left, top = (0, 0) if options.verdict else (box["x"], box["y"])
        rare = (left, top, left + box["width"], top + box["height"])
        browser.close()
    options.target.parent.mkdir(parents=True, exist_ok=True)
    options.target.write_bytes(_small(Image.open(io.BytesIO(taken)).convert("RGB"), rare))


def _verdict(page: Page) -> FloatRect:
    verdict, hit = (page.locator(name).first.bounding_box() for name in (".verdict", ".hit"))
    assert verdict is not None
    assert hit is not None
    return {**verdict, "height": hit["y"] + hit["height"] - verdict["y"]}


def _small(picture: Image.Image, place: tuple[float, float, float, float]) -> bytes:
    """A PNG of few colours, those of the given place among them, that are too rare to be chosen otherwise."""
    for colours in (224, 96, 48):
        rare = picture.crop(place).quantize(32, dither=Image.Dither.NONE).getpalette() or []
        common = picture.quantize(colours, dither=Image.Dither.NONE).getpalette() or []
        palette = Image.new("P", (1, 1))
        palette.putpalette((rare[:96] + common)[:768])
        stream = io.BytesIO()
        picture.quantize(palette=palette, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
        if stream.tell() < _MOST_BYTES:
            break
    return stream.getvalue()


if __name__ == "__main__":
    main()
