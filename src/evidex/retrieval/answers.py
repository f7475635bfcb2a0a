"""What a search gives back, and how it reads as JSON, as GeoJSON and as a sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from evidex.data.footprints import Footprint, Window
from evidex.retrieval.rows import Kind, Row

Verdict = Literal["answered", "refined", "abstained"]


@dataclass(frozen=True)
class Hit:
    """One row that was found."""

    rank: int
    id: str
    score: float
    """Cosine between query and row."""
    kind: Kind
    path: str
    """Printable; ``file`` opens it."""
    file: Path
    caption: str | None
    width: int | None
    height: int | None
    window: Window | None
    footprint: Footprint | None
    crs: str | None
    acquired: datetime | None

    @classmethod
    def of(cls, row: Row, rank: int, score: float) -> Hit:
        return cls(
            rank=rank,
            id=row.id,
            score=score,
            kind=row.kind,
            path=row.name,
            file=row.file,
            caption=row.caption,
            width=row.width,
            height=row.height,
            window=row.window,
            footprint=row.footprint,
            crs=row.crs,
            acquired=row.acquired,
        )

    def json(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "id": self.id,
            "score": self.score,
            "kind": self.kind,
            "path": self.path,
            "caption": self.caption,
            "width": self.width,
            "height": self.height,
            "window": None if self.window is None else asdict(self.window),
            "footprint": None if self.footprint is None else self.footprint.geojson(),
            "crs": self.crs,
            "acquired": None if self.acquired is None else self.acquired.isoformat(),
        }


@dataclass(frozen=True)
class Refinement:
    """What asking again in other forms changed."""

    copies: int
    entered: tuple[str, ...]
    """Ids of hits that were not there before."""
    left: tuple[str, ...]
    """Ids of hits that are gone."""
    reordered: bool
    uncertainty_before: float


@dataclass(frozen=True)
class Timings:
    """Milliseconds of one query; in a batch, its share."""

    encode: float
    scan: float
    refine: float
    rows: float

    @property
    def total(self) -> float:
        return self.encode + self.scan + self.refine + self.rows


@dataclass(frozen=True)
class Answer:
    """Hits, and how far to trust them."""

    query: str
    hits: tuple[Hit, ...]
    verdict: Verdict
    uncertainty: float
    """u = K/S in (0, 1): the share of belief that no evidence supports, of the query that the hits belong to."""
    percentile: float | None
    """Share of the calibration's queries that were more certain; None without a calibration."""
    searched: int
    """Rows that passed the filters."""
    promise: str | None
    """What the calibration guarantees about answers that are given; None where it was not tested for such a search."""
    refinement: Refinement | None
    timings: Timings

    @property
    def is_calibrated(self) -> bool:
        return self.percentile is not None

    @property
    def explanation(self) -> str:
        """The verdict in a sentence for people."""
        return _explanation(self)

    def json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "verdict": self.verdict,
            "explanation": self.explanation,
            "uncertainty": self.uncertainty,
            "percentile": self.percentile,
            "calibrated": self.is_calibrated,
            "promise": self.promise,
            "searched": self.searched,
            "refinement": None if self.refinement is None else asdict(self.refinement),
            "timings_ms": {**asdict(self.timings), "total": self.timings.total},
            "hits": [hit.json() for hit in self.hits],
        }

    def geojson(self) -> dict[str, Any]:
        """A FeatureCollection; hits without a place have no geometry."""
        features = []
        for hit in self.hits:
            properties = hit.json()
            geometry = properties.pop("footprint")
            features.append({"type": "Feature", "id": hit.id, "geometry": geometry, "properties": properties})
        about = {key: value for key, value in self.json().items() if key not in ("hits", "timings_ms")}
        return {"type": "FeatureCollection", "features": features, "evidex": about}


def _explanation(answer: Answer) -> str:
    if answer.searched == 0:
        return "Nothing was searched: the gallery is empty or no row passes the filters."
    if answer.percentile is None:
        return (
            "Answered, but how far to trust it is not known: this gallery is not calibrated for such queries; "
            "run 'evidex calibrate'."
        )
    share = f"{answer.percentile:.0%}"
    if answer.verdict == "abstained":
        return (
            f"No trustworthy match: {share} of the calibration's questions found more evidence here. "
            "The hits below are the nearest things in the archive, not an answer."
        )
    if answer.verdict == "refined" and answer.refinement is not None:
        changed = len(answer.refinement.entered)
        what = f"{changed} of {len(answer.hits)} hits changed" if changed else "the hits stayed the same"
        return (
            f"Uncertain at first ({share} of the calibration's questions found more evidence), so the question was "
            f"asked again in {answer.refinement.copies} similar forms; {what}. Look twice."
        )
    return (
        f"Answered: the archive supports this well enough ({share} of the calibration's questions found more evidence)."
    )
