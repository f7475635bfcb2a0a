"""Write src/schema.ts, the page's types, from the server's own description of what goes in and out.

python frontend/schema.py, after a change of evidex.server.schemas; a test says when it is due.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
TARGET = Path(__file__).parent / "src" / "schema.ts"
_HEAD = "// Made by frontend/schema.py from the server's OpenAPI schema; do not edit.\n"
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def typescript(openapi: Schema) -> str:
    """Every named schema, and the bodies of requests that are described in place."""
    schemas: dict[str, Schema] = dict(openapi["components"]["schemas"])
    for operations in openapi["paths"].values():
        for operation in operations.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            if "title" in body:
                schemas[body["title"]] = body
    return _HEAD + "".join(f"\n{_declared(name, schemas[name])}\n" for name in sorted(schemas))


def _declared(name: str, schema: Schema) -> str:
    if "properties" not in schema:
        return f"export type {name} = {_type(schema)};"
    required = schema.get("required", [])
    lines = []
    for field, kind in schema["properties"].items():
        if "description" in kind:
            lines.append(f"  /** {kind['description']} */")
        lines.append(f"  {field}{'' if field in required else '?'}: {_type(kind)};")
    return "\n".join([f"export interface {name} {{", *lines, "}"])


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(part) for part in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if "prefixItems" in schema:
        return f"[{', '.join(_type(part) for part in schema['prefixItems'])}]"
    if schema.get("type") == "array":
        item = _type(schema.get("items", {}))
        return f"({item})[]" if " | " in item else f"{item}[]"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) and values else 'unknown'}>"
    return _PLAIN.get(schema.get("type", ""), "unknown")


def main() -> None:
    from evidex.encoders.model import load_model
    from evidex.retrieval.gallery import Gallery
    from evidex.server.app import create_app
    from evidex.server.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        Gallery.create(Path(folder) / "gallery", load_model("compact"))
        TARGET.write_text(typescript(create_app(Settings(Path(folder) / "gallery")).openapi()), encoding="utf-8")


if __name__ == "__main__":
    main()
