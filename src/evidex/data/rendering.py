"""How raster values become 8-bit colours: which bands, and which values are black and white."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.data.sensors import COMMON, NOTHING_TOLD, SENSORS, Sensor, Told, limits, named_bands
from evidex.documents import parse_json
from evidex.errors import BandsError, ImageError, InputError

_SAMPLE_SIDE = 1024
_SAMPLE_GRID, _SAMPLE_WINDOW = 12, 64
_LARGEST_REFLECTANCE = 2.0
_LATER_BASELINE = 4
_LEAST_FULL_IN_ALPHA = 0.9
_AS_GOOD_AS_FULL = 0.99


@dataclass(frozen=True)
class TileOptions:
    """How rasters are cut and shown."""

    tile: int = 512
    """Side of a tile in pixels; a raster with a side of more than two tiles is cut. 0 = never cut."""
    overlap: int = 64
    bands: tuple[int, ...] | None = None
    """One band or three, counted from 1; None = red, green and blue where the file names them."""
    stretch: tuple[float, float] = (2.0, 98.0)
    """Percentiles that become black and white in data of more than 8 bits."""
    sensor: str | None = None
    """One of `SENSORS`, which chooses bands, and black and white by reflectance; ``bands`` win over its bands."""
    told: Told = NOTHING_TOLD
    """What a catalog says of this file's bands; what is chosen by hand wins."""

    @property
    def known_sensor(self) -> Sensor | None:
        name = self.sensor or self.told.sensor
        return None if name is None else SENSORS[name]

    @property
    def words(self) -> str:
        """What was chosen by hand, as rows note it: pairs of a name and a value; `of_words` is the inverse."""
        bands = "rgb" if self.bands is None else ",".join(map(str, self.bands))
        sensor = "" if self.sensor is None else f" sensor {self.sensor}"
        stretch = f"{self.stretch[0]:g},{self.stretch[1]:g}"
        return f"tile {self.tile} overlap {self.overlap} bands {bands} stretch {stretch}{sensor}"

    @classmethod
    def of_words(cls, text: str) -> TileOptions:
        """The options that a row notes; what it notes besides, of catalogs and of files beside it, is passed over."""
        words = text.split()
        noted = dict(zip(words[::2], words[1::2], strict=False))
        try:
            bands = None if noted["bands"] == "rgb" else tuple(int(band) for band in noted["bands"].split(","))
            low, high = (float(value) for value in noted["stretch"].split(","))
            return cls(int(noted["tile"]), int(noted["overlap"]), bands, (low, high), noted.get("sensor"))
        except (KeyError, ValueError):
            raise InputError(f"'{text}' does not say how a scene was read; update evidex, or index it anew") from None

    def told_apart(self, before: TileOptions) -> str:
        """The options in which a file was read otherwise ``before``, as commands name them; empty where in none."""
        pairs = zip(before._options(), self._options(), strict=True)
        return ", ".join(
            f"--{name} {then or 'not given'} then and {now or 'not given'} now"
            for (name, then), (_, now) in pairs
            if then != now
        )

    def _options(self) -> list[tuple[str, str]]:
        stretch = f"{self.stretch[0]:g},{self.stretch[1]:g}"
        bands = "" if self.bands is None else ",".join(map(str, self.bands))
        sides = [("tile", str(self.tile)), ("overlap", str(self.overlap))]
        return [*sides, ("bands", bands), ("stretch", stretch), ("sensor", self.sensor or "")]

    def __post_init__(self) -> None:
        if self.sensor is not None and self.sensor not in SENSORS:
            raise InputError(f"sensor '{self.sensor}' is unknown; known are {', '.join(SENSORS)}")
        if self.tile < 0 or 0 < self.tile < 16:
            raise InputError(f"tile {self.tile} is too small; give at least 16 pixels, or 0 to leave scenes whole")
        if self.overlap < 0 or (self.tile and self.overlap >= self.tile):
            raise InputError(f"overlap {self.overlap} does not fit tiles of {self.tile}; give less than a tile")
        if self.bands is not None and (len(self.bands) not in (1, 3) or min(self.bands) < 1):
            raise InputError(f"bands {','.join(map(str, self.bands))}: give one or three, counted from 1, e.g. 4,3,2")
        low, high = self.stretch
        if not 0.0 <= low < high <= 100.0:
            raise InputError(f"stretch {low:g},{high:g}: give two percentiles, the lower first, e.g. 2,98")


