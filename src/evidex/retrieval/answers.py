"""What a search gives back, and how it reads as JSON, as GeoJSON and as a sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from evidex.retrieval import wording
from evidex.retrieval.hits import Hit, Refinement
from evidex.retrieval.standing import Reason, Standing, Verdict


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
    standing: Standing
    """How far to trust them, and why."""
    uncertainty: float
    """u = K/S in (0, 1): the share of belief that no evidence supports, of the query that the hits belong to."""
    searched: int
    """Rows that passed the filters."""
    guarantee: str | None
    """What the calibration guarantees about answers that are given; None where it was not tested for such a search."""
    refinement: Refinement | None
    timings: Timings
    emptiness: str | None = None
    """Why no row was searched, where somebody looked (`evidex.retrieval.emptiness`)."""
    lacking: str | None = None
    """That the gallery lacks rows since a repair, in a sentence."""

    @property
    def verdict(self) -> Verdict:
        return self.standing.verdict

    @property
    def percentile(self) -> float | None:
        """Share of the calibration's queries that were more certain; None where there is nothing to compare with."""
        return self.standing.percentile

    @property
    def apart_below(self) -> float | None:
        """Hits less similar than this are too far from the best for the answer to stand on them; None: all belong.

        What right answers mostly reach, or half of the best where that is not known or the best does not reach it.
        An answer that is refused stands on none of its hits, and sets none apart.
        """
        best, least = self.hits[0].score if self.hits else 0.0, self.standing.bar.least
        if self.standing.level.refused or not best > 0:
            return None
        return least if least is not None and best >= least else best / 2

    @property
    def apart(self) -> int:
        """How many of the hits, the last ones, lie that far below."""
        below = self.apart_below
        return 0 if below is None else sum(hit.score < below for hit in self.hits)

    @property
    def apart_line(self) -> str | None:
        """What to say about those; None where there are none."""
        below = self.apart_below
        if below is None or not self.apart:
            return None
        return wording.apart_line(self.apart, below, usual=below == self.standing.bar.least)

    @property
    def headline(self) -> str:
        """The standing for people, in a few words."""
        return wording.HEADLINES[self.standing.level]

    @property
    def explanation(self) -> str:
        """The standing in a sentence for people, with what the gallery lacks."""
        said = wording.explanation(self.standing, self.searched, self.emptiness)
        return said if self.lacking is None else f"{said} {self.lacking}"

    @property
    def details(self) -> tuple[str, ...]:
        """What that stands on, with its numbers, a sentence each."""
        return wording.details(self.standing, self.hits, self.refinement)

    def json(self) -> dict[str, Any]:
        """What the command line and the server give out; ``evidex.server.schemas`` describes it."""
        standing, reading = self.standing, self.standing.reading
        return {
            "query": self.query,
            "verdict": standing.verdict,
            "standing": standing.level.value,
            "tone": standing.level.tone,
            "reasons": [reason.value for reason in standing.reasons],
            "headline": self.headline,
            "explanation": self.explanation,
            "details": list(self.details),
            "uncertainty": self.uncertainty,
            "percentile": standing.percentile,
            "chance": standing.chance,
            "chance_top": standing.chance_top,
            "new_words": list(reading.new_words),
            "ignored_words": list(reading.ignored_words),
            "did_you_mean": list(reading.did_you_mean),
            "mended": [asdict(slip) for slip in reading.mended],
            "read_in_part": reading.in_part,
            "floor": standing.floor,
            "faint": Reason.FAINT in standing.reasons,
            "apart": self.apart,
            "apart_line": self.apart_line,
            "calibrated": standing.is_calibrated,
            "guarantee": self.guarantee,
            "searched": self.searched,
            "lacking": self.lacking,
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
