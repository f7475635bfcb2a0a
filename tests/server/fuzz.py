"""Requests made up from the server's own schema."""

from __future__ import annotations

import io
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.retrieval.archive import picture


@dataclass
class Report:
    """What was sent and what came back."""

    requests: int = 0
    by_status: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def run(address: str, *, requests: int, seed: int) -> Report:
    """At least ``requests`` requests over all operations, the same for the same seed."""
    import httpx
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis.errors import Unsatisfiable
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    report = Report()
    asked = httpx.post(f"{address}/search", json={"text": "a river", "top": 10})
    known = [hit["id"] for hit in asked.json()["hits"]]
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    found: list[Any] = list(schema.get_all_operations())
    operations = [result.ok() for result in found]
    plain = [one for one in operations if not one.path_parameters and not one.body]
    rich = [one for one in operations if one not in plain]
    # Without any input there is little to vary; the others share the number, and some more in case they repeat.
    shares = {one.label: 2 if one in plain else requests * 11 // 10 // len(rich) for one in operations}
    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    for operation in operations:
        count = shares[operation.label]
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            half = count // 2 + (count % 2 if mode is schemathesis.GenerationMode.POSITIVE else 0)

            def send(case: Any) -> None:
                if report.requests % 2:
                    _make_real(case, known, report.requests)
                response = case.call()
                report.requests += 1
                report.by_status[response.status_code] += 1
                try:
                    case.validate_response(response, checks=checks)
                except BaseExceptionGroup as group:
                    report.failures.extend(f"{case.method} {case.path}: {error}" for error in group.exceptions)

            tested = settings(
                max_examples=half,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )(seeded(seed)(given(case=operation.as_strategy(generation_mode=mode))(send)))
            with suppress(Unsatisfiable):  # some operations cannot be asked wrongly
                tested()
    return report


def _make_real(case: Any, known: list[str], number: int) -> None:
    """Made-up ids and pictures end at the door; every other request gets what lets it in."""
    if "item_id" in (case.path_parameters or {}):
        case.path_parameters["item_id"] = known[number % len(known)]
    if not isinstance(case.body, dict):
        return
    if case.path == "/locate" and "item" in case.body:
        case.body["item"] = known[number % len(known)]
        if "image" not in case.body:
            case.body.pop("like", None)
            case.body["text"] = "a river"
    if "image" in case.body:
        stream = io.BytesIO()
        picture(number % 7).save(stream, "PNG")
        case.body["image"] = stream.getvalue()
    elif case.path == "/search":
        case.body.pop("text" if number % 4 == 1 and case.body.get("item") else "item", None)
        if case.body.get("item"):
            case.body["item"] = known[number % len(known)]
        elif not case.body.get("text"):
            case.body["text"] = "a river"
