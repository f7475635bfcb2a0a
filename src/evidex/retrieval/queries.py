"""What a gallery may be asked with: a text, or a picture given as a file or a Pillow image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evidex.data.discover import printable
from evidex.errors import InputError

if TYPE_CHECKING:
    from evidex.data.rendering import TileOptions

Query = Any
Direction = Literal["text", "image"]
"""What the queries are."""
Asking = Literal["text", "image", "composed"]
"""What is asked: a plain query, or one in several parts (`evidex.retrieval.composing`), which no calibration knows."""
DIRECTIONS: tuple[Direction, ...] = ("text", "image")
LONGEST_TEXT = 2_000
"""Characters: several times what a model reads of a text."""


def check_query(query: object, direction: Direction) -> None:
    """Refuse what is no text or picture."""
    if direction == "text":
        if not isinstance(query, str):
            raise InputError(f"the text to search for is {query!r:.60}; give a string")
        if not query.strip():
            raise InputError("the query is empty; say in words what to look for")
        if len(query) > LONGEST_TEXT:
            raise InputError(f"the query has {len(query)} characters, more than {LONGEST_TEXT}; shorten it")
        try:
            query.encode()
        except UnicodeEncodeError:
            raise InputError("the query holds half a character (a lone surrogate); give plain Unicode") from None
    elif not (isinstance(query, str | Path) or hasattr(query, "convert")):
        raise InputError(f"the image to search for is {query!r:.60}; give a path or a Pillow image")


def picture_of(query: Query, ways: Sequence[TileOptions] = ()) -> Any:
    """An example file as it would be indexed, 16-bit and many-banded ones too; a picture as it is.

    ``ways``: how the gallery's own scenes are read. BlankImageError for one that shows nothing.
    """
    from evidex.data.images import check_shown
    from evidex.data.items import read_example

    return read_example(str(query), ways) if isinstance(query, str | Path) else check_shown(query, "the image")


def shown(query: Query) -> str:
    return "(image)" if hasattr(query, "convert") else printable(str(query))
