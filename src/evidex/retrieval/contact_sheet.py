"""The hits of an answer on one page, as a picture or as HTML that needs nothing else."""

from __future__ import annotations

import base64
import html
import io
from pathlib import Path
from typing import TYPE_CHECKING

from evidex.errors import EvidexError, InputError
from evidex.files import check_target, write_atomic
from evidex.overwriting import as_png
from evidex.retrieval.answers import Answer
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.hits import Hit
from evidex.retrieval.wording import more_places

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

_SUFFIXES = (".png", ".html", ".htm")
_SIDE = 224
_GAP = 12
_LINES = 44
_HEAD = 76
_COLUMNS = 5
_NO_PICTURE = "gone, or changed since indexed"
_COLOURS = {"answered": "#1b7f4b", "refined": "#9a6700", "abstained": "#b3261e", "unknown": "#565b5f"}


def check_sheet(path: Path) -> None:
    """Refuse a contact sheet that could not be written, before the search."""
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError(f"'{path}' is neither .png nor .html; name the contact sheet one of them")
    check_target(path, "picture" if path.suffix.lower() == ".png" else "html")


def write_contact_sheet(gallery: Gallery, answer: Answer, path: Path) -> None:
    """Write ``path``; its suffix says as what: .png, or .html."""
    check_sheet(path)
    if path.suffix.lower() == ".png":
        write_atomic(path, as_png(_drawn(gallery, answer)))
    else:
        write_atomic(path, _page(gallery, answer))


def thumbnail(gallery: Gallery, hit: Hit, longest: int) -> Image | None:
    """The picture of a hit; None for texts, and for files that are no longer there or no longer what was indexed."""
    if hit.kind == "text":
        return None
    try:
        return gallery.open_image(gallery.find(hit.id), longest=longest)
    except EvidexError:
        return None


def _drawn(gallery: Gallery, answer: Answer) -> Image:
    from PIL import Image as PillowImage
    from PIL import ImageDraw

    columns = max(1, min(_COLUMNS, len(answer.hits)))
    rows = -(-len(answer.hits) // columns)
    width = max(columns * (_SIDE + _GAP) + _GAP, 640)
    sheet = PillowImage.new("RGB", (width, _HEAD + rows * (_SIDE + _LINES + _GAP) + _GAP), "white")
    draw = ImageDraw.Draw(sheet)
    _write(draw, (_GAP, 10), f"{answer.query}", "black", width - 2 * _GAP)
    _write(draw, (_GAP, 30), answer.headline, _COLOURS[answer.standing.level.tone], width)
    _write(draw, (_GAP, 50), answer.explanation, "#444444", width - 2 * _GAP)
    for number, hit in enumerate(answer.hits):
        x = _GAP + number % columns * (_SIDE + _GAP)
        y = _HEAD + number // columns * (_SIDE + _LINES + _GAP)
        picture = thumbnail(gallery, hit, _SIDE)
        if picture is None:
            draw.rectangle((x, y, x + _SIDE, y + _SIDE), fill="#eeeeee")
            if hit.kind != "text":
                _write(draw, (x + _GAP, y + _SIDE // 2), _NO_PICTURE, "#444444", _SIDE - 2 * _GAP)
        else:
            sheet.paste(picture, (x + (_SIDE - picture.width) // 2, y + (_SIDE - picture.height) // 2))
        more = f", {more_places(len(hit.copies))}" if hit.copies else ""
        _write(draw, (x, y + _SIDE + 4), f"{hit.rank}.  {hit.score:.3f}{more}", "black", _SIDE)
        _write(draw, (x, y + _SIDE + 22), _name(hit), "#444444", _SIDE)
    return sheet


def _write(draw: ImageDraw, place: tuple[int, int], text: str, colour: str, width: int) -> None:
    from PIL import ImageFont

    font = ImageFont.load_default(13)
    shown = text.replace("\n", " ")
    if draw.textlength(shown, font) > width:
        while shown and draw.textlength(shown + "…", font) > width:
            shown = shown[:-1]
        shown += "…"
    draw.text(place, shown, fill=colour, font=font)


def _name(hit: Hit) -> str:
    name = hit.caption or "" if hit.kind == "text" else Path(hit.path).name
    return name if hit.window is None else f"{name} @ {hit.window.x},{hit.window.y}"


def _page(gallery: Gallery, answer: Answer) -> str:
    apart = "" if answer.apart_line is None else f"<p>{html.escape(answer.apart_line)}</p>"
    figures = "\n".join(_figure(hit, thumbnail(gallery, hit, 320)) for hit in answer.hits)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(answer.query)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 15px/1.4 system-ui, sans-serif; margin: 2rem; color: #222; }}
.verdict {{ color: {_COLOURS[answer.standing.level.tone]}; font-weight: 600; }}
main {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(220px, 1fr)); gap: 1rem; }}
figure {{ margin: 0; }} img {{ width: 100%; background: #eee; }}
figcaption {{ font-size: 13px; overflow-wrap: anywhere; color: #444; }}
</style></head><body>
<h1>{html.escape(answer.query)}</h1>
<p class="verdict">{html.escape(answer.headline)}</p>
<p>{html.escape(answer.explanation)}</p>
{apart}
<main>
{figures}
</main></body></html>
"""


def _figure(hit: Hit, picture: Image | None) -> str:
    image = ""
    if picture is not None:
        stream = io.BytesIO()
        picture.save(stream, "JPEG", quality=85)
        data = base64.b64encode(stream.getvalue()).decode()
        image = f'<img alt="{html.escape(_name(hit), quote=True)}" src="data:image/jpeg;base64,{data}">'
    place = ""
    if hit.footprint is not None:
        longitude, latitude = hit.footprint.center
        place = f"<br>{latitude:.5f}, {longitude:.5f}"
    more = f"<br>{more_places(len(hit.copies))}" if hit.copies else ""
    text = f"{hit.rank}. <b>{hit.score:.3f}</b> {html.escape(_name(hit))}{place}{more}"
    if picture is None and hit.kind != "text":
        text += f"<br>({_NO_PICTURE})"
    if hit.caption and hit.kind != "text":
        text += f"<br>{html.escape(hit.caption)}"
    return f"<figure>{image}<figcaption>{text}</figcaption></figure>"
