"""A row that was found, and what asking again changed about those that are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evidex.data.footprints import Footprint, Window
from evidex.data.rendering import Rendering
from evidex.data.stac.item import StacItem
from evidex.retrieval.rows import Kind, Row


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
    item: StacItem | None = None
    """The item of the catalog that it comes from."""
    rendering: Rendering | None = None
    """How a raster is shown."""

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
            item=row.item,
            rendering=row.rendering,
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
        if self.crs is None and len(self.footprint.ring) != 4:
            return None  # an outline that a catalog tells, and not the picture's edge
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
            "acquired": None if self.acquired is None else utc(self.acquired),
            "item": None if self.item is None else self.item.id,
            "collection": None if self.item is None else self.item.collection,
            "cloud_cover": None if self.item is None else self.item.cloud_cover,
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


def utc(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
