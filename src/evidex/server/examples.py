"""Answers as the schema at /openapi.json shows them."""

from __future__ import annotations

from typing import Any

HIT: dict[str, Any] = {
    "rank": 1,
    "id": "0f3c5a7d9be1426488aa0b12",
    "score": 0.412,
    "kind": "image",
    "path": "archive/airport_00012.tif",
    "caption": "many planes near a terminal",
    "width": 224,
    "height": 224,
    "window": None,
    "footprint": {"type": "Polygon", "coordinates": [[[-1.2, 39.1], [-1.2, 39.0], [-1.1, 39.0], [-1.2, 39.1]]]},
    "corners": [[-1.2, 39.1], [-1.1, 39.1], [-1.1, 39.0], [-1.2, 39.0]],
    "crs": "EPSG:32630",
    "acquired": "2021-06-01T10:45:00Z",
    "item": None,
    "collection": None,
    "cloud_cover": None,
    "copies": [{"id": "5e1f0c9a7b6d4832c0ffee12", "path": "backup/airport_00012.jpg", "exact": False}],
}
ANSWER: dict[str, Any] = {
    "query": "planes beside a terminal",
    "verdict": "answered",
    "standing": "good",
    "tone": "answered",
    "reasons": [],
    "headline": "Good matches",
    "explanation": "The hits are as like your question as good answers usually are.",
    "details": ["Of 100 usual questions about 12 find more in this archive."],
    "uncertainty": 0.031,
    "percentile": 0.12,
    "chance": 0.71,
    "chance_top": 10,
    "new_words": [],
    "ignored_words": [],
    "did_you_mean": [],
    "mended": [],
    "read_in_part": False,
    "floor": None,
    "faint": False,
    "apart": 0,
    "apart_line": None,
    "calibrated": True,
    "guarantee": None,
    "searched": 1200,
    "refinement": None,
    "timings_ms": {"encode": 4.1, "scan": 1.9, "refine": 0.0, "rows": 1.2, "total": 7.2},
    "hits": [HIT],
}
