"""Copies of a picture on several machines."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evidex.retrieval.filters import Filters, Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.parts.joined import JoinedRows, Parts
from evidex.retrieval.parts.part import Part
from evidex.retrieval.parts.wire import PartFound
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from evidex.retrieval.searchable import OwnRows
from tests.retrieval.archive import tiny_model


class _Elsewhere(Part):
    """A part that is asked without a network."""

    gallery: Gallery

    def scan(self, vectors: np.ndarray, filters: Filters, target: Target, top: int) -> PartFound:
        found, rows = Retriever(self.gallery).scan_rows(vectors, filters, target, top)
        places = np.unique(found.ids)
        return PartFound(found, places, tuple(rows[place] for place in places.tolist()), self.gallery.version)


def _gallery(folder: Path, names: list[str], vectors: np.ndarray) -> Gallery:
    """Pictures whose content is the number in their name."""
    made = Gallery.create(folder, tiny_model())
    rows = [Row(item_id(name), name, "image", f"{int(name[-1]):064x}", phash=int(name[-1]) * 1000) for name in names]
    made.append(rows, vectors)
    return made


def test_the_same_content_on_two_machines_is_one_hit(tmp_path: Path) -> None:
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((tiny_model().dim, 4)))[0].T.astype(np.float32)
    here = _gallery(tmp_path / "here", ["a1", "b1", "a2"], vectors[[1, 1, 2]])
    there = _gallery(tmp_path / "there", ["c1", "c3"], vectors[[1, 3]])
    part = _Elsewhere("http://elsewhere:1")
    object.__setattr__(part, "gallery", there)
    parts = Parts([part])
    try:
        retriever = Retriever(here, rows=JoinedRows(OwnRows(here), parts))
        hits = retriever.search(text="a river", top=5).hits
        assert len(hits) == 3
        (one,) = (hit for hit in hits if hit.copies)
        assert {one.path, *(place.path for place in one.copies)} == {"a1", "b1", "c1"}
        assert all(place.exact for place in one.copies)
        assert [hit.copies for hit in retriever.search(text="a river", top=5, copies=True).hits] == [()] * 5
        assert retriever.search(text="a river", top=5).searched == 5
    finally:
        parts.close()
