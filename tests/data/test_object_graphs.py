"""The graph over a picture's objects: that of boxes against its definition, and matrices taken as they are."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidex.data.object_graphs import NODES, graph, graphs_of, read_matrices
from evidex.data.objects import CLASSES, FoundObject
from evidex.data.records import Record
from evidex.errors import DataError

SHIP = FoundObject("ship", 0.9, (0.1, 0.2, 0.3, 0.4))
TANK = FoundObject("storage tank", 0.5, (0.5, 0.5, 0.9, 0.9))


def test_the_graph_of_two_objects_is_that_of_its_definition() -> None:
    nodes, links = graph([TANK, SHIP])
    ship, tank = nodes[0], nodes[1]  # the surer one first
    assert ship[CLASSES.index("ship")] == tank[CLASSES.index("storage tank")] == 1
    assert ship[:15].sum() == tank[:15].sum() == 1
    assert ship[15:].tolist() == pytest.approx([0.9, 0.2, 0.3, 0.2, 0.2])
    assert tank[15:].tolist() == pytest.approx([0.5, 0.7, 0.7, 0.4, 0.4])
    near = 1 - math.hypot(0.5, 0.4) / math.sqrt(2)
    assert links[0, 0] == links[1, 1] == pytest.approx(1 / (1 + near))
    assert links[0, 1] == links[1, 0] == pytest.approx(near / (1 + near))
    assert not nodes[2:].any()
    assert not links[2:].any()
    assert not links[:, 2:].any()


def test_twenty_objects_are_kept_the_surest_and_of_these_the_largest() -> None:
    cars = [FoundObject("small vehicle", 1.0, (0.0, 0.0, 0.01, 0.01))] * 30
    nodes, _ = graph([*cars, FoundObject("tennis court", 1.0, (0.2, 0.2, 0.8, 0.8))])
    assert nodes[0, CLASSES.index("tennis court")] == 1
    assert nodes[1:, CLASSES.index("small vehicle")].sum() == 19
    assert not graph([]).any()


def test_matrices_are_taken_as_they_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    nodes, links = rng.random((2, 3, 20, 20)).astype(np.float32)
    np.savez(tmp_path / "objects.npz", names=np.array(["a.jpg", "b.jpg", "c.jpg"]), nodes=nodes, links=links)
    records = [Record(name, "train", ("x",), home=tmp_path) for name in ("c.jpg", "a.jpg")]
    assert np.array_equal(graphs_of(records), np.stack([nodes[[2, 0]], links[[2, 0]]], 1))
    with pytest.raises(DataError, match=r"d\.jpg"):
        graphs_of([Record("d.jpg", "train", ("x",), home=tmp_path)])


@pytest.mark.parametrize(
    "arrays",
    [
        {"names": np.array(["a"])},
        {"names": np.array(["a"]), "nodes": np.zeros((1, 3, 3)), "links": np.zeros((1, 3, 3))},
        {"names": np.array(["a"]), "nodes": np.full((1, 20, 20), np.nan), "links": np.zeros((1, 20, 20))},
        {"names": np.array([{"a": 1}], dtype=object), "nodes": np.zeros((1, 20, 20)), "links": np.zeros((1, 20, 20))},
    ],
)
def test_matrices_that_are_none_are_refused(arrays: dict[str, Any], tmp_path: Path) -> None:
    np.savez(tmp_path / "objects.npz", **arrays)
    with pytest.raises(DataError, match=r"objects\.npz"):
        graphs_of([Record("a", "train", ("x",), home=tmp_path)])


def test_a_dataset_without_objects_says_where_they_are_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"neither objects\.json nor objects\.npz"):
        graphs_of([Record("a.jpg", "train", ("x",), home=tmp_path)])
    with pytest.raises(DataError, match="caption file"):
        graphs_of([Record("a.jpg", "train", ("x",))])


@pytest.mark.parametrize("spoilt", ["empty", "one array", "scalar", "twice"])
def test_a_spoilt_file_of_matrices_is_told(tmp_path: Path, spoilt: str) -> None:
    path = tmp_path / "objects.npz"
    nodes = links = np.zeros((2, NODES, NODES), np.float32)
    if spoilt == "empty":
        path.write_bytes(b"")
    elif spoilt == "one array":
        with path.open("wb") as stream:
            np.save(stream, nodes)
    else:
        names = np.array("a.png" if spoilt == "scalar" else ["a.png", "a.png"])
        np.savez(path, names=names, nodes=nodes, links=links)
    with pytest.raises(DataError, match=r"objects\.npz' (does not hold|names a picture twice)"):
        read_matrices(path)
