"""What a worker makes of its files, in this process: the rows that a run here makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evidex.cluster.index_worker import IndexWorker, WorkerJob, installed
from evidex.cluster.indexing import _batches
from evidex.data.items import ReadOptions
from evidex.errors import ClusterError
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.indexing import IndexOptions
from evidex.retrieval.indexing.workforce import EncodedFiles, Job
from evidex.retrieval.reindexing import reindex
from tests.data.stac.catalogs import write_catalog
from tests.retrieval.archive import tiny_model


class Here:
    """One worker, without a cluster."""

    def __init__(self, place: Path) -> None:
        self._place = place

    @contextmanager
    def at_work(self, job: Job) -> Iterator[Iterator[EncodedFiles]]:
        worker = IndexWorker(WorkerJob(str(self._place), job.read, job.reading, 1))
        assert worker.ready()
        with worker._open:
            yield (worker.encode(batch) for batch in _batches(job, job.tasks, 16))


def rows(gallery: Gallery) -> list[dict[str, Any]]:
    return list(gallery.dataset.to_table().sort_by("id").to_pylist())


def test_what_a_catalog_tells_reaches_the_rows_that_a_worker_writes(tmp_path: Path) -> None:
    catalog = write_catalog(tmp_path, 3)
    here = Gallery.create(tmp_path / "here", tiny_model())
    here.add([catalog], options=IndexOptions(workers=1))
    there = Gallery.create(tmp_path / "there", tiny_model())
    report = there.add([catalog], options=IndexOptions(workforce=Here(tmp_path / "there")))
    assert report.added == 3
    assert rows(there) == rows(here)
    assert {row["item"] for row in rows(there)} == {"scene-0", "scene-1", "scene-2"}
    new, fresh = (Gallery.create(tmp_path / name, tiny_model(seed=1)) for name in ("new", "fresh"))
    fresh.add([catalog], options=IndexOptions(workers=1))
    assert reindex(there, new, IndexOptions(workforce=Here(tmp_path / "new"))).added == 3
    assert rows(new) == rows(fresh)


def test_a_node_with_another_evidex_makes_no_rows(tmp_path: Path) -> None:
    Gallery.create(tmp_path / "g", tiny_model())
    same = WorkerJob(str(tmp_path / "g"), ReadOptions(), "", 1)
    assert same.made_with == installed()
    other = WorkerJob(str(tmp_path / "g"), ReadOptions(), "", 1, made_with="evidex 0.0.9, pillow 1, onnxruntime 1")
    with pytest.raises(
        ClusterError, match=r"a node has evidex .*, the run evidex 0\.0\.9.*; install the same on every"
    ):
        IndexWorker(other).ready()
