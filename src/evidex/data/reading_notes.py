"""How the scenes of a gallery are read, noted in it, so that an example to search with is read in the same way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from evidex.data.rendering import TileOptions
from evidex.data.sensors import SENSORS
from evidex.documents import parse_json
from evidex.errors import InputError

_SENSORS, _BANDS = "evidex.sensors", "evidex.bands"


def noted(before: Mapping[str, str], tiles: TileOptions, told: Iterable[str | None] = ()) -> dict[str, str]:
    """What is new to a gallery's notes: the sensors that were chosen or told by catalogs, the bands chosen last."""
    now = {name: before[name] for name in (_SENSORS, _BANDS) if name in before}
    sensors = dict.fromkeys([*_words(before.get(_SENSORS)), *filter(None, [tiles.sensor, *sorted(filter(None, told))])])
    if sensors:
        now[_SENSORS] = json.dumps(list(sensors))
    if tiles.bands is not None:
        now[_BANDS] = json.dumps({"bands": tiles.bands, "stretch": tiles.stretch, "sensor": tiles.sensor})
    return now if now.items() - before.items() else {}


def carried_over(before: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """What is new to a gallery's notes when the scenes of another gallery are read into it as they were there."""
    now = {name: other[name] for name in (_SENSORS, _BANDS) if name in other}
    sensors = dict.fromkeys([*_words(other.get(_SENSORS)), *_words(before.get(_SENSORS))])
    if sensors:
        now[_SENSORS] = json.dumps(list(sensors))
    return now if now.items() - before.items() else {}


def readings_of(notes: Mapping[str, str]) -> tuple[TileOptions, ...]:
    """The ways in which an example may be read, the first that fits it; what is not understood is left out."""
    found = [TileOptions(sensor=name) for name in _words(notes.get(_SENSORS)) if name in SENSORS]
    try:
        chosen = parse_json(notes.get(_BANDS, "null"))
        if chosen is not None:
            stretch = tuple(float(value) for value in chosen["stretch"])
            bands = tuple(int(band) for band in chosen["bands"])
            found.insert(0, TileOptions(bands=bands, stretch=(stretch[0], stretch[1]), sensor=chosen["sensor"]))
    except (ValueError, TypeError, KeyError, IndexError, InputError):
        pass
    return tuple(found)


def _words(text: str | None) -> list[str]:
    try:
        value = parse_json(text) if text else []
    except ValueError:
        return []
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
