"""How a gallery's scenes are read, noted and taken up again."""

from __future__ import annotations

import pytest

from evidex.data.reading_notes import noted, readings_of
from evidex.data.rendering import TileOptions


def test_sensors_add_up_and_the_bands_chosen_last_come_first() -> None:
    notes = noted({}, TileOptions(sensor="landsat-9"), [None, "sentinel-2"])
    notes |= noted(notes, TileOptions(bands=(4, 3, 2), stretch=(1.0, 99.0)))
    first, *others = readings_of(notes)
    assert (first.bands, first.stretch, first.sensor) == ((4, 3, 2), (1.0, 99.0), None)
    assert [way.sensor for way in others] == ["landsat-9", "sentinel-2"]


def test_nothing_is_noted_that_is_known_or_not_chosen() -> None:
    assert noted({}, TileOptions()) == {}
    notes = noted({}, TileOptions(sensor="landsat-9"))
    assert noted(notes, TileOptions(sensor="landsat-9")) == {}
    assert noted(notes, TileOptions()) == {}


@pytest.mark.parametrize("text", ["", "{", "7", '["spot", 7]', '{"bands": 3}', '{"bands": [9, 9], "stretch": [2, 98]}'])
def test_notes_that_are_not_understood_are_left_out(text: str) -> None:
    assert readings_of({"evidex.sensors": text, "evidex.bands": text or "null"}) == ()
