"""Read a gallery so that the result is of sound files, at a version that is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from evidex.errors import DamagedError
from evidex.retrieval.soundness.mapped import DamagedVectors
from evidex.retrieval.soundness.seal import INDEX_AGAIN

if TYPE_CHECKING:
    from evidex.retrieval.gallery import Gallery

T = TypeVar("T")
_TRIES = 3


def steadily(gallery: Gallery, refresh: Callable[[], bool], ask: Callable[[], T]) -> T:
    """What ``ask`` finds in ``gallery``; asked again where vectors had to be mended or the version had gone."""
    for _ in range(_TRIES):
        try:
            if gallery.checks.lost and not len(gallery):
                raise DamagedError(f"'{gallery.place}' lost all its rows: {gallery.checks.lost}; {INDEX_AGAIN}")
            found = ask()
            gallery.check()  # what was read may have changed under it
            return found
        except DamagedVectors:
            gallery.remake_vectors()
        except DamagedError:
            # Or a writer has joined the table's pieces since, and removed those of the version that is open here.
            if not refresh():
                raise
    raise DamagedError(f"'{gallery.place}' changes faster than it can be read; ask again in a moment")
