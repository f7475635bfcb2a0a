"""What goes in and out, for the schema at /openapi.json."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from evidex.data.acquired import parse_time
from evidex.data.footprints import Bounds
from evidex.errors import InputError
from evidex.retrieval.answers import Answer
from evidex.retrieval.filters import Filters, Target
from evidex.retrieval.hits import Hit
from evidex.retrieval.refine import ALWAYS, AS_CALIBRATED, NEVER, Refining
from evidex.retrieval.rows import Row
from evidex.retrieval.standing import Level, Reason, Tone, Verdict
from evidex.retrieval.wording import MOST
from evidex.server.examples import ANSWER, HIT

Mode = Literal["auto", "plain", "careful"]
_REFINE: dict[Mode, Refining] = {"auto": AS_CALIBRATED, "plain": NEVER, "careful": ALWAYS}


def _number(value: object) -> object:
    """A truth value is no number, though Python counts with it: "top": true is a slip, not a 1."""
    if isinstance(value, bool):
        raise ValueError("give a number")
    return value


_NUMBER = BeforeValidator(_number)


class _Question(BaseModel):
    """How to search, and which rows may be found."""

    # Texts differ from query to query; a cache of them would fill with what is never asked again.
    model_config = ConfigDict(extra="forbid", cache_strings="keys")

    # Its bounds are checked once, by `check_top`, so that one message tells them.
    top: Annotated[
        int,
        Field(json_schema_extra={"minimum": 1}, description="How many hits; the server's limit is in /gallery."),
        _NUMBER,
    ] = 12
    mode: Annotated[
        Mode,
        Field(
            description="auto: ask again where uncertain; plain: never ask again; "
            "careful: always, unless the question is outside the model's domain."
        ),
    ] = "auto"
    among: Annotated[Target | None, Field(description="Look among images (the default) or texts.")] = None
    bbox: Annotated[
        list[Annotated[float, _NUMBER]] | None,
        Field(min_length=4, max_length=4, description="west, south, east, north in degrees; west > east crosses 180°."),
    ] = None
    after: Annotated[str | None, Field(max_length=40, description="Taken at this time or later.")] = None
    before: Annotated[str | None, Field(max_length=40, description="Taken earlier than this.")] = None
    glob: Annotated[str | None, Field(max_length=300, description="Matches the path, or its end.")] = None
    collection: Annotated[str | None, Field(max_length=300, description="Of this STAC collection.")] = None
    max_cloud: Annotated[float | None, Field(ge=0, le=100, description="Most clouds, in percent."), _NUMBER] = None

    without: Annotated[
        list[str], Field(max_length=8, description="What should not be there; best a kind of scene.")
    ] = []
    copies: Annotated[bool, Field(description="Show every copy of a picture; otherwise each picture once.")] = False

    @property
    def refine(self) -> Refining:
        return _REFINE[self.mode]

    def filters(self) -> Filters:
        return self._filters(None if self.bbox is None else Bounds(*self.bbox))

    def _filters(self, box: Bounds | None) -> Filters:
        after, before = _time(self.after, "after"), _time(self.before, "before")
        return Filters(box, after, before, self.glob, self.collection, self.max_cloud)


class SearchRequest(_Question):
    """One query: a text, the id of an item to search for its like, or both. Pictures come as multipart/form-data."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"text": "planes beside a terminal", "top": 12},
                {"text": "a river between fields", "bbox": [-1.5, 38.8, 0.0, 40.0], "after": "2020-01-01"},
                {"item": "0f3c5a7d9be1426488aa0b12"},
                {"item": "0f3c5a7d9be1426488aa0b12", "text": "with snow", "without": ["clouds"]},
            ]
        },
    )
    text: Annotated[str | None, Field(description="What to look for, in words.")] = None
    item: Annotated[str | None, Field(max_length=200, description="Look for what is like this item.")] = None
    right: Annotated[
        list[str], Field(max_length=200, description="Hits that are right: others like them move up.")
    ] = []
    wrong: Annotated[
        list[str], Field(max_length=200, description="Hits that are wrong: others like them move down.")
    ] = []


class ImageRequest(_Question):
    """The fields that may come with uploaded pictures."""

    text: Annotated[str | None, Field(description="What to look for besides, in words.")] = None

    bbox: Annotated[str | None, Field(max_length=200, description="west,south,east,north in degrees.")] = None  # type: ignore[assignment]

    def filters(self) -> Filters:
        return self._filters(None if self.bbox is None else _box(self.bbox))


