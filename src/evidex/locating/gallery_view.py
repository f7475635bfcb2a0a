"""A scene that is in a gallery, by what its hits call it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from evidex.data.remote import is_remote
from evidex.errors import NotFoundError
from evidex.locating.view import View, view_of_picture, view_of_row
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.hits import Hit
from evidex.retrieval.rows import Row


def view_in_gallery(gallery: Gallery, name: str) -> AbstractContextManager[View]:
    """Of the row with the id ``name``; or, by a path, of a whole file that is in the gallery, tiles and all."""
    return view_of_named(gallery, row_named(gallery, name))


def view_of_named(gallery: Gallery, row: Row) -> AbstractContextManager[View]:
    """Of what `row_named` found."""
    if row.kind != "text" and is_remote(row.path):
        # Of what lies on another machine the gallery's own small picture is looked at.
        return nullcontext(view_of_picture(gallery.open_image(row), row.name, Hit.of(row, 1, 0.0).corners))
    return view_of_row(row)


def row_named(gallery: Gallery, name: str) -> Row:
    """The row with that id; or, by a path, one that stands for the whole file."""
    import pyarrow.compute as pc

    place = pc.index(gallery.column("id"), name).as_py()
    if place >= 0:
        return gallery.rows([place])[0]
    # A file of tiles has many rows; they are rendered alike, so any of them tells how to show all of it.
    place = -1
    for path in (name, str(Path(name).absolute())):
        place = pc.index(gallery.column("path"), path).as_py() if place < 0 else place
    if place < 0:
        raise NotFoundError(f"'{name}' is not in the gallery; give the id of a hit, or the path of a file in it")
    return replace(gallery.rows([place])[0], window=None)
