"""What the server tells Prometheus; one registry an app."""

from __future__ import annotations

import sys

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector
from prometheus_client import generate_latest as _generate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        here = self.registry
        self.requests = Counter("evidex_requests", "Requests answered.", ("route", "method", "status"), registry=here)
        self.seconds = Histogram(
            "evidex_request_seconds", "Time to answer a request.", ("route",), buckets=_SECONDS, registry=here
        )
        self.batch_size = Histogram(
            "evidex_batch_size", "Queries answered in one scan.", ("kind",), buckets=_SIZES, registry=here
        )
        self.verdicts = Counter("evidex_verdicts", "Answers by verdict.", ("verdict",), registry=here)
        self.waiting = Gauge("evidex_queries_waiting", "Queries that wait for a scan.", registry=here)
        self.running = Gauge("evidex_requests_running", "Requests under way.", registry=here)
        self.rows = Gauge("evidex_gallery_rows", "Rows of the gallery.", registry=here)
        blocks = Gauge(
            "evidex_python_blocks", "Pieces of memory that Python holds; a leak makes it grow.", registry=here
        )
        blocks.set_function(sys.getallocatedblocks)
        self.pictures = Counter(
            "evidex_pictures", "Thumbnails and previews, by where they came from.", ("source",), registry=here
        )

    def text(self) -> bytes:
        return _generate(self.registry)
