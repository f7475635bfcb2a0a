"""What a written file may take the place of: what evidex wrote before, never somebody's pictures, captions or gallery.

A pattern that the shell spreads, or a slip of the hand, puts a picture where an output is named.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from evidex.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

Kind = Literal["json", "html", "picture", "weights"]
MARK: Final = "written by evidex"
"""Stands in each picture that is an output."""
_PICTURES: Final = (
    b"\xff\xd8\xff", b"\x89PNG", b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+", b"GIF8", b"BM", b"RIFF",
    b"\x00\x00\x00\x0cjP", b"\xffO\xffQ",
)  # fmt: skip
_BEGINS: Final[dict[Kind, tuple[bytes, ...]]] = {"json": (b"{", b"["), "html": (b"<",)}
_GALLERY, _CAPTIONS = "gallery.json", "captions.json"
_HEAD = 4096


def check_replaced(path: Path, kind: Kind) -> None:
    """Refuse to replace the file at ``path``, if one is there, by an output of this ``kind``."""
    if not path.is_file():
        return
    if any((folder / _GALLERY).is_file() for folder in path.absolute().parents):
        raise InputError(f"'{path}' is a file of a gallery; name another place")
    if path.name == _CAPTIONS:
        raise InputError(f"'{path}' holds captions; name another place")
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if head.startswith(_PICTURES):
        if kind != "picture" or not _is_ours(path):
            raise InputError(f"'{path}' is a picture that would be lost; name another place, or remove it first")
    elif head.strip() and not head.lstrip().startswith(_BEGINS.get(kind, (b"",))):
        raise InputError(f"'{path}' holds something else that would be lost; name another place, or remove it first")


def as_png(picture: Image) -> bytes:
    """``picture`` as an output, which another may replace."""
    from PIL.PngImagePlugin import PngInfo

    told, stream = PngInfo(), io.BytesIO()
    told.add_text("Software", MARK)
    picture.save(stream, "PNG", pnginfo=told)
    return stream.getvalue()


def _is_ours(path: Path) -> bool:
    return MARK.encode() in path.read_bytes()