class BatchRequest(_Question):
    """Several texts, answered in one scan."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"texts": ["a harbour with ships", "a desert with dunes"], "top": 5}]},
    )
    texts: Annotated[list[str], Field(min_length=1, description="At most as many as /gallery says.")]


class WindowOut(BaseModel):
    x: int
    y: int
    width: int
    height: int


class _RowOut(BaseModel):
    """What is told of a row wherever it is."""

    id: str
    kind: Literal["image", "tile", "text"]
    path: str
    caption: str | None
    width: int | None
    height: int | None
    window: WindowOut | None
    footprint: dict[str, Any] | None = Field(description="GeoJSON geometry in WGS84.")
    corners: list[tuple[float, float]] | None = Field(description="Upper left, upper right, lower right, lower left.")
    crs: str | None
    acquired: datetime | None
    item: str | None = Field(default=None, description="The STAC item that it comes from.")
    collection: str | None = None
    cloud_cover: float | None = Field(default=None, description="Percent.")


class ItemOut(_RowOut):
    """One row of the gallery."""

    captions: list[str]
    size: int = Field(description="Bytes of the file.")
    sha256: str


class PlaceOut(BaseModel):
    """Another row that shows the picture of a hit."""

    id: str
    path: str
    exact: bool = Field(description="The very same content; otherwise encoded again or resized.")


class HitOut(_RowOut):
    """One row that was found; its score is the cosine between query and row."""

    model_config = ConfigDict(json_schema_extra={"examples": [HIT]})

    rank: int
    score: float
    copies: list[PlaceOut] = Field(default=[], description="Where else the same picture lies.")


class RefinementOut(BaseModel):
    """What asking again in other forms changed."""

    copies: int
    entered: list[str] = Field(description="Ids of hits that were not there before.")
    left: list[str] = Field(description="Ids of hits that are gone.")
    reordered: bool
    uncertainty_before: float


class MendedOut(BaseModel):
    """A word as it was typed, and as it was read."""

    typed: str
    read: str


class AnswerOut(BaseModel):
    """Hits, and how far to trust them."""

    model_config = ConfigDict(json_schema_extra={"examples": [ANSWER]})

    query: str
    verdict: Verdict
    standing: Level = Field(description="What the answer is worth; the weightiest reason decides.")
    tone: Tone = Field(description="The colour to show it in: that of an answer, a doubtful one, a refusal, or none.")
    reasons: list[Reason] = Field(description="What speaks against relying on it, the weightiest first.")
    headline: str = Field(description="The standing for people, in a few words.")
    explanation: str = Field(description="The standing for people, in a sentence.")
    details: list[str] = Field(description="What that stands on, with its numbers, a sentence each.")
    uncertainty: float = Field(description="u = K/S: the share of belief that no evidence supports.")
    percentile: float | None = Field(description="Share of the calibration's queries that were more certain.")
    chance: float | None = Field(description="That a right row is among the first `chance_top`, where it was learned.")
    chance_top: int | None
    new_words: list[str] = Field(description="Words of a question outside the model's domain; none for others.")
    ignored_words: list[str] = Field(description="Words never taught, or hardly, of a question that is in domain.")
    did_you_mean: list[str] = Field(description="Words it was taught that are spelt nearly like these or those.")
    mended: list[MendedOut] = Field(description="Slips of the pen that were read as what was probably meant.")
    read_in_part: bool = Field(description="Whether the question is longer than what the model reads.")
    floor: float | None = Field(description="Where even the best hit is no match: the least score that one has.")
    faint: bool = Field(description=f"Whether the best hit scores less than {MOST} right answers do.")
    apart: int = Field(description="How many of the hits, the last ones, the answer does not stand on.")
    apart_line: str | None = Field(description="Why these are set apart, in a sentence.")
    calibrated: bool
    guarantee: str | None
    searched: int = Field(description="Rows that passed the filters.")
    lacking: str | None = Field(description="That the gallery lacks rows since a repair, in a sentence.")
    refinement: RefinementOut | None
    timings_ms: dict[str, float]
    hits: list[HitOut]


class BatchOut(BaseModel):
    answers: list[AnswerOut]


class NeighboursOut(BaseModel):
    id: str
    hits: list[HitOut]


class CalibrationOut(BaseModel):
    """What the gate knows about one kind of query; the two marks are percentiles."""

    direction: Literal["text", "image"]
    among: Literal["images", "texts"]
    queries: int
    score: str
    refine_above: float
    abstain_above: float
    guarantee: str | None


class LimitsOut(BaseModel):
    top: int
    batch: int
    text: int
    body_bytes: int
    pixels: int


class GalleryOut(BaseModel):
    """What is in the gallery."""

    rows: int
    version: int
    kinds: dict[str, int]
    georeferenced: int
    dated: int
    bounds: tuple[float, float, float, float] | None = Field(
        description="west, south, east, north; east may run past 180."
    )
    first: datetime | None
    last: datetime | None
    model: str
    model_fingerprint: str
    dim: int
    calibrations: list[CalibrationOut]
    limits: LimitsOut
    marks: bool = Field(default=False, description="Whether hits can be marked right or wrong.")


class StatusOut(BaseModel):
    status: str


class Problem(BaseModel):
    """What went wrong, in one line."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"error": "top is 0; give 1 to 200"}]})

    error: str


def item_out(row: Row) -> ItemOut:
    hit = hit_out(Hit.of(row, 1, 0.0)).model_dump(exclude={"rank", "score", "copies"})
    return ItemOut(**hit, captions=list(row.captions), size=row.size, sha256=row.sha256)


def hit_out(hit: Hit) -> HitOut:
    return HitOut(**hit.json())


def answer_out(answer: Answer, query: str | None = None) -> AnswerOut:
    """``answer`` as `Answer.json` gives it; ``query`` names an uploaded picture."""
    content = answer.json()
    return AnswerOut(**(content if query is None else content | {"query": query}))


def _time(text: str | None, name: str) -> datetime | None:
    if text is None:
        return None
    time = parse_time(text)
    if time is None:
        raise InputError(f"{name} '{text}' is no time; write 2024-06-01 or 2024-06-01T12:00:00Z")
    return time


def _box(text: str) -> Bounds:
    try:
        west, south, east, north = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"bbox '{text}': give west,south,east,north in degrees, e.g. 13.0,52.3,13.8,52.7") from None
    return Bounds(west, south, east, north)
