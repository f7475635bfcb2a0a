"""A new gallery: what lies in it before its first row."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from evidex.retrieval.gallery_folder import check_free, held
from evidex.retrieval.gallery_info import FORMAT, GalleryInfo, write_info
from evidex.retrieval.gallery_model import OWN_MODEL, known_source, put_model
from evidex.retrieval.sealing import seal_all
from evidex.retrieval.soundness.seal import Seal
from evidex.retrieval.table import new_table
from evidex.storage.objects import Place

if TYPE_CHECKING:
    from evidex.encoders.model import Model


def make_gallery(place: Place, model: Model, source: str | Path | None) -> tuple[GalleryInfo, Seal]:
    """Make an empty gallery for vectors of ``model``; GalleryError where none can be made."""
    model.check_inner_product()
    check_free(place)
    place.mkdir(parents=True, exist_ok=True)
    with held(place, wait=True):
        check_free(place)  # another process may have made it meanwhile
        where = known_source(model, source)
        if where == OWN_MODEL:
            put_model(place, model)
        info = GalleryInfo(FORMAT, model.fingerprint, where, model.dim, model.temperature)
        new_table(place, info.dim)
        seal, _ = seal_all(place, asdict(info), 1)
        write_info(place, info)  # the last: with it the gallery is there
    return info, seal
