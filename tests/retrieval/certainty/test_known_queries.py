"""Queries with known answers, as people write them down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evidex.errors import DataError
from evidex.retrieval.certainty.known_queries import read_queries


def test_queries_from_files(tmp_path: Path) -> None:
    plain = tmp_path / "q.txt"
    plain.write_text("# comment\na river\n\n two lakes \n")
    assert [known.query for known in read_queries(plain)["text"]] == ["a river", "two lakes"]
    listed = tmp_path / "q.json"
    listed.write_text(json.dumps([{"text": "a", "relevant": ["x.png"]}, {"image": "b.png"}]))
    known = read_queries(listed)
    assert known["text"][0].relevant == {"x.png"}
    assert known["image"][0].query == tmp_path / "b.png"
    for nonsense in (
        '{"text": "a"}',
        '[{"text": "a", "image": "b"}]',
        '[{"text": ""}]',
        "[",
        '[{"text": "a", "relevant": 3}]',
    ):
        listed.write_text(nonsense)
        with pytest.raises(DataError):
            read_queries(listed)
