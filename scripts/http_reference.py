"""The page of the HTTP interface, made from the schema that the server itself gives out, when the site is built.

mkdocs calls `on_files`; nothing is written beside the other pages, so it cannot grow old.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

Schema = dict[str, Any]
PAGE = "api/http.md"
_HEAD = """# HTTP

What `evidex serve` answers, as it describes it itself at `/openapi.json`; how to ask it from a shell or from Python is
told in [serving](../serving.md). Every error is `{"error": "one line"}`.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page to those that lie in the folder."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, PAGE, content=page(openapi())))
    return files


def openapi() -> Schema:
    """What a server says of itself, whatever it serves."""
    from evidex.encoders.model import load_model
    from evidex.retrieval.gallery import Gallery
    from evidex.server.app import create_app
    from evidex.server.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "gallery"
        Gallery.create(place, load_model(), source="compact")
        return dict(create_app(Settings(place)).openapi())


def page(schema: Schema) -> str:
    """All addresses, then all that goes in and out by name."""
    parts = [_HEAD]
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            parts.extend(_address(method, path, operation))
    parts.append("## What goes in and out\n")
    for name, described in schema["components"]["schemas"].items():
        parts.append(f"### {name}\n")
        parts.extend(_described(described))
    return "\n".join(parts)


def _address(method: str, path: str, operation: Schema) -> Iterator[str]:
    yield f"## {method.upper()} {path}\n"
    yield f"{operation['summary']}.\n"
    if given := operation.get("parameters"):
        fields = {one["name"]: one.get("description", "") for one in given}
        kinds = {one["name"]: one["schema"] for one in given}
        rows = [(name, _kind(kinds[name]), text or kinds[name].get("description", "")) for name, text in fields.items()]
        yield _table(rows)
    for form, body in operation.get("requestBody", {}).get("content", {}).items():
        yield f"**Body** (`{form}`)\n"
        yield from _described(body["schema"])
        for example in list(body.get("examples", {}).values())[:1]:
            yield f"```json\n{json.dumps(example['value'])}\n```\n"
    answers, errors = [], []
    for status, response in operation["responses"].items():
        kinds_of = [_kind(content["schema"]) for content in response.get("content", {}).values() if "schema" in content]
        if int(status) < 400:
            answers.append(f"`{status}` {kinds_of[0] if kinds_of else ', '.join(response.get('content', {}))}".strip())
        else:
            errors.append(f"`{status}`")
    yield f"**Answer**: {', '.join(answers)}" + (f"; errors {', '.join(sorted(errors))}\n" if errors else "\n")


def _described(schema: Schema) -> Iterator[str]:
    if text := schema.get("description"):
        yield f"{text}\n"
    if "properties" in schema:
        yield _table((name, _kind(field), _said(field)) for name, field in schema["properties"].items())
    else:
        yield f"{_kind(schema)}\n"


def _said(field: Schema) -> str:
    text = str(field.get("description", ""))
    if field.get("default") in (None, [], {}):
        return text
    return f"{text} Default: `{json.dumps(field['default'])}`.".strip()


def _table(rows: Any) -> str:
    lines = ["| name | kind | |", "|---|---|---|"]
    lines += [f"| `{name}` | {kind} | {text} |" for name, kind, text in rows]
    return "\n".join(lines) + "\n"


def _kind(schema: Schema) -> str:
    """A kind of value in a few words, named ones with a link to what they are."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(part) for part in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if "prefixItems" in schema:
        return f"list of {len(schema['prefixItems'])}: {', '.join(_kind(part) for part in schema['prefixItems'])}"
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if schema.get("format") == "binary":
        return "file"
    return str(schema.get("type", "anything"))
