"""A gallery is cut evenly, and what is held stays where it is while the gallery grows."""

from __future__ import annotations

import pytest

from evidex.retrieval.sharded.span import Span, cut


@pytest.mark.parametrize(("rows", "shards"), [(0, 3), (2, 5), (10, 1), (1000, 7), (10**9, 64)])
def test_every_row_is_in_one_span_and_none_has_more_than_its_share(rows: int, shards: int) -> None:
    spans = cut(1, rows, shards)
    assert len(spans) == shards
    assert [span.first for span in spans[1:]] == [span.stop for span in spans[:-1]]
    assert (spans[0].first, spans[-1].stop) == (0, rows)
    assert max(map(len, spans)) - min(map(len, spans)) <= 1


def test_new_rows_go_to_the_last_until_it_has_far_too_many() -> None:
    before = cut(1, 400, 4)
    grown = cut(2, 430, 4, before)
    assert grown == (Span(2, 0, 100), Span(2, 100, 200), Span(2, 200, 300), Span(2, 300, 430))
    assert cut(3, 500, 4, grown) == cut(3, 500, 4)
    assert cut(3, 90, 4, grown) == cut(3, 90, 4), "rows were removed"
    assert cut(2, 430, 3, before) == cut(2, 430, 3)
