"""What processes find in spans of a gallery, joined, is what one finds in all of it; here without a cluster."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from evidex.data.footprints import Bounds, Footprint
from evidex.retrieval.counts import count_rows, counted_together
from evidex.retrieval.filters import NO_FILTERS, Filters, Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.rows import Row, item_id
from evidex.retrieval.scan.partial import ScanResult, merge_results
from evidex.retrieval.scan.precision import Precision
from evidex.retrieval.searchable import OwnRows
from evidex.retrieval.sharded.holder import HeldRows, ShardHolder
from evidex.retrieval.sharded.span import MovedError, Span, cut
from tests.retrieval.archive import tiny_model

FILTERS = [
    NO_FILTERS,
    Filters(bbox=Bounds(13.2, 51.0, 13.9, 53.0)),
    Filters(after=datetime(2021, 1, 1, tzinfo=UTC), glob="*7.tif"),
    Filters(glob="nowhere"),
]


def _rows(count: int, first: int = 0) -> list[Row]:
    rows = []
    for n in range(first, first + count):
        west = 13 + n % 100 / 100
        square = ((west, 52.0), (west + 0.1, 52.0), (west + 0.1, 52.1), (west, 52.1))
        place = Footprint(square) if n % 5 else None
        time = datetime(2020 + n % 4, 6, 1, tzinfo=UTC) if n % 3 == 0 else None
        path = f"/archive/scene_{n}.tif"
        rows.append(Row(item_id(path), path, "image", f"{n:064x}", footprint=place, acquired=time))
    return rows


def _unit(count: int, seed: int) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((count, 32)) + 0.3
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), np.float32)


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    """300 pictures in three fragments, of which some were removed, and four texts."""
    made = Gallery.create(tmp_path / "gallery", tiny_model())
    for first in (0, 100, 200):
        made.append(_rows(100, first), _unit(100, first))
    made.add_texts([f"caption {n}" for n in range(4)])
    made.remove([row.id for row in _rows(300)[90:110]])
    return made


def _in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the gallery is no folder."""
    monkeypatch.setattr("evidex.retrieval.sharded.holder.Path", type("NoFolder", (), {}))


