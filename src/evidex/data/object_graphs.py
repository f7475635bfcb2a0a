"""A graph over the objects of each picture: what each is and where, and how near they are to each other.

GaLR's authors publish two matrices of 20 × 20 for each picture of RSICD and RSITMD, the objects' representation and
their adjacency, without the code that made them. They are read as they are from ``objects.npz`` beside the captions:
``names`` (n,), ``nodes`` and ``links`` (n, 20, 20). Where boxes are given instead (`evidex.data.objects`) the graph is
ours: the text that defines the authors' could not be read.
"""

from __future__ import annotations

import functools
import math
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evidex.data.objects import CLASSES, OBJECTS_FILE, FoundObject, read_objects
from evidex.data.records import Record
from evidex.documents import is_file
from evidex.errors import DataError

MATRICES_FILE = "objects.npz"
NODES = 20
"""Objects of a picture at most, and the numbers that describe one."""

Graph = NDArray[np.float32]


def graphs_of(records: Sequence[Record]) -> Graph:
    """Nodes and links of the pictures, (n, 2, 20, 20), from the file of objects beside their captions."""
    graphs = np.zeros((len(records), 2, NODES, NODES), np.float32)
    folders = {record.home for record in records}
    if None in folders:
        raise DataError("a record without a caption file has no file of objects beside it; read it from one")
    of_folder = {folder: _known(folder) for folder in folders if folder is not None}
    for row, record in zip(graphs, records, strict=True):
        assert record.home is not None
        known = of_folder[record.home]
        if record.filename not in known:
            raise DataError(
                f"'{record.filename}' is missing in the file of objects in '{record.home}'; "
                "add it, without objects where none were found"
            )
        row[:] = known[record.filename]
    return graphs


def _known(folder: Path) -> Mapping[str, Graph]:
    for path in (folder / MATRICES_FILE, folder / OBJECTS_FILE):
        if is_file(path):
            return _read(path, path.stat().st_mtime_ns)
    raise DataError(
        f"'{folder}' has neither {OBJECTS_FILE} nor {MATRICES_FILE}: the method looks at the objects of each picture; "
        "write what a detector finds there (docs/data.md)"
    )


@functools.lru_cache(maxsize=8)
def _read(path: Path, changed: int) -> Mapping[str, Graph]:
    """What ``path`` holds since it was ``changed``; a run asks for each of its splits."""
    del changed
    if path.name == MATRICES_FILE:
        return read_matrices(path)
    return {name: graph(found) for name, found in read_objects(path).items()}


def read_matrices(path: Path) -> dict[str, Graph]:
    """The matrices of each file name, as they are in ``path``."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            names, nodes, links = (arrays[key] for key in ("names", "nodes", "links"))
        both = np.stack([nodes, links], 1).astype(np.float32)
        counted = len(names)
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise DataError(f"'{path}' does not hold names, nodes and links ({error}); see docs/data.md") from None
    if both.shape != (counted, 2, NODES, NODES) or not np.isfinite(both).all():
        raise DataError(f"'{path}' holds matrices of shape {nodes.shape}; give finite ones, (names, {NODES}, {NODES})")
    if counted > len(set(names.tolist())):
        raise DataError(f"'{path}' names a picture twice; keep one of its matrices")
    return {str(name): each for name, each in zip(names, both, strict=True)}


def graph(objects: Sequence[FoundObject]) -> Graph:
    """Nodes and links of one picture, (2, 20, 20), of the twenty surest objects, among equally sure ones the largest.

    A node has its class as one of fifteen, its score, the middle and the sides of its box. Two objects are linked by
    how near their middles are, each to itself by 1, and the links are divided by the roots of their sums.
    """
    chosen = sorted(objects, key=lambda each: (each.score, each.area), reverse=True)[:NODES]
    both = np.zeros((2, NODES, NODES), np.float32)
    if not chosen:
        return both
    boxes = np.array([each.box for each in chosen])
    middles, sides = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    count = len(chosen)
    both[0, np.arange(count), [CLASSES.index(each.kind) for each in chosen]] = 1
    both[0, :count, len(CLASSES)] = [each.score for each in chosen]
    both[0, :count, len(CLASSES) + 1 :] = np.concatenate([middles, sides], 1)
    apart = np.linalg.norm(middles[:, None] - middles, axis=-1)
    near = 1 - apart / math.sqrt(2)
    root = np.sqrt(near.sum(1))
    both[1, :count, :count] = near / root[:, None] / root
    return both
