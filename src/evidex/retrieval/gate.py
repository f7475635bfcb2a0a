"""Which queries are answered at once and which are deferred.

A gate sees one number a query, higher for less certain, and does not mind which. Three ways to set it: the most
uncertain share of a batch (`deferred`, as in the paper), a threshold from stored calibration queries
(`Calibration.gate`), or a threshold with a promise (`evidex.retrieval.certainty.guarantee`).

The uncertainty u = K/S of a query depends on the gallery: S sums over its K items. Yet u = sigmoid(-m), where m =
log(S/K - 1) is the log of the *mean* evidence, and a mean keeps its size when the gallery grows by more of the same.
So calibration stores -m (`certainty_lost`), or what was learnt from it and other signs
(`evidex.retrieval.certainty.reckoning`), and reports where a new query stands among the calibration queries; it
remembers the K it was made with, because a gallery of other content is another matter.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evidex.documents import parse_json
from evidex.errors import DataError, InputError, ModelError
from evidex.files import write_atomic
from evidex.retrieval.certainty.guarantee import Guarantee
from evidex.retrieval.certainty.reckoning import RECKONED, Reckoning
from evidex.retrieval.certainty.reckoning_store import reckoning_from_json, reckoning_json
from evidex.retrieval.refine import deferred
from evidex.retrieval.scan.partial import Partial, ScanResult
from evidex.retrieval.soundness.seal import checksum_of

__all__ = ["Calibration", "Direction", "Gate", "certainty_lost", "deferred"]

Scores = NDArray[np.float64]
Direction = Literal["text", "image"]
_DIRECTIONS = ("text", "image")
_FORMAT = 4
# Guarantees of format 1 do not say what they were tested for, and formats before 3 have no reckoning.
_READABLE = (1, 2, 3, 4)
_FIRST_WITH_CHECK = 4


@dataclass(frozen=True)
class Gate:
    """Defers a query whose score is above the threshold."""

    threshold: float

    def defers(self, scores: ArrayLike) -> NDArray[np.bool_]:
        """For each score; one that is NaN is deferred too."""
        return ~(np.asarray(scores, np.float64) <= self.threshold)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Scores of known queries of one kind against one gallery, with one model."""

    model_fingerprint: str
    direction: Direction
    """What the queries are."""
    gallery_size: int
    score: str
    """Name of the score, so that values of another one are not compared with these."""
    scores: Scores
    """Sorted; higher is less certain."""
    guarantees: tuple[Guarantee, ...] = ()
    reckoning: Reckoning | None = None
    """Where the score is the learnt one: what was learnt."""
    knowing: str | None = None
    """Which texts the model knew (`Acquaintance.digest`): strange ones were left out. None where that was not told."""

    def __post_init__(self) -> None:
        values = np.sort(np.asarray(self.scores, np.float64))
        if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
            raise InputError(f"calibration scores of shape {values.shape}; give a finite number for each query")
        if self.direction not in _DIRECTIONS:
            raise InputError(f"direction is {self.direction!r}; give 'text' or 'image', the kind of the queries")
        if (self.score == RECKONED) != (self.reckoning is not None):
            raise InputError(
                f"score {self.score!r} with{'out' * (self.reckoning is None)} a reckoning; calibrate again"
            )
        values.flags.writeable = False
        object.__setattr__(self, "scores", values)

    def percentile(self, scores: ArrayLike) -> Scores:
        """Where new queries stand, in [0, 1]: the share of calibration queries that were more certain, ties by half."""
        values = np.asarray(scores, np.float64)
        below = np.searchsorted(self.scores, values, side="left")
        up_to = np.searchsorted(self.scores, values, side="right")
        return np.asarray((below + up_to) / (2 * len(self.scores)))

    def gate(self, ratio: float) -> Gate:
        """A gate that defers at most the share ``ratio`` of the calibration queries, and as many of them as it can."""
        if not 0 <= ratio <= 1:
            raise InputError(f"deferral ratio {ratio:g} is not between 0 and 1")
        # A product like 0.1 · 30 comes out just above its whole number.
        answered = len(self.scores) - int(np.floor(ratio * len(self.scores) + 1e-9))
        if answered == 0:
            return Gate(-np.inf)
        return Gate(float(self.scores[answered - 1]) if ratio > 0 else np.inf)

    def check(self, model_fingerprint: str, direction: Direction, score: str, *, knowing: str | None = None) -> None:
        """Refuse to judge queries of another model, kind or score, or with a model that has been told other texts."""
        if model_fingerprint != self.model_fingerprint:
            raise ModelError(
                f"the calibration was made with model {self.model_fingerprint[:12]}, not {model_fingerprint[:12]};"
                " run evidex calibrate with this model"
            )
        if direction != self.direction:
            raise InputError(f"the calibration is for {self.direction} queries, not {direction}; calibrate for those")
        if score != self.score:
            raise InputError(f"the calibration holds the score {self.score!r}, not {score!r}; calibrate with {score!r}")
        if None not in (knowing, self.knowing) and knowing != self.knowing:
            raise ModelError(
                f"the calibration of {self.direction} queries was made when the model knew other texts;"
                " run evidex calibrate, and restart servers of this gallery"
            )

    def dumps(self) -> str:
        """What `load` reads: JSON with a checksum of itself."""
        content = {
            "format": _FORMAT,
            "model_fingerprint": self.model_fingerprint,
            "direction": self.direction,
            "gallery_size": self.gallery_size,
            "score": self.score,
            "scores": self.scores.tolist(),
            "guarantees": [asdict(guarantee) for guarantee in self.guarantees],
            "reckoning": None if self.reckoning is None else reckoning_json(self.reckoning),
            "knowing": self.knowing,
        }
        return json.dumps({**content, "check": checksum_of(content)}, indent=1, allow_nan=False) + "\n"

    def save(self, path: Path) -> None:
        write_atomic(path, self.dumps())

    @classmethod
    def load(cls, path: Path) -> Calibration:
        try:
            content: Any = parse_json(path.read_text(encoding="utf-8"))
            version = content["format"]
            if isinstance(version, int) and version > _FORMAT:
                raise DataError(f"{str(path)!r} has calibration format {version}, newer than {_FORMAT}; update evidex")
            if version not in _READABLE:
                raise ValueError(f"format {version!r}")
            check = content.pop("check", None)
            if version >= _FIRST_WITH_CHECK and check != checksum_of(content):
                raise ValueError("its checksum is wrong")
            reckoning, knowing = content.get("reckoning"), content.get("knowing")
            return cls(
                str(content["model_fingerprint"]),
                content["direction"],
                int(content["gallery_size"]),
                str(content["score"]),
                np.array(content["scores"], np.float64),
                tuple(Guarantee(**guarantee) for guarantee in content["guarantees"]),
                None if reckoning is None else reckoning_from_json(reckoning),
                None if knowing is None else str(knowing),
            )
        except FileNotFoundError:
            raise DataError(f"{str(path)!r} does not exist; make it with evidex calibrate") from None
        except (OSError, KeyError, TypeError, ValueError, AttributeError, InputError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{str(path)!r} is no calibration ({error}); make it again with evidex calibrate") from None


def certainty_lost(result: Partial | ScanResult) -> Scores:
    """-m, the negative log of the mean evidence: u on the scale of a log-odds, whatever the size of the gallery."""
    return -np.asarray(result.log_mean_evidence)
