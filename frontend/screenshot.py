"""Take the picture of the page that the documentation shows.

python frontend/screenshot.py http://127.0.0.1:8765 "planes beside a terminal" docs/images/page.png
"""

from __future__ import annotations

import argparse
import io
import shutil
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import sync_playwright

_MOST_BYTES = 400_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", help="of a running 'evidex serve'")
    parser.add_argument("query")
    parser.add_argument("target", type=Path)
    parser.add_argument("--dark", action="store_true")
    options = parser.parse_args()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(
            viewport={"width": 1280, "height": 800},
            color_scheme="dark" if options.dark else "light",
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.goto(f"{options.address}/?q={quote(options.query)}")
        page.locator(".hit img.loaded").first.wait_for()
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(1000)
        taken = page.screenshot()
        browser.close()
    for colours in (256, 128, 64):
        stream = io.BytesIO()
        picture = Image.open(io.BytesIO(taken)).convert("RGB")
        picture.quantize(colours, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
        if stream.tell() < _MOST_BYTES:
            break
    options.target.parent.mkdir(parents=True, exist_ok=True)
    options.target.write_bytes(stream.getvalue())


if __name__ == "__main__":
    main()
