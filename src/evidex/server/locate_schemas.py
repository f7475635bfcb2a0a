"""What /locate takes and gives."""

from __future__ import annotations

import base64
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from evidex.locating.heat import Heat
from evidex.locating.located import Finding, Located
from evidex.server.schemas import WindowOut

_ITEM = "The item to look in, from a hit."


class LocateRequest(BaseModel):
    """What to look for in an item: a text, or what is like another item. Pictures come as multipart/form-data."""

    model_config = ConfigDict(
        extra="forbid",
        cache_strings="keys",
        json_schema_extra={"examples": [{"item": "0f3c5a7d9be1426488aa0b12", "text": "storage tanks"}]},
    )
    item: Annotated[str, Field(max_length=200, description=_ITEM)]
    text: Annotated[str | None, Field(description="What to look for, in words.")] = None
    like: Annotated[str | None, Field(max_length=200, description="Look for what is like this item.")] = None


class LocateForm(BaseModel):
    """What comes with an uploaded picture."""

    model_config = ConfigDict(extra="forbid", cache_strings="keys")

    item: Annotated[str, Field(max_length=200, description=_ITEM)]


class PlaceOut(BaseModel):
    longitude: float
    latitude: float


class PeakOut(BaseModel):
    """A place that is like what was asked for, in pixels of the picture that was looked at."""

    score: float
    x: float
    y: float
    window: WindowOut
    place: PlaceOut | None


class HeatOut(BaseModel):
    """Likeness in cells over the picture; the last ones may stand out over its edge."""

    rows: int
    columns: int
    cell: int = Field(description="Pixels a side.")
    values: str = Field(description="Row by row a byte a cell, 255 for the peak, as base64.")


class LocatedOut(BaseModel):
    """Where in an item something is."""

    query: str
    scene: str
    finding: Finding = Field(description="What came of looking; the map is flat where nothing was found.")
    headline: str = Field(description="That for people, in a few words.")
    explanation: str = Field(description="That for people, in a sentence.")
    width: int = Field(description="Of the picture that was looked at; a large one is looked at smaller.")
    height: int
    windows: int = Field(description="How many were looked at.")
    best_similarity: float | None
    floor: float | None = Field(description="The least similarity of a match, where the model knows it.")
    peak: float = Field(description="Likeness of the best place: the share of right answers that are less similar.")
    new_words: list[str]
    ignored_words: list[str]
    peaks: list[PeakOut]
    heat: HeatOut


def located_out(located: Located) -> LocatedOut:
    return LocatedOut(**located.json(), heat=heat_out(located.heat))


def heat_out(heat: Heat) -> HeatOut:
    shares = np.nan_to_num(heat.values, nan=0.0) / max(heat.peak, 1e-6)
    levels = np.rint(255 * np.clip(shares, 0.0, 1.0)).astype(np.uint8)
    rows, columns = levels.shape
    values = base64.b64encode(levels.tobytes()).decode()
    return HeatOut(rows=rows, columns=columns, cell=heat.cell, values=values)


def locate_body() -> dict[str, Any]:
    """Both forms of the body, for the schema."""
    form = LocateForm.model_json_schema()
    form["properties"] = {"image": {"type": "string", "format": "binary"}, **form["properties"]}
    form["required"] = ["image", *form["required"]]
    json_schema = LocateRequest.model_json_schema()
    examples = {str(number): {"value": value} for number, value in enumerate(json_schema.pop("examples"), start=1)}
    content = {
        "application/json": {"schema": json_schema, "examples": examples},
        "multipart/form-data": {"schema": form},
    }
    return {"requestBody": {"required": True, "content": content}}
