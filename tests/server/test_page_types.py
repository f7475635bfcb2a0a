"""The page's types are those of the server's schema."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from evidex.server.app import create_app
from evidex.server.settings import Settings

SCRIPT = Path(__file__).resolve().parents[2] / "frontend" / "schema.py"


@pytest.fixture(scope="module")
def script() -> Any:
    spec = importlib.util.spec_from_file_location("page_schema", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_types_are_those_of_the_server(script: Any, settings: Settings) -> None:
    assert script.TARGET.read_text(encoding="utf-8") == script.typescript(create_app(settings).openapi()), (
        "the schema has changed; run python frontend/schema.py and look at what the page does with it"
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "number | null"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]}, "[number, string]"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "Record<string, number>"),
        ({"type": "object", "additionalProperties": True}, "Record<string, unknown>"),
        ({"$ref": "#/components/schemas/HitOut"}, "HitOut"),
    ],
)
def test_kinds_of_values(script: Any, schema: dict[str, Any], expected: str) -> None:
    openapi = {"components": {"schemas": {"X": {"properties": {"field": schema}}}}, "paths": {}}
    assert f"export interface X {{\n  field?: {expected};\n}}" in script.typescript(openapi)
