"""Where a gallery keeps its calibrations, and what the gates make of one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evidex.errors import DataError, GalleryError
from evidex.files import write_atomic
from evidex.retrieval.certainty.guarantee import Guarantee
from evidex.retrieval.certainty.scores import score_named
from evidex.retrieval.certainty.signs import FIRST, Vectors
from evidex.retrieval.filters import Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.gate import Calibration, Direction, Gate
from evidex.retrieval.scan.partial import ScanResult
from evidex.retrieval.soundness.seal import digest_of_bytes, drop, store

_LIKE_SIZE = 1.25


@dataclass(frozen=True)
class Policy:
    """When to refine and when to abstain, for one kind of query against one kind of row."""

    calibration: Calibration
    refine: Gate
    abstain: Gate
    refine_ratio: float
    guarantee: Guarantee | None
    """That which the threshold for abstaining comes from."""
    given: bool = False
    """Whether somebody gave the queries; otherwise the gallery made the calibration of its own content."""

    @classmethod
    def of(cls, calibration: Calibration, refine_ratio: float, abstain_ratio: float, *, given: bool = False) -> Policy:
        """A guaranteed threshold decides about abstaining where there is one, otherwise the ratio does."""
        refine, abstain, kept = calibration.gate(refine_ratio), calibration.gate(abstain_ratio), None
        for guarantee in calibration.guarantees:
            if guarantee.threshold is not None:
                abstain, kept = Gate(guarantee.threshold), guarantee
                break
        return cls(calibration, refine, abstain, refine_ratio, kept, given)

    @property
    def least_top(self) -> int:
        """How many rows a scan must give for the score."""
        return 1 if self.calibration.reckoning is None else FIRST

    def score(self, result: ScanResult, queries: Vectors, gallery: Vectors) -> NDArray[np.float64]:
        """Of ``queries`` (queries, dim) whose scan over rows of ``gallery`` (rows, dim) gave ``result``."""
        reckoning = self.calibration.reckoning
        if reckoning is None:
            return score_named(self.calibration.score)(result)
        return reckoning.doubt(result, queries, gallery)

    def chances(self, scores: NDArray[np.float64], *, searched: int) -> NDArray[np.float64] | None:
        """The probability that an answer with such a score is right, among ``searched`` rows.

        None where it was not learnt, and where far more or fewer rows were searched: the order of queries survives
        that, but among fewer rows more answers are right.
        """
        reckoning, size = self.calibration.reckoning, self.calibration.gallery_size
        if reckoning is None or not size / _LIKE_SIZE <= searched <= size * _LIKE_SIZE:
            return None
        return reckoning.chances(scores)

    @property
    def chance_top(self) -> int | None:
        """Among how many hits a right row counted when the chances were learnt."""
        return None if self.calibration.reckoning is None else self.calibration.reckoning.top

    def promise(self, *, top: int, searched: int) -> str | None:
        """What is guaranteed of a search for ``top`` hits among ``searched`` rows, none of them filtered out."""
        guarantee = self.guarantee
        if guarantee is None or not guarantee.holds_for(top=top, refine_ratio=self.refine_ratio, gallery_size=searched):
            return None
        return guarantee.describe()


def calibration_path(gallery: Gallery, direction: Direction, target: Target, *, by_itself: bool = False) -> Path:
    """``by_itself``: that which the gallery made of its own content, used where no other is given."""
    return gallery.path / "calibration" / f"{direction}-to-{target}{'-by-itself' * by_itself}.json"


def known_texts(gallery: Gallery, direction: Direction) -> str | None:
    """What a calibration records of the model beside its fingerprint; "" for a model that tells no text strange.

    None for image queries: of these none is left out as strange.
    """
    if direction == "image":
        return None
    acquaintance = gallery.model.acquaintance
    return "" if acquaintance is None else acquaintance.digest


def store_calibration(gallery: Gallery, calibration: Calibration, target: Target, *, by_itself: bool = False) -> None:
    """Put a calibration into the gallery, and its checksum into the seal."""
    path = calibration_path(gallery, calibration.direction, target, by_itself=by_itself)
    content = calibration.dumps()
    path.parent.mkdir(exist_ok=True)
    name = str(path.relative_to(gallery.path))
    store(gallery.path, name, lambda place: write_atomic(place, content), digest_of_bytes(content.encode()))


def forget(gallery: Gallery) -> None:
    """Drop the calibrations that were given; those that the gallery made of its own content stay."""
    paths = (gallery.path / "calibration").glob("*.json")
    drop(gallery.path, [str(p.relative_to(gallery.path)) for p in paths if not p.stem.endswith("-by-itself")])


def load_policy(
    gallery: Gallery, direction: Direction, target: Target, refine_ratio: float, abstain_ratio: float
) -> Policy | None:
    """The stored calibration's gates; None if the gallery has none for such queries."""
    paths = [calibration_path(gallery, direction, target, by_itself=by_itself) for by_itself in (False, True)]
    path = next((path for path in paths if path.exists() or _must_be_there(gallery, path)), None)
    if path is None:
        return None
    gallery.checks.check([str(path.relative_to(gallery.path))])
    try:
        calibration = Calibration.load(path)
    except DataError as error:
        raise GalleryError(str(error)) from None
    knowing = None if calibration.knowing is None else known_texts(gallery, direction)
    calibration.check(gallery.info.model_fingerprint, direction, calibration.score, knowing=knowing)
    return Policy.of(calibration, refine_ratio, abstain_ratio, given=path == paths[0])


def _must_be_there(gallery: Gallery, path: Path) -> bool:
    return gallery.checks.expects(str(path.relative_to(gallery.path)))
