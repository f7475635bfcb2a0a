"""A real S3 endpoint for the tests: moto's, on a free port, which can be told to be busy."""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

BUCKET = "scenes"


class Store:
    """The endpoint; while it is busy it answers 503."""

    def __init__(self) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._app = DomainDispatcherApplication(create_backend_app)
        self._busy_until = 0.0
        self.refused = 0
        self.meddling: Callable[[dict[str, Any]], None] | None = None
        """Sees each request before it is answered."""
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.client().create_bucket(Bucket=BUCKET)

    def client(self) -> Any:
        import boto3

        keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
        return boto3.client("s3", endpoint_url=self.url, region_name="us-east-1", **keys)

    def be_busy(self, seconds: float) -> None:
        self._busy_until = time.monotonic() + seconds

    def close(self) -> None:
        self._server.shutdown()

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if time.monotonic() < self._busy_until:
            self.refused += 1
            start("503 Slow Down", [("Content-Type", "application/xml")])
            return [b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"]
        if self.meddling is not None:
            self.meddling(environ)
        answer: Iterable[bytes] = self._app(environ, start)
        return answer


@contextmanager
def serving() -> Iterator[Store]:
    """A store that the environment names, also for processes that are started meanwhile."""
    store = Store()
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in {
            "AWS_ENDPOINT_URL": store.url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            patch.setenv(name, value)
        yield store
    store.close()


def fresh_place() -> str:
    return f"s3://{BUCKET}/{uuid.uuid4().hex[:8]}/gallery"
