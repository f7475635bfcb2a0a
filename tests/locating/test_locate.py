"""The whole way: what is there is found where it is, what is not makes a flat map, and the answer says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evidex.data.footprints import Window
from evidex.errors import InputError
from evidex.locating.asked import ask
from evidex.locating.locate import LocateOptions, locate
from evidex.locating.located import Finding, Located, collection
from evidex.locating.view import View, view_of_file, view_of_picture
from evidex.retrieval.out_of_domain import Reading
from tests.locating.places import NO_TANKS, TANKS, compact, in_tanks, scene, write_scene
from tests.retrieval.archive import picture, tiny_model, write_raster


def _picture(kinds: Any) -> View:
    return view_of_picture(Image.fromarray(scene(kinds).transpose(1, 2, 0)), "scene.png")


@pytest.fixture(scope="module")
def tanks() -> Located:
    return locate(compact(), _picture(TANKS), ask(compact(), "storage tanks", "text"))


def test_what_is_there_is_found_where_it_is(tanks: Located) -> None:
    assert tanks.finding in (Finding.FOUND, Finding.PERHAPS)
    assert "1 place looks" in tanks.headline
    assert tanks.headline.endswith("like storage tanks")
    (peak,) = tanks.peaks
    assert in_tanks(peak.spot.x, peak.spot.y)
    assert peak.spot.score == pytest.approx(tanks.heat.peak)
    assert peak.place is None
    (feature,) = collection([tanks])["features"]
    assert feature["geometry"] is None  # coordinates of GeoJSON are degrees
    assert (feature["properties"]["x"], feature["properties"]["y"]) == (peak.spot.x, peak.spot.y)


def test_what_is_told_of_a_scene_needs_no_map(tanks: Located) -> None:
    kept = tanks.without_map()
    assert kept.heat.values.size == 1
    assert (kept.json(), kept.features(), kept.headline) == (tanks.json(), tanks.features(), tanks.headline)


def test_what_is_not_wanted_is_left_out_and_said() -> None:
    plain = ask(compact(), "storage tanks", "text")
    asked = ask(compact(), "storage tanks -forest", "text")
    assert (asked.vector == plain.vector).all()
    assert (asked.shown, asked.thing) == ("storage tanks -forest", "storage tanks")
    found = locate(compact(), _picture(NO_TANKS), asked)
    assert found.headline == "Nothing here looks like storage tanks"
    assert "'forest' was left out" in found.explanation
    with pytest.raises(InputError, match="only what is not wanted"):
        ask(compact(), "-forest", "text")


def test_a_scene_without_it_has_a_flat_map_and_says_so() -> None:
    found = locate(compact(), _picture(NO_TANKS), ask(compact(), "where are the storage tanks?", "text"))
    assert found.finding is Finding.NOTHING
    assert found.headline == "Nothing here looks like the storage tanks"
    assert found.peaks == ()
    assert not found.heat.values.any()
    assert found.json()["peak"] == 0.0
    assert found.best is not None
    assert found.asked.bar.floor == compact().domain.least_match  # type: ignore[union-attr]


def test_words_the_model_never_learned_are_named_and_nothing_is_looked_at() -> None:
    found = locate(compact(), _picture(NO_TANKS), ask(compact(), "avocado armchairs", "text"))
    assert found.finding is Finding.OUT_OF_DOMAIN
    assert "'armchairs'" in found.explanation
    assert found.windows == 0
    assert not found.heat.values.any()
    slip = locate(compact(), _picture(NO_TANKS), ask(compact(), "mountian", "text"), LocateOptions(sizes=(224,)))
    assert "Read 'mountian' as 'mountain'." in slip.explanation


def test_an_example_is_looked_for_too_and_nobody_claims_to_know_how_alike_it_must_be() -> None:
    example = Image.fromarray(scene((("storagetanks",),)).transpose(1, 2, 0))
    found = locate(compact(), _picture(TANKS), ask(compact(), example, "image", "example.png"))
    assert found.finding is Finding.UNJUDGED
    assert found.headline == "The places most like example.png"
    assert in_tanks(found.peaks[0].spot.x, found.peaks[0].spot.y)


def test_a_window_is_encoded_like_an_image_of_a_gallery(tmp_path: Path) -> None:
    """One window over all of a picture scores as that picture does in a search."""
    model, shown = tiny_model(), picture(3, (96, 96))
    shown.save(tmp_path / "one.png")
    asked = ask(model, "a river between green fields", "text")
    with view_of_file(str(tmp_path / "one.png")) as view:
        found = locate(model, view, asked, LocateOptions(sizes=(96,)))
    assert found.windows == 1
    assert found.best == pytest.approx(float(model.encode_images([shown])[0] @ asked.vector), abs=1e-6)


@contextmanager
def _watched(path: Path, seen: list[Window]) -> Iterator[View]:
    with view_of_file(str(path)) as view:

        def render(window: Window, longest: int) -> Any:
            seen.append(window)
            return view.render(window, longest)

        yield View(view.name, view.width, view.height, render, view.crs, view.transform, view.place)


def test_a_large_scene_is_read_by_windows_and_encoded_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never more of it than a window, never more windows than a batch."""
    model, batches, steps = tiny_model(), [], []
    encode = model.encode_pixels

    def counted(pixels: Any, **_: Any) -> Any:
        batches.append(len(pixels))
        return encode(pixels)

    monkeypatch.setattr(model, "encode_pixels", counted)
    values = np.random.default_rng(0).integers(0, 255, (3, 1500, 1400), np.uint8)
    values[:, :, 700:] = 0
    path = write_raster(tmp_path / "large.tif", values)
    seen: list[Window] = []
    with _watched(path, seen) as view:
        found = locate(
            model, view, ask(model, "a lake", "text"), progress=lambda done, total: steps.append((done, total))
        )
    assert max(window.width * window.height for window in seen) <= 512 * 512
    assert max(batches) <= 64
    assert sum(batches) == found.windows < len(seen)  # what is empty is not encoded
    assert steps[-1][1] == len(seen)
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert np.isnan(found.heat.values[:, -1]).all()
    assert np.isfinite(found.heat.values[:, 0]).all()


