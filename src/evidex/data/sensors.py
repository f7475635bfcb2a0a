"""Sensors whose scenes evidex knows: which bands are red, green and blue, and which values are black and white."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Colours = tuple[int, int, int]
"""The bands shown as red, green and blue, counted from 1."""
COMMON = (("red",), ("green",), ("blue",))
WHITE = 0.3
"""Reflectance that becomes white: what land shows but clouds, snow and sand, which are brighter."""


@dataclass(frozen=True)
class Sensor:
    """How scenes of one kind are stored. Reflectance is ``scale`` × value + ``offset``."""

    name: str
    platforms: tuple[str, ...]
    """How STAC names it; what goes on after one of these, as in sentinel-2a, is of it too."""
    bands: Mapping[int, Colours]
    """By how many bands a file has."""
    names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    """What red, green and blue are called in a file."""
    scale: float
    offset: float = 0.0
    later_offset: float | None = None
    """From processing baseline 4 on, where the file or its item tells."""

    @property
    def counts(self) -> str:
        *most, last = map(str, sorted(self.bands))
        return f"{', '.join(most)} or {last}"


SENSORS: Mapping[str, Sensor] = {
    sensor.name: sensor
    for sensor in (
        Sensor(
            "sentinel-2",
            ("sentinel-2", "sentinel2", "s2"),
            # Blue, green, red and near infrared alone; the ten bands of land; all without and with cirrus.
            {3: (1, 2, 3), 4: (3, 2, 1), 10: (3, 2, 1), 12: (4, 3, 2), 13: (4, 3, 2)},
            (("b04", "b4", "red"), ("b03", "b3", "green"), ("b02", "b2", "blue")),
            scale=1e-4,
            later_offset=-0.1,
        ),
        *(
            Sensor(
                name,
                (name, name.replace("-", "_"), name.replace("-", "")),
                # Without the coastal band; surface reflectance; all reflective bands; with the thermal ones.
                {3: (1, 2, 3), 6: (3, 2, 1), 7: (4, 3, 2), 8: (4, 3, 2), 9: (4, 3, 2), 11: (4, 3, 2)},
                (("b4", "b04", "sr_b4", "red"), ("b3", "b03", "sr_b3", "green"), ("b2", "b02", "sr_b2", "blue")),
                scale=2.75e-5,
                offset=-0.2,
            )
            for name in ("landsat-8", "landsat-9")
        ),
        Sensor(
            "planetscope",
            ("planetscope", "ps2", "psb"),
            # Visual; blue, green, red, near infrared; with the red edge; eight bands from coastal blue on.
            {3: (1, 2, 3), 4: (3, 2, 1), 5: (3, 2, 1), 8: (6, 4, 2)},
            (("red",), ("green",), ("blue",)),
            scale=1e-4,
        ),
    )
}


@dataclass(frozen=True)
class Told:
    """What the item of a catalog says of the bands of a file, where it says so."""

    sensor: str | None = None
    bands: Colours | None = None
    scale: float | None = None
    offset: float | None = None
    later: bool = field(default=False)
    """Whether it is of a processing baseline whose values are shifted."""

    @property
    def words(self) -> str:
        bands = "" if self.bands is None else ",".join(map(str, self.bands))
        return f"{self.sensor or ''}:{bands}:{self.scale}:{self.offset}:{self.later:d}"


NOTHING_TOLD = Told()


def named_bands(names: Sequence[str | None], wanted: Sequence[Sequence[str]] = COMMON) -> Colours | None:
    """The places of red, green and blue among the names of bands; None where one is missing."""
    known = [(name or "").strip().lower() for name in names]
    places = [next((known.index(name) + 1 for name in choice if name in known), None) for choice in wanted]
    red, green, blue = places
    return None if red is None or green is None or blue is None else (red, green, blue)


def sensor_of_platform(*platforms: object) -> str | None:
    """The sensor that one of these names of platforms and constellations stands for."""
    for platform in platforms:
        known = platform.strip().lower() if isinstance(platform, str) else ""
        for sensor in SENSORS.values():
            if any(
                known == name or (known.startswith(name) and known[len(name) :].isalpha()) for name in sensor.platforms
            ):
                return sensor.name
    return None


def limits(sensor: Sensor, told: Told, file: tuple[float, float] | None, later: bool) -> tuple[float, float]:
    """The stored values that are black and white: no light, and `WHITE`.

    What the item says comes first, then ``file``, scale and offset as the file states them, then the sensor's own.
    """
    scale, offset = file or (sensor.scale, sensor.offset)
    if file is None and (later or told.later) and sensor.later_offset is not None:
        offset = sensor.later_offset
    scale = scale if told.scale is None else told.scale
    offset = offset if told.offset is None else told.offset
    return (0.0 - offset) / scale, (WHITE - offset) / scale
