"""The gallery that an index command writes to, from before it is there until it is calibrated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from evidex.cli.terminal import say
from evidex.storage.objects import ObjectPlace, Place

if TYPE_CHECKING:
    from evidex.retrieval.gallery import Gallery
    from evidex.retrieval.indexing import IndexOptions


@contextmanager
def working(options: IndexOptions, gallery: Place, cluster: str | None) -> Iterator[IndexOptions]:
    """The options, with the workers of a cluster where one is named."""
    if cluster is None:
        yield options
        return
    from dataclasses import replace

    from evidex.cluster.connection import Cluster
    from evidex.cluster.indexing import ClusterWorkforce

    with Cluster(cluster):
        yield replace(options, workforce=ClusterWorkforce(gallery))


@contextmanager
def stopping(gallery: Place, made: list[Place]) -> Iterator[None]:
    """Say what stays where a signal ends the work; ``made`` is what was made for this gallery."""
    from evidex.cli.stopping import exit_code, stoppable

    try:
        with stoppable():
            yield
    except KeyboardInterrupt as stop:
        say(what_stays(gallery, made), err=True)
        raise typer.Exit(exit_code(stop)) from None


def open_or_create(path: Place, model: str | None) -> Gallery:
    from evidex.encoders.model import load_model
    from evidex.errors import GalleryError
    from evidex.retrieval.gallery import Gallery

    if not (path / "gallery.json").exists():
        try:
            return Gallery.create(path, load_model(model), source=model)
        except GalleryError:
            if not (path / "gallery.json").exists():
                raise
            # Another run has made it meanwhile.
    return Gallery.open(path, load_model(model) if model is not None else None)


def what_stays(path: Place, made: list[Place]) -> str:
    """What an interrupted run leaves; a new gallery without a row is taken back."""
    from evidex.retrieval.gallery import Gallery

    rows = 0
    if (path / "gallery.json").exists():
        opened = Gallery.open(path)
        rows = len(opened)
        remove(opened, made)
    if not rows and made:
        return "stopped before anything was indexed; run it again to begin"
    return f"stopped; {rows} rows are in {path} and stay; run it again to go on"


def new_folders(gallery: Place) -> list[Place]:
    """The folders that making this gallery makes, the gallery's own first; none where it is there already."""
    if (gallery / "gallery.json").exists():
        return []
    if isinstance(gallery, ObjectPlace):
        return [gallery]
    above = gallery.absolute()
    return [gallery, *(folder for folder in above.parents if not folder.exists())]


def remove(gallery: Gallery, made: list[Place]) -> None:
    """Take back a gallery that got no row, and the folders that were made for it as far as they are empty."""
    import shutil
    from contextlib import suppress

    from evidex.errors import GalleryError

    if not made:
        return
    if isinstance(made[0], ObjectPlace):
        with suppress(GalleryError), gallery.writing(at_once=True):
            if not len(gallery):
                made[0].remove_all()
        return
    with suppress(GalleryError), gallery.writing():  # nobody else is about to put rows in
        if len(gallery):
            return
        for entry in made[0].iterdir():
            with suppress(OSError):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for folder in made:
        with suppress(OSError):
            Path(str(folder)).rmdir()


def calibrated(gallery: Gallery) -> list[str]:
    import numpy as np

    from evidex.retrieval.certainty.calibration_store import calibration_name
    from evidex.retrieval.certainty.self_calibrating import self_calibrate

    sources = []
    for outcome in self_calibrate(gallery, np.random.default_rng(0)):
        direction = outcome.calibration.direction
        given = (gallery.place / calibration_name(direction, outcome.target)).exists()
        by = "those given to evidex calibrate" if given else f"{len(outcome.calibration.scores)} {outcome.source}"
        sources.append(f"{direction} queries: {by}")
    return sources
