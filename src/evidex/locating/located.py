"""Where something is in a scene, and how that reads as a sentence, as JSON and as GeoJSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from evidex.data.footprints import Point
from evidex.locating.asked import Asked
from evidex.locating.heat import Heat
from evidex.locating.peaks import Spot
from evidex.retrieval.denial import is_dash
from evidex.retrieval.wording import counted_words, dash_words, mended_words, named, offered, state_words, unlearned

PRESENT = 0.18
"""Likeness that the best place must have: on mosaics nine of ten things that are there have it, one in six that are not
(docs/locate.md)."""
SURE = 0.30
"""Likeness of a place to rely on."""


class Finding(StrEnum):
    """What came of looking."""

    FOUND = "found"
    PERHAPS = "perhaps"
    NOTHING = "nothing"
    OUT_OF_DOMAIN = "out_of_domain"
    UNJUDGED = "unjudged"
    EMPTY = "empty"

    @property
    def is_flat(self) -> bool:
        """Whether the map shows nothing."""
        return self in (Finding.NOTHING, Finding.OUT_OF_DOMAIN, Finding.EMPTY)


@dataclass(frozen=True)
class Peak:
    """A place that is like what was asked for."""

    spot: Spot
    place: Point | None
    """Longitude and latitude; None where the scene lies nowhere."""

    def json(self) -> dict[str, Any]:
        spot = self.spot
        place = None if self.place is None else {"longitude": self.place[0], "latitude": self.place[1]}
        return {"score": spot.score, "x": spot.x, "y": spot.y, "window": asdict(spot.box), "place": place}


@dataclass(frozen=True, eq=False)
class Located:
    """The map of likeness of one scene to one question, and its peaks."""

    asked: Asked
    scene: str
    finding: Finding
    heat: Heat
    """Flat where nothing was found."""
    peaks: tuple[Peak, ...]
    windows: int
    """How many were looked at."""
    best: float | None
    """The similarity of the window that is most alike; None where none was looked at."""

    @property
    def headline(self) -> str:
        """In a few words."""
        thing, count = self.asked.thing, len(self.peaks)
        places = f"{count} place{'s look' if count > 1 else ' looks'}"
        return {
            Finding.FOUND: f"{places} like {thing}",
            Finding.PERHAPS: f"Perhaps: {places} faintly like {thing}",
            Finding.NOTHING: f"Nothing here looks like {thing}",
            Finding.OUT_OF_DOMAIN: "The model does not know this",
            Finding.UNJUDGED: f"The places most like {thing}",
            Finding.EMPTY: "There is nothing to see in this scene",
        }[self.finding]

    @property
    def explanation(self) -> str:
        """In a sentence or two."""
        return " ".join(filter(None, (mended_words(self.asked.reading), self._sentence(), self.doubts)))

    @property
    def doubts(self) -> str:
        """What a map of the question may leave out; nothing where that is nothing."""
        reading, left = self.asked.reading, self.asked.left_out
        gap = f"{unlearned(reading, self._strange)}; the map may leave that out." if self._strange else ""
        unwanted = f"What is not wanted has no place on a map: {named(left)} was left out." if left else ""
        return " ".join(filter(None, (*self._overlooked(), unwanted, gap, offered(reading))))

    @property
    def _strange(self) -> tuple[str, ...]:
        """Words of a question that was understood otherwise which were never taught, or in passing."""
        reading = self.asked.reading
        return reading.ignored_words if reading.new_words else (*reading.ignored_words, *reading.in_passing)

    def _overlooked(self) -> Iterator[str]:
        """That a place may show what was denied, another number of things, or things in another state."""
        reading = self.asked.reading
        if self.finding.is_flat:
            return
        if reading.negated:
            asked = f"The model does not understand '{reading.negated}' and looks for what follows it all the same."
            yield dash_words(reading.negated) if is_dash(reading.negated) else asked
        if reading.counted:
            yield counted_words(reading)
        if reading.state:
            yield state_words(reading, "places")

    def _sentence(self) -> str:
        looked = f"{self.windows} window{'s were' if self.windows != 1 else ' was'} looked at"
        match self.finding:
            case Finding.FOUND:
                return f"{looked}; the best place is more alike than {self.heat.peak:.0%} of right answers are."
            case Finding.PERHAPS:
                return f"{looked}; the best place is hardly more alike than what is not there: look yourself."
            case Finding.NOTHING:
                return f"{looked}, and no place is like it by more than chance; the map is flat."
            case Finding.OUT_OF_DOMAIN:
                return f"It never learned {named(self.asked.reading.new_words)}, nor anything like it; the map is flat."
            case Finding.UNJUDGED:
                return f"{looked}. How alike a right place is, is not known here: compare the places with each other."
        return "All its pixels are empty or of one colour."

    def without_map(self) -> Located:
        """All that is told of it, in one cell instead of millions: what is kept of each of many scenes."""
        heat = self.heat
        side = max(heat.width, heat.height)
        return replace(self, heat=Heat(np.full((1, 1), heat.peak, np.float32), side, heat.width, heat.height))

    def json(self) -> dict[str, Any]:
        return {
            "query": self.asked.shown,
            "scene": self.scene,
            "finding": self.finding.value,
            "headline": self.headline,
            "explanation": self.explanation,
            "width": self.heat.width,
            "height": self.heat.height,
            "windows": self.windows,
            "best_similarity": self.best,
            "floor": self.asked.bar.floor,
            "peak": self.heat.peak,
            "new_words": list(self.asked.reading.new_words),
            "ignored_words": list(self.asked.reading.ignored_words),
            "peaks": [peak.json() for peak in self.peaks],
        }

    def features(self) -> list[dict[str, Any]]:
        """The peaks as GeoJSON features, which know no coordinates but degrees: without one where the scene lies
        nowhere; their pixels are among the properties."""
        features = []
        for rank, peak in enumerate(self.peaks, start=1):
            properties = {"rank": rank, "query": self.asked.shown, "scene": self.scene, **peak.json()}
            geometry = None if peak.place is None else {"type": "Point", "coordinates": list(peak.place)}
            features.append({"type": "Feature", "geometry": geometry, "properties": properties})
        return features


def collection(located: list[Located]) -> dict[str, Any]:
    """The peaks of several scenes as one FeatureCollection, with what was found in each."""
    about = [{key: value for key, value in one.json().items() if key != "peaks"} for one in located]
    return {
        "type": "FeatureCollection",
        "features": [part for one in located for part in one.features()],
        "evidex": about,
    }