@dataclass(frozen=True)
class Rendering:
    """How values became 8-bit colours: kept with each row, so that a hit is shown as it was encoded."""

    bands: tuple[int, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    def dumps(self) -> str:
        return json.dumps({"bands": self.bands, "low": self.low, "high": self.high})

    @classmethod
    def loads(cls, text: str) -> Rendering:
        value = parse_json(text)
        return cls(tuple(value["bands"]), tuple(value["low"]), tuple(value["high"]))


def choose_rendering(source: Any, options: TileOptions, label: str, *, false_alpha: bool) -> Rendering:
    """Choose bands, and estimate the percentiles of values of more than 8 bits without reading the whole raster.

    ``false_alpha``: what `alpha_is_a_band` says of it.
    """
    bands = _bands(source, options, label, false_alpha)
    if source.dtypes[bands[0] - 1] == "uint8":
        bits = source.tags(bands[0], ns="IMAGE_STRUCTURE").get("NBITS", "8")
        white = 2.0 ** int(bits) - 1 if bits.isdigit() else 255.0
        return Rendering(bands) if white >= 255 else Rendering(bands, (0.0,) * len(bands), (white,) * len(bands))
    sensor = options.known_sensor
    if sensor is not None:
        low, high = _by_reflectance(source, bands, sensor, options.told)
        return Rendering(bands, (low,) * len(bands), (high,) * len(bands))
    sample = _sample(source, bands)
    ends = [_limits(band, options.stretch) for band in sample]
    return Rendering(bands, tuple(low for low, _ in ends), tuple(high for _, high in ends))


def _by_reflectance(source: Any, bands: tuple[int, ...], sensor: Sensor, told: Told) -> tuple[float, float]:
    """The values that are black and white in a scene of ``sensor``, whether it stores counts or reflectances."""
    place = bands[0] - 1
    stated = float(source.scales[place]), float(source.offsets[place])
    if np.dtype(source.dtypes[place]).kind == "f":
        values = np.concatenate(_sample(source, bands))
        if values.size and np.percentile(values, 98) <= _LARGEST_REFLECTANCE:
            return limits(sensor, Told(), (1.0, 0.0), False)
    return limits(sensor, told, stated if stated != (1.0, 0.0) and stated[0] > 0 else None, is_later(source.tags()))


def is_later(tags: Mapping[str, Any]) -> bool:
    """Whether the tags of a scene tell that its values are shifted, as those of newer processing baselines are."""
    known = {name.rpartition(":")[2].upper(): str(value) for name, value in tags.items()}
    if known.get("BOA_ADD_OFFSET", "").startswith("-") or known.get("RADIO_ADD_OFFSET", "").startswith("-"):
        return True
    baseline = re.fullmatch(r"[Nn]?(\d\d)\.?(\d\d)", known.get("PROCESSING_BASELINE", ""))  # 05.09, or N0509
    return baseline is not None and int(baseline[1]) >= _LATER_BASELINE


def _bands(source: Any, options: TileOptions, label: str, false_alpha: bool) -> tuple[int, ...]:
    if options.bands is not None:
        if max(options.bands) > source.count:
            raise ImageError(
                f"'{label}' has {source.count} band{'s' * (source.count > 1)}, not {max(options.bands)}; "
                "choose others with --bands"
            )
        return options.bands
    if options.told.bands is not None and max(options.told.bands) <= source.count:
        return options.told.bands
    if (sensor := options.known_sensor) is not None:
        return _bands_of(sensor, source, label)
    names = [colour.name for colour in source.colorinterp]
    if false_alpha:
        alpha = names.index("alpha") + 1
        raise BandsError(
            f"'{label}' has {source.count} bands, and band {alpha} is called alpha but looks like a picture; "
            "choose three with --bands 1,2,3"
        )
    if all(name in names for name in ("red", "green", "blue")):
        return tuple(names.index(name) + 1 for name in ("red", "green", "blue"))
    if source.count <= 2:
        return (1,)
    if source.count == 3:
        return (1, 2, 3)
    described = named_bands(source.descriptions, COMMON)
    if described is not None:
        return described
    raise BandsError(f"'{label}' has {source.count} bands; choose three with --bands 4,3,2, or name its --sensor")


def alpha_is_a_band(source: Any) -> bool:
    """Whether what the file calls alpha holds a picture: writers call the fourth of four bands so if nobody says more.

    What says where there is something to see is nothing, or nearly everywhere else as much as anywhere: of soft edges
    there is little. Near infrared is not, however much of a scene is water, which is dark in it.
    """
    from rasterio.enums import ColorInterp, MaskFlags

    if source.count < 4 or MaskFlags.alpha not in source.mask_flag_enums[0]:
        return False
    band = source.colorinterp.index(ColorInterp.alpha) + 1
    (values,) = _sample(source, (band,))
    if values.size == 0:
        return False
    return bool((values >= _AS_GOOD_AS_FULL * values.max()).mean() < _LEAST_FULL_IN_ALPHA)


def _bands_of(sensor: Sensor, source: Any, label: str) -> tuple[int, ...]:
    """Red, green and blue by the names of the bands, else by their number; an 8-bit picture shows its colours."""
    described = named_bands(source.descriptions, sensor.names)
    coloured = named_bands([colour.name for colour in source.colorinterp], COMMON)
    found = described or (coloured if source.dtypes[0] == "uint8" else None) or sensor.bands.get(source.count)
    if found is None:
        raise ImageError(
            f"'{label}' has {source.count} band{'s' * (source.count > 1)}, and scenes of {sensor.name} have "
            f"{sensor.counts}; choose with --bands, or index it without --sensor"
        )
    return found


def _sample(source: Any, bands: tuple[int, ...]) -> list[NDArray[np.float64]]:
    """Valid values of each band: from an overview if there is one, else from windows spread over the raster."""
    small = max(source.width, source.height) <= _SAMPLE_SIDE
    if not small and not source.overviews(bands[0]):
        parts = [_valid_values(source, bands, window) for window in _spread(source)]
        joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
        if min(len(band) for band in joined) >= _SAMPLE_WINDOW**2:
            return joined
    return _valid_values(source, bands, None)


def _spread(source: Any) -> list[Any]:
    from rasterio.windows import Window as RasterWindow

    width, height = min(_SAMPLE_WINDOW, source.width), min(_SAMPLE_WINDOW, source.height)
    xs = np.unique(np.linspace(0, source.width - width, _SAMPLE_GRID, dtype=int))
    ys = np.unique(np.linspace(0, source.height - height, _SAMPLE_GRID, dtype=int))
    return [RasterWindow(int(x), int(y), width, height) for y in ys for x in xs]


def _valid_values(source: Any, bands: tuple[int, ...], window: Any) -> list[NDArray[np.float64]]:
    shape = (min(source.height, _SAMPLE_SIDE), min(source.width, _SAMPLE_SIDE))
    if window is not None:
        shape = (window.height, window.width)
    values = source.read(bands, window=window, out_shape=(len(bands), *shape))
    values = (np.abs(values) if np.iscomplexobj(values) else values).astype(np.float64)
    valid = source.dataset_mask(window=window, out_shape=shape) > 0
    # Unwritten blocks read as 0 in every band; as part of the sample they would darken the stretch.
    valid &= np.isfinite(values).all(axis=0) & (values != 0).any(axis=0)
    return [band[valid] for band in values]


def _limits(values: NDArray[np.float64], stretch: tuple[float, float]) -> tuple[float, float]:
    if values.size == 0:
        return 0.0, 1.0
    low, high = (float(value) for value in np.percentile(values, stretch))
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def to_bytes(values: NDArray[Any], rendering: Rendering) -> NDArray[np.uint8]:
    if not rendering.low:
        return values.astype(np.uint8, copy=False)
    low = np.array(rendering.low, np.float32)[:, None, None]
    high = np.array(rendering.high, np.float32)[:, None, None]
    scaled = (values.astype(np.float32) - low) * (255.0 / (high - low))
    finite = np.nan_to_num(scaled, nan=0.0, posinf=255.0, neginf=0.0)
    return np.asarray(np.rint(finite.clip(0, 255)), dtype=np.uint8)


def is_flat(values: NDArray[Any], valid: NDArray[np.bool_]) -> bool:
    """Whether all valid pixels are alike: unwritten blocks, or a fill value that the file does not declare."""
    if valid.all():
        return bool((values == values[:, :1, :1]).all())
    inside = values[:, valid]
    return bool((inside == inside[:, :1]).all())
