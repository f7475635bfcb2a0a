"""Indexing as a user meets it: again, after changes, with bad files, interrupted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from evidex.data.items import ReadOptions
from evidex.data.rendering import TileOptions
from evidex.errors import InputError
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.indexing.decode_worker import Fit, fitted
from evidex.retrieval.indexing.run import fit_of
from tests.retrieval.archive import WORDS, picture, tiny_model, write_images, write_raster

ONE_WORKER = IndexOptions(workers=1)


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    return Gallery.create(tmp_path / "gallery", tiny_model())


def _by_path(gallery: Gallery) -> dict[str, np.ndarray]:
    rows = gallery.rows(range(len(gallery)))
    assert len({row.id for row in rows}) == len(rows)
    return {row.path: gallery.vectors[position] for position, row in enumerate(rows) if row.window is None}


def test_vectors_are_those_of_the_model(gallery: Gallery, tmp_path: Path) -> None:
    paths = write_images(tmp_path / "a", 20) + write_images(tmp_path / "a" / "deep" / "er", 5, 20, "jpg")
    write_images(tmp_path / "a" / ".hidden", 2)
    (tmp_path / "a" / "notes.txt").write_text("no image")
    report = gallery.add(tmp_path / "a", options=ONE_WORKER)
    assert (report.found, report.added, report.encoded, report.rows, report.skipped) == (25, 25, 25, 25, ())
    indexed = _by_path(gallery)
    expected = tiny_model().encode_images(paths)
    for path, vector in zip(paths, expected, strict=True):
        assert np.abs(indexed[str(path)] - vector).max() < 1e-6


def test_a_second_run_encodes_only_what_changed(gallery: Gallery, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    paths = write_images(folder, 12)
    gallery.add(folder, options=ONE_WORKER)
    before = _by_path(gallery)
    again = gallery.add(folder, options=ONE_WORKER)
    assert (again.unchanged, again.encoded, again.added) == (12, 0, 0)

    os.utime(paths[0], (1, 1))  # touched
    shutil.copy2(paths[1], folder / "copy.png")  # duplicate
    paths[2].rename(folder / "renamed.png")  # moved
    picture(500).save(paths[3])  # changed
    paths[4].unlink()  # gone
    picture(501).save(folder / "new.png")
    report = gallery.add(folder, options=ONE_WORKER)
    assert report.encoded == 2
    assert (report.added, report.updated, report.moved, report.unchanged) == (2, 1, 1, 9)
    assert [(Path(d.name).name, Path(d.of).name) for d in report.duplicates] == [("copy.png", paths[1].name)]
    after = _by_path(gallery)
    assert np.array_equal(after[str(paths[0])], before[str(paths[0])])
    assert np.array_equal(after[str(folder / "copy.png")], before[str(paths[1])])
    assert np.array_equal(after[str(folder / "renamed.png")], before[str(paths[2])])
    assert str(paths[2]) not in after
    assert not np.array_equal(after[str(paths[3])], before[str(paths[3])])
    assert str(paths[4]) in after  # without --prune
    assert gallery.add(folder, options=ONE_WORKER).encoded == 0

    pruned = gallery.add(folder, options=IndexOptions(workers=1, prune=True))
    assert pruned.pruned == 1
    assert str(paths[4]) not in _by_path(gallery)
    expected = tiny_model().encode_images(sorted(folder.glob("*.png")))
    final = _by_path(gallery)
    assert sorted(final) == sorted(map(str, folder.glob("*.png")))
    for path, vector in zip(sorted(final), expected, strict=True):
        assert np.abs(final[path] - vector).max() < 1e-6


def test_prune_leaves_other_folders_alone(gallery: Gallery, tmp_path: Path) -> None:
    kept, pruned = write_images(tmp_path / "a", 2), write_images(tmp_path / "ab", 2, 10)
    gallery.add([tmp_path / "a", tmp_path / "ab"], options=ONE_WORKER)
    kept[0].unlink()
    pruned[0].unlink()
    gallery.add(tmp_path / "ab", options=IndexOptions(workers=1, prune=True))
    assert set(_by_path(gallery)) == {str(kept[0]), str(kept[1]), str(pruned[1])}


def test_duplicates_in_one_run_have_a_row_each(gallery: Gallery, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("x", "y", "z"):
        picture(1).save(tmp_path / "a" / f"{name}.png")
    report = gallery.add(tmp_path / "a", options=ONE_WORKER)
    assert (report.added, len(report.duplicates), report.rows) == (3, 2, 3)
    vectors = gallery.vectors
    assert np.allclose(vectors, vectors[0], atol=1e-6)


def test_globs_and_single_files(gallery: Gallery, tmp_path: Path) -> None:
    write_images(tmp_path / "a", 3)
    write_images(tmp_path / "b", 3, 10)
    odd = tmp_path / "odd.dat"
    picture(99).save(odd, "PNG")
    report = gallery.add([str(tmp_path / "*" / "scene_*1*.png"), odd], options=ONE_WORKER)
    assert sorted(Path(path).name for path in _by_path(gallery)) == [
        "odd.dat", "scene_0001.png", "scene_0010.png", "scene_0011.png", "scene_0012.png",
    ]  # fmt: skip
    assert report.skipped == ()
    with pytest.raises(InputError, match="nothing matches"):
        gallery.add(str(tmp_path / "*.xyz"))
    with pytest.raises(InputError, match="does not exist"):
        gallery.add(tmp_path / "nowhere")


def test_scenes_are_tiled_resumed_and_tiled_again_with_other_options(gallery: Gallery, tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(1, 4000, (3, 1200, 1300)).astype(np.uint16)
    values[:, :600, :600] = 0
    path = write_raster(tmp_path / "scene.tif", values, nodata=0)
    report = gallery.add(path, options=ONE_WORKER)
    rows = gallery.rows(range(len(gallery)))
    assert (report.added, report.encoded, len(rows)) == (1, 8, 8)  # 3 × 3 windows, the first is empty
    assert all(row.kind == "tile" and row.footprint is not None and row.window is not None for row in rows)
    assert [row.complete for row in rows] == [False] * 7 + [True]

    # As a run that was killed after five tiles leaves it.
    gallery.remove([row.id for row in rows[5:]])
    report = gallery.add(path, options=ONE_WORKER)
    assert report.encoded == 3
    assert {row.id for row in gallery.rows(range(len(gallery)))} == {row.id for row in rows}
    assert gallery.add(path, options=ONE_WORKER).unchanged == 1

    # All tiles are there, only the mark of completeness is not.
    last = next(row for row in gallery.rows(range(len(gallery))) if row.complete)
    gallery.remove([last.id])
    first = gallery.rows([0])[0]
    values[:, last.window.y :, last.window.x :] = 0  # type: ignore[union-attr]
    status = path.stat()
    write_raster(path, values, nodata=0)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    changed = gallery.add(path, options=ONE_WORKER)
    assert (changed.updated, changed.read_otherwise) == (1, 0)
    assert last.id not in {row.id for row in gallery.rows(range(len(gallery)))}
    assert gallery.find(first.id).sha256 != first.sha256

    smaller = IndexOptions(read=ReadOptions(TileOptions(tile=256, overlap=0)), workers=1)
    report = gallery.add(path, options=smaller)
    assert (report.updated, report.read_otherwise) == (1, 1)  # the file is as it was
    assert report.read_before == "--tile 512 then and 256 now, --overlap 64 then and 0 now"
    again = gallery.add(path, options=smaller)
    assert (again.read_otherwise, again.read_before) == (0, "")
    assert {(row.window.width, row.window.height) for row in gallery.rows(range(len(gallery))) if row.window} == {
        (256, 256)
    }


def test_captions_beside_the_images_are_taken_and_corrected(gallery: Gallery, tmp_path: Path) -> None:
    import json

    paths = write_images(tmp_path / "a" / "images", 4)

    def write(captions: list[str]) -> None:
        entries = [
            {"filename": path.name, "split": "x", "captions": [text]}
            for path, text in zip(paths, captions, strict=False)
        ]
        (tmp_path / "a" / "captions.json").write_text(json.dumps({"dataset": "a", "images": entries}))

    write(list(WORDS[:3]))
    gallery.add(tmp_path / "a", options=ONE_WORKER)
    found = {Path(row.path).name: row.caption for row in gallery.rows(range(4))}
    assert found == {path.name: text for path, text in zip(paths, [*WORDS[:3], None], strict=True)}
    write([*WORDS[:2], "another", "a fourth"])
    report = gallery.add(tmp_path / "a", options=ONE_WORKER)
    assert report.encoded == 0
    found = {Path(row.path).name: row.caption for row in gallery.rows(range(4))}
    assert found == {path.name: text for path, text in zip(paths, [*WORDS[:2], "another", "a fourth"], strict=True)}


def test_workers_prepare_pictures_as_the_encoder_does() -> None:
    model = tiny_model()
    for size in ((48, 40), (32, 32), (1, 1), (900, 31), (3000, 2000)):
        image = picture(3, size)
        assert np.array_equal(fitted(image, fit_of(model)), model.encoder.prepare_image(image))
    raw = picture(4)
    assert np.array_equal(fitted(raw, Fit("none", 0)), np.asarray(raw))


def test_a_worker_that_dies_names_its_file(gallery: Gallery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_images(tmp_path / "a", 6)
    killer = tmp_path / "hook"
    killer.mkdir()
    # The decoding processes alone see this hook: it ends them hard on one file, as a crash in a C library would.
    (killer / "sitecustomize.py").write_text(
        "import sys, os\n"
        "if any('decode_worker' in part for part in sys.orig_argv):\n"
        "    sys.addaudithook(lambda event, args: os.abort() if event == 'open'"
        " and str(args[0]).endswith('scene_0003.png') else None)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(killer))
    report = gallery.add(tmp_path / "a", options=IndexOptions(workers=2))
    assert report.added == 5
    assert [(Path(skip.name).name, skip.reason) for skip in report.skipped] == [
        ("scene_0003.png", "crashed the decoder (signal 6)")
    ]


def test_a_file_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evidex.data.discover import discover
    from evidex.retrieval.indexing.decode_worker import DecodeTask, Failed, Picture, WorkerSettings
    from evidex.retrieval.indexing.decoding import DecodePool

    write_images(tmp_path / "a", 3)
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(
        "import sys, time\n"
        "sys.addaudithook(lambda event, args: time.sleep(60) if event == 'open'"
        " and str(args[0]).endswith('scene_0001.png') else None)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "hook"))
    tasks = [DecodeTask(file) for file in discover([tmp_path / "a"]).files]
    settings = WorkerSettings(ReadOptions(), Fit("square", 32))
    with DecodePool(tasks, settings, workers=1, wanted=lambda *_: True, patience=4.0) as pool:
        messages = list(pool)
    assert sorted(Path(m.path).name for m in messages if isinstance(m, Picture)) == ["scene_0000.png", "scene_0002.png"]
    (failed,) = [m for m in messages if isinstance(m, Failed)]
    assert failed.path.endswith("scene_0001.png")
    assert "gave no sign" in failed.reason


def _write_sparse(path: Path, side: int) -> set[tuple[int, int]]:
    """A scene of 8 float bands with data in a few blocks of 512; returns where."""
    import rasterio
    from rasterio.windows import Window

    write_raster(path, np.zeros((8, 16, 16), np.float32), tiled=False)
    with rasterio.open(path) as source:
        profile = {**source.profile, "width": side, "height": side, "tiled": True, "blockxsize": 512, "blockysize": 512}
    places = {(0, 0), (1024, 2048), (2560, 512)}
    rng = np.random.default_rng(3)
    with rasterio.open(path, "w", **{**profile, "SPARSE_OK": True, "compress": "deflate"}) as target:
        for x, y in places:
            target.write(rng.random((8, 512, 512), dtype=np.float32), window=Window(x, y, 512, 512))
    return places


@pytest.mark.slow
def test_a_large_scene_is_never_read_whole(gallery: Gallery, tmp_path: Path) -> None:
    import subprocess
    import sys

    path = tmp_path / "large.tif"
    places = _write_sparse(path, 4000)
    tiles = TileOptions(tile=512, overlap=0, bands=(4, 3, 2))
    report = gallery.add(path, options=IndexOptions(read=ReadOptions(tiles), workers=1))
    assert report.skipped == ()
    windows = [row.window for row in gallery.rows(range(len(gallery)))]
    assert {(window.x, window.y) for window in windows if window is not None} == places
    # In a process of its own: the scene has 490 MiB, what reads it must stay far below.
    script = (
        "import resource, sys\n"
        "from evidex.data.items import ReadOptions, read_items\n"
        "from evidex.data.rendering import TileOptions\n"
        "options = ReadOptions(TileOptions(tile=512, overlap=0, bands=(4, 3, 2)))\n"
        "list(read_items(sys.argv[2], options))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "count = sum(item.picture is not None for item in read_items(sys.argv[1], options))\n"
        "print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    small = write_raster(
        tmp_path / "small.tif", np.random.default_rng(0).random((8, 64, 64), dtype=np.float32), tiled=False
    )
    result = subprocess.run([sys.executable, "-c", script, str(path), str(small)], capture_output=True, text=True)
    count, grown_kib = map(int, result.stdout.split())
    assert count == len(places)
    assert grown_kib < 250 * 1024