def test_a_scene_with_nothing_to_see_is_said_to_be_empty(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "empty.tif", np.zeros((3, 100, 100), np.uint8))
    with view_of_file(str(path)) as view:
        found = locate(tiny_model(), view, ask(tiny_model(), "a lake", "text"))
    assert (found.finding, found.peaks, found.best) == (Finding.EMPTY, (), None)
    assert found.headline == "There is nothing to see in this scene"


def test_a_map_of_what_is_denied_says_so(tmp_path: Path) -> None:
    model = tiny_model()
    with view_of_file(str(write_scene(tmp_path / "scene.tif"))) as view:
        denied, plain = (locate(model, view, ask(model, text, "text")).explanation for text in ("no lake", "a lake"))
    assert "does not understand 'no'" in denied
    assert "understand" not in plain
    dark = write_raster(tmp_path / "dark.tif", np.zeros((3, 100, 100), np.uint8))
    with view_of_file(str(dark)) as view:
        assert "understand" not in locate(model, view, ask(model, "no lake", "text")).explanation  # the map is flat


def test_places_are_in_degrees_where_the_scene_has_a_place(tmp_path: Path) -> None:
    with view_of_file(str(write_scene(tmp_path / "scene.tif"))) as view:
        found = locate(compact(), view, ask(compact(), "storage tanks", "text"))
    from rasterio.warp import transform

    (peak,) = found.peaks
    east, north = 380_000 + 10 * (int(peak.spot.x) + 0.5), 5_820_000 - 10 * (int(peak.spot.y) + 0.5)
    (longitude,), (latitude,) = transform("EPSG:32633", "EPSG:4326", [east], [north])
    assert peak.place == pytest.approx((longitude, latitude), abs=1e-7)
    (feature,) = collection([found])["features"]
    assert feature["geometry"]["coordinates"] == list(peak.place or ())


@pytest.mark.parametrize("options", [{"sizes": ()}, {"sizes": (128, 4)}, {"most_peaks": 0}])
def test_options_that_cannot_be_meant_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        LocateOptions(**options)


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        (Reading(counted="two lakes"), "asked for 'two lakes', and the model hardly tells how many"),
        (Reading(counted="how many"), "hardly tells how many there are; count for yourself"),
        (Reading(state="flooded"), "hardly learned 'flooded'; the places may be in any state"),
        (Reading(in_passing=("flooded",)), "hardly learned 'flooded'; the map may leave that out"),
        (Reading(negated="-"), "'-' with blanks around it takes nothing away"),
    ],
)
def test_a_map_tells_the_doubts_that_a_search_tells(reading: Reading, said: str, tmp_path: Path) -> None:
    asked = replace(ask(tiny_model(), "a lake", "text"), reading=reading)
    with view_of_file(str(write_scene(tmp_path / "scene.tif"))) as view:
        assert said in locate(tiny_model(), view, asked).explanation


def test_numbers_and_states_of_a_question_reach_its_map() -> None:
    view = _picture(TANKS)
    counted, plain = (locate(compact(), view, ask(compact(), text, "text")) for text in ("two tanks", "storage tanks"))
    assert "'two tanks'" in counted.explanation or counted.finding.is_flat
    assert "count for yourself" not in plain.explanation
    assert "'flooded'" in locate(compact(), view, ask(compact(), "flooded storage tanks", "text")).explanation
