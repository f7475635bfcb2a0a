"""Search on clusters of two and four nodes against one gallery, and what becomes of queries when something is killed.

    python benchmarks/cluster_queries.py

200 questions in words and pictures, with and without filters, asked again or not, among pictures and texts: hits,
scores, uncertainty, verdict and guarantee must be those of one gallery. Then 500 questions in a row on four nodes,
during which a worker and later a whole node are killed with SIGKILL: every one is answered as before, or told. With
`--store` the gallery lies in an object store (moto's, in this process), which also answers 503 for ten seconds.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evidex.data.footprints import Bounds, Footprint
from evidex.encoders.model import load_model
from evidex.errors import ClusterError, StorageError
from evidex.retrieval.answers import Answer
from evidex.retrieval.certainty.calibrating import GuaranteeRequest, KnownQuery, calibrate
from evidex.retrieval.certainty.self_calibrating import self_calibrate
from evidex.retrieval.filters import NO_FILTERS, Filters
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.refine import ALWAYS, AS_CALIBRATED, NEVER
from evidex.retrieval.retriever import Retriever
from evidex.retrieval.rows import Row, item_id
from evidex.retrieval.sharded.fleet import ShardOptions
from evidex.retrieval.sharded.rows import ShardedRows
from tests.cluster.nodes import cluster_of, kill_node, kill_process
from tests.storage.store import Store, fresh_place, serving

_THINGS = ("planes", "ships", "houses", "storage tanks", "trees", "a river", "a bridge", "a stadium", "roads", "a lake")
_PLACES = ("near a terminal", "in a harbour", "beside green fields", "in a dense residential area", "by the sea")
_WORDS = ("many", "some", "several", "two", "white")
_FILTERS = (
    NO_FILTERS,
    Filters(bbox=Bounds(13.1, 51.0, 13.6, 53.0)),
    Filters(after=datetime(2021, 1, 1, tzinfo=UTC)),
    Filters(glob="*7.tif"),
)


@dataclass(frozen=True)
class Outcome:
    """Of questions that were asked one after the other while something was killed."""

    counts: Counter[str]
    slowest: float
    seconds: float


def main() -> int:
    options = _options()
    failed = False
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, ExitStack() as stack:
        store = stack.enter_context(serving()) if options.store else None
        if store is not None:
            os.environ["EVIDEX_CACHE"] = f"{folder}/cache"  # what is fetched goes with it
        gallery = _gallery(Path(folder) / "gallery" if store is None else fresh_place(), options.rows)
        questions = [_question(number) for number in range(200)]
        local = Retriever(gallery)
        expected = [local.search(**question) for question in questions]
        print(f"{len(gallery)} rows; of 200 questions: {dict(Counter(answer.verdict for answer in expected))}")
        for nodes in (2, 4):
            with cluster_of(nodes):
                failed |= not _compared(gallery, questions, expected, nodes)
        for replicas, patience in ((1, 60.0), (2, 60.0), (1, 2.0)):
            with cluster_of(4) as cluster:
                rows = ShardedRows(gallery, "auto", ShardOptions(4, replicas, patience=patience))
                with Retriever(gallery, rows=rows) as spread:
                    outcome = _killed(spread, rows, _Disturbed(cluster, store), questions, expected)
            print(
                f"kills, {replicas} replica(s), patience {patience:g} s: {dict(outcome.counts)} of 500 in "
                f"{outcome.seconds:.1f} s, the slowest {outcome.slowest:.1f} s",
                flush=True,
            )
            failed |= sum(outcome.counts.values()) != 500 or bool(set(outcome.counts) - {"answered", "told"})
    return int(failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--store", action="store_true", help="put the gallery into an object store")
    parser.add_argument("--folder", help="where the gallery is made; it is removed at the end")
    return parser.parse_args()


def _caption(number: int) -> str:
    words, things, places = len(_WORDS), len(_THINGS), len(_PLACES)
    return f"{_WORDS[number % words]} {_THINGS[number // words % things]} {_PLACES[number // words // things % places]}"


def _gallery(place: Path | str, rows: int) -> Gallery:
    """Rows around what 250 captions mean; two thirds of these ask for a row that they find, which teaches a score."""
    model = load_model("compact")
    captions = [_caption(number) for number in range(250)]
    meant = model.encode_texts(captions)
    rng = np.random.default_rng(0)
    of_caption = rng.integers(0, len(captions), rows)
    vectors = meant[of_caption] + 2.0 / np.sqrt(model.dim) * rng.standard_normal((rows, model.dim))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    gallery = Gallery.create(place, model, source="compact")
    gallery.append([_row(number) for number in range(rows)], vectors.astype(np.float32))
    gallery.add_texts(captions)
    self_calibrate(gallery, np.random.default_rng(1))
    found = Retriever(gallery).search_batch(texts=captions, top=120)
    known = [
        KnownQuery(caption, frozenset([answer.hits[100 if number % 3 == 0 else number % 10].id]))
        for number, (caption, answer) in enumerate(zip(captions, found, strict=True))
    ]
    asked_for = GuaranteeRequest(alpha=0.5)
    outcome = calibrate(gallery, known, "text", guarantee=asked_for, score="learned", rng=np.random.default_rng(2))
    print(f"calibrated by {outcome.calibration.score}; guarantee: {outcome.guarantee is not None}")
    return gallery


def _row(number: int) -> Row:
    path = f"/archive/{2020 + number % 4}/scene_{number}.tif"
    west = 13 + number % 100 / 100
    place = Footprint(((west, 52.0), (west + 0.1, 52.0), (west + 0.1, 52.1), (west, 52.1))) if number % 5 else None
    time = datetime(2020 + number % 4, 6, 1, tzinfo=UTC) if number % 3 else None
    return Row(item_id(path), path, "image", f"{number:064x}", footprint=place, acquired=time)


def _question(number: int) -> dict[str, Any]:
    question: dict[str, Any] = {
        "top": (1, 10, 50)[number % 3],
        "filters": _FILTERS[number // 2 % 4],
        "refine": (AS_CALIBRATED, ALWAYS, NEVER)[number // 8 % 3],
    }
    if number % 2:
        coarse = np.random.default_rng(number).integers(0, 256, (6, 6, 3), dtype=np.uint8)
        question["image"] = Image.fromarray(coarse).resize((96, 96), Image.Resampling.BICUBIC)
    else:
        question["text"] = f"{_caption(3 * number)} and grass" if number % 6 else "an avocado armchair"
    if number % 7 == 0:
        question |= {"among": "texts", "filters": NO_FILTERS}
    return question


def _differs(got: Answer, expected: Answer) -> str | None:
    """What is not the same; uncertainty to the rounding of a scan in float32."""
    if [(hit.id, hit.score) for hit in got.hits] != [(hit.id, hit.score) for hit in expected.hits]:
        return "hits or scores"
    chances = got.standing.chance, expected.standing.chance
    if (chances[0] is None) != (chances[1] is None) or abs((chances[0] or 0) - (chances[1] or 0)) > 1e-5:
        return "chance"
    if abs(got.uncertainty - expected.uncertainty) > 1e-6 * expected.uncertainty:
        return "uncertainty"
    same = (got.verdict, got.guarantee, got.searched, got.headline) == (
        expected.verdict, expected.guarantee, expected.searched, expected.headline,
    )  # fmt: skip
    return None if same else "verdict"


def _compared(gallery: Gallery, questions: list[dict[str, Any]], expected: list[Answer], nodes: int) -> bool:
    with Retriever(gallery, cluster="auto") as spread:
        start = time.perf_counter()
        got = [spread.search(**question) for question in questions]
        seconds = time.perf_counter() - start
    wrong = Counter(filter(None, map(_differs, got, expected)))
    off = max(abs(a.uncertainty / b.uncertainty - 1) for a, b in zip(got, expected, strict=True))
    print(
        f"{nodes} nodes: {200 - sum(wrong.values())} of 200 equal {dict(wrong) or ''} (uncertainty within {off:.1e}), "
        f"{seconds:.1f} s",
        flush=True,
    )
    return not wrong


@dataclass(frozen=True)
class _Disturbed:
    """What is disturbed while questions are asked."""

    cluster: Any
    store: Store | None

    def before(self, number: int, rows: ShardedRows) -> None:
        """A worker after 150 questions, a node after 300, both in the middle of a question; the store after 400."""
        if number == 150:
            threading.Timer(0.005, kill_process, (rows.fleet.processes()[2][0],)).start()
        if number == 300:
            threading.Timer(0.005, kill_node, (next(iter(self.cluster.worker_nodes)),)).start()
        if number == 400 and self.store is not None:
            self.store.be_busy(10)


def _killed(
    spread: Retriever, rows: ShardedRows, disturbed: _Disturbed, questions: list[dict[str, Any]], expected: list[Answer]
) -> Outcome:
    while True:  # processes take longer to start than a short patience lasts
        try:
            spread.search(**questions[0])
            break
        except ClusterError:
            continue
    counts: Counter[str] = Counter()
    slowest, start = 0.0, time.perf_counter()
    for number in range(500):
        disturbed.before(number, rows)
        begun = time.perf_counter()
        try:
            wrong = _differs(spread.search(**questions[number % 200]), expected[number % 200])
            counts["answered" if wrong is None else f"other {wrong}"] += 1
        except (ClusterError, StorageError):
            counts["told"] += 1
        slowest = max(slowest, time.perf_counter() - begun)
    return Outcome(counts, slowest, time.perf_counter() - start)


if __name__ == "__main__":
    raise SystemExit(main())
