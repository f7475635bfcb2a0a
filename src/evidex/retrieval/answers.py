"""What a search gives back, and how it reads as JSON, as GeoJSON and as a sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
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

    @property
    def shown_score(self) -> float:
        """The score without what rounding adds beyond a cosine's range."""
        return min(max(self.score, -1.0), 1.0)

    @property
    def corners(self) -> list[list[float]] | None:
        """Upper left, upper right, lower right, lower left corner of the picture, each longitude and latitude."""
        if self.footprint is None or len(self.footprint.ring) % 4:
            return None
        # The ring begins at the upper left corner and runs down the left side.
        side = len(self.footprint.ring) // 4
        return [list(self.footprint.ring[i * side]) for i in (0, 3, 2, 1)]

    def json(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "id": self.id,
            "score": self.shown_score,
            "kind": self.kind,
            "path": self.path,
            "caption": self.caption,
            "width": self.width,
            "height": self.height,
            "window": None if self.window is None else asdict(self.window),
            "footprint": None if self.footprint is None else self.footprint.geojson(),
            "corners": self.corners,
            "crs": self.crs,
            "acquired": None if self.acquired is None else _utc(self.acquired),
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
    """Share of the calibration's queries that were more certain; None without a calibration, or for a strange one."""
    searched: int
    """Rows that passed the filters."""
    promise: str | None
    """What the calibration guarantees about answers that are given; None where it was not tested for such a search."""
    refinement: Refinement | None
    timings: Timings
    chance: float | None = None
    """That a right row is among the first ``chance_top``, learnt from queries with known answers; None where none were
    given, where far more or fewer rows were searched than then, and for a query that was asked again."""
    chance_top: int | None = None
    new_words: tuple[str, ...] = ()
    """Words that make the question strange: the model was never taught them, nor anything like the question."""
    ignored_words: tuple[str, ...] = ()
    """Words that the model was never taught, in a question that is like what it knows all the same."""
    did_you_mean: tuple[str, ...] = ()
    """Words it was taught that are spelt nearly like these or those."""
    read_in_part: bool = False
    """Whether the question is longer than what the model reads."""
    floor: float | None = None
    """Where even the best match is none: the least similarity that one has."""
    faint: bool = False
    """Whether the best match is less similar than three of four right answers are."""
    least_match: float | None = None
    """The similarity that nine of ten right answers have at least; None where the model does not know."""
    emptiness: str | None = None
    """Why no row was searched, where somebody looked (`evidex.retrieval.emptiness`)."""

    @property
    def is_calibrated(self) -> bool:
        return self.percentile is not None

    @property
    def apart_below(self) -> float | None:
        """Hits less similar than this are too far from the best for the answer to stand on them; None: all belong.

        What right answers mostly reach, or half of the best where that is not known or the best does not reach it.
        An answer that is refused stands on none of its hits, and sets none apart.
        """
        best = self.hits[0].score if self.hits else 0.0
        if self.verdict == "abstained" or not best > 0:
            return None
        return self.least_match if self.least_match is not None and best >= self.least_match else best / 2

    @property
    def apart(self) -> int:
        """How many of the hits, the last ones, lie that far below."""
        below = self.apart_below
        return 0 if below is None else sum(hit.score < below for hit in self.hits)

    @property
    def apart_line(self) -> str | None:
        """What to say about those; None where there are none."""
        from evidex.retrieval.wording import apart_line

        return apart_line(self)

    @property
    def headline(self) -> str:
        """The verdict for people, in a few words."""
        from evidex.retrieval.wording import headline

        return headline(self)

    @property
    def explanation(self) -> str:
        """The verdict in a sentence for people."""
        from evidex.retrieval.wording import explanation

        return explanation(self)

    def json(self) -> dict[str, Any]:
        """What the command line and the server give out; ``evidex.server.schemas`` describes it."""
        return {
            "query": self.query,
            "verdict": self.verdict,
            "headline": self.headline,
            "explanation": self.explanation,
            "uncertainty": self.uncertainty,
            "percentile": self.percentile,
            "chance": self.chance,
            "chance_top": self.chance_top,
            "new_words": list(self.new_words),
            "ignored_words": list(self.ignored_words),
            "did_you_mean": list(self.did_you_mean),
            "read_in_part": self.read_in_part,
            "floor": self.floor,
            "faint": self.faint,
            "apart": self.apart,
            "apart_line": self.apart_line,
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


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