@pytest.fixture(params=["mapped", "in memory"])
def gallery_here_or_far(request: pytest.FixtureRequest, gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> Gallery:
    if request.param == "in memory":
        _in_memory(monkeypatch)
    return gallery


def _asked(holders: list[ShardHolder], spans: tuple[Span, ...], filters: Filters, target: Target) -> ScanResult:
    found = [holder.scan(span, _unit(5, 9), filters, target, 7) for holder, span in zip(holders, spans, strict=True)]
    return reduce(lambda a, b: merge_results(a, b, 7), found)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_joined_they_find_what_one_finds(gallery_here_or_far: Gallery, precision: Precision) -> None:
    gallery = gallery_here_or_far
    holders = [ShardHolder(str(gallery.path), 1, precision) for _ in range(4)]
    spans, own = cut(gallery.version, len(gallery), 4), OwnRows(gallery)
    targets: tuple[Target, ...] = ("images", "texts")
    for filters in FILTERS:
        for target in targets:
            got = _asked(holders, spans, filters, target)
            expected = own.scan(_unit(5, 9), own.select(filters, target), 7)
            assert got.count == expected.count
            assert got.ids.tolist() == expected.ids.tolist()
            assert got.scores.tolist() == expected.scores.tolist(), "to the last bit"
            assert got.uncertainty == pytest.approx(expected.uncertainty, rel=1e-6)
    counts = [holder.counts(span) for holder, span in zip(holders, spans, strict=True)]
    assert counted_together(counts) == count_rows(gallery)


def test_vectors_are_found_by_place_and_by_id(gallery_here_or_far: Gallery) -> None:
    gallery = gallery_here_or_far
    holder, span = ShardHolder(str(gallery.path), 1), Span(gallery.version, 60, 190)
    places = np.array([189, 60, 95, 61])
    assert (holder.vectors(span, places) == gallery.vectors[places]).all()
    inside, outside = gallery.rows([150, 10])
    vector = holder.find(span, inside.id)
    assert vector is not None
    assert (vector == gallery.vectors[150]).all()
    assert holder.find(span, outside.id) is None


def test_a_gallery_that_has_grown_is_taken_up_and_an_old_version_is_told(gallery_here_or_far: Gallery) -> None:
    gallery = gallery_here_or_far
    holder, old = ShardHolder(str(gallery.path), 1), Span(gallery.version, 200, len(gallery))
    assert holder.counts(old).rows == 84
    gallery.append(_rows(50, 300), _unit(50, 300))
    new = Span(gallery.version, 200, len(gallery))
    assert holder.counts(old).rows == 84, "what is open stays open"
    assert holder.counts(new).rows == 134
    assert holder.scan(new, _unit(1, 9), NO_FILTERS, "images", 3).count == 130
    gallery.remove([gallery.rows([0])[0].id])
    newest = Span(gallery.version, 200, len(gallery))
    assert holder.counts(newest).rows == 133
    with pytest.raises(MovedError) as moved:
        holder.counts(new)
    assert moved.value.seen == gallery.version


def test_a_writer_that_only_appends_keeps_nobody_waiting(gallery_here_or_far: Gallery) -> None:
    gallery = gallery_here_or_far
    span, expected = Span(gallery.version, 200, len(gallery)), np.array(gallery.vectors[200:])
    reader = Gallery.open(gallery.path, tiny_model())
    gallery.append(_rows(50, 300), _unit(50, 300))
    late = ShardHolder(str(gallery.path), 1)
    assert (late.vectors(span, np.arange(span.first, span.stop)) == expected).all()
    got = late.scan(span, _unit(5, 9), FILTERS[1], "images", 7)
    own = OwnRows(reader)
    whole = own.scan(_unit(5, 9), own.select(FILTERS[1], "images"), len(reader))
    assert got.ids[0].tolist() == [place for place in whole.ids[0].tolist() if place >= 200][:7]
    assert late.find(span, gallery.rows([len(gallery) - 1])[0].id) is None


def test_what_lies_in_memory_is_not_read_again_when_rows_come(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    _in_memory(monkeypatch)
    before = HeldRows(gallery, Span(gallery.version, 150, len(gallery)), "float32", {})
    gallery.append(_rows(50, 300), _unit(50, 300))
    after = HeldRows(gallery, Span(gallery.version, 150, len(gallery)), "float32", before.pieces)
    assert len(after.pieces) == len(before.pieces) + 1
    assert all(after.pieces[key] is piece for key, piece in before.pieces.items())


def test_vectors_are_never_those_of_a_damaged_file(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidex.retrieval.soundness.mapped.are_few", lambda *_: False)
    monkeypatch.setattr("evidex.retrieval.soundness.mapped.is_settled", lambda _: True)  # as if damaged long ago
    sound = np.array(gallery.vectors)
    file = next(Path(str(gallery.path)).glob("vectors-*.f32"))
    content = bytearray(file.read_bytes())
    content[150 * 32 * 4 + 3] ^= 0x7F
    status = file.stat()
    file.write_bytes(content)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    holder, span = ShardHolder(str(gallery.path), 1), Span(gallery.version, 100, 200)
    assert (holder.vectors(span, np.array([150])) == sound[[150]]).all()


def test_damage_to_its_own_rows_is_mended(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidex.retrieval.soundness.mapped.are_few", lambda *_: False)
    gallery.vectors  # noqa: B018 (written by this)
    holder, span = ShardHolder(str(gallery.path), 1), Span(gallery.version, 100, 200)
    expected = holder.scan(span, _unit(2, 9), NO_FILTERS, "images", 5)
    file = next(Path(str(gallery.path)).glob("vectors-*.f32"))
    content = bytearray(file.read_bytes())
    content[150 * 32 * 4 + 3] ^= 0x7F
    file.write_bytes(content)
    assert holder.scan(span, _unit(2, 9), NO_FILTERS, "images", 5).scores.tolist() == expected.scores.tolist()
    while holder.patrol(span):
        pass
