"""Warm-up, once in a process: loading the model, mapping the vectors, compiling the scan. No part of a query."""

from __future__ import annotations

import time

import numpy as np

from evidex.retrieval.gallery import Gallery
from evidex.retrieval.queries import Direction
from evidex.retrieval.scan.plain import FEW_VALUES
from evidex.retrieval.scan.scan import scan


def warm_up(gallery: Gallery, direction: Direction, *, scans: bool = True) -> float:
    """Do it now, for queries of one kind; the seconds it took. ``scans``: whether this process does that itself."""
    start = time.perf_counter()
    if direction == "text":
        query = gallery.model.encode_texts(["a first look"])
    else:
        from PIL import Image

        query = gallery.model.encode_images([Image.new("RGB", (8, 8), "grey")])
    if scans and len(gallery):
        # A model may have nothing to say about a grey square; any direction will do.
        vector = np.nan_to_num(query).astype(np.float32)
        values = gallery.mapped.values[: FEW_VALUES // gallery.dim + 1]  # so many go the way that all of them will
        scan(vector, np.asarray(values), temperature=gallery.temperature, top=1)
        gallery.rows([0])
    return time.perf_counter() - start
