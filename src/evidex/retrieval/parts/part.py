"""Another server that holds a part of the gallery."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
from numpy.typing import NDArray

from evidex.documents import parse_json
from evidex.errors import InputError, NotFoundError, PartError
from evidex.retrieval.filters import Filters, Target
from evidex.retrieval.parts.wire import PartFound, unpack, vectors_from_text, vectors_text

_MOST_BYTES = 256 * 2**20
"""Of an answer: ten thousand rows with footprints and captions take a tenth of it."""


@dataclass(frozen=True)
class Reply:
    """What a part said to a plain request."""

    status: int
    content: bytes
    headers: dict[str, str]


@dataclass(frozen=True)
class Part:
    """Asks the server at ``address``; PartError, in one line, where it does not answer as one should."""

    address: str
    token: str | None = None
    seconds: float = 30.0

    def __post_init__(self) -> None:
        try:
            place = urlsplit(self.address)
            usable = place.scheme in ("http", "https") and bool(place.hostname) and place.port != 0
            usable &= not (place.path.strip("/") or place.query or place.username)
        except ValueError:
            usable = False
        if not usable:
            raise InputError(f"part '{self.address}' is no address of a server; write http://HOST:PORT")

    def about(self) -> dict[str, Any]:
        """What ``/gallery`` says."""
        reply = self._asked("GET", "/gallery")
        try:
            about = parse_json(reply.content)
            str(about["model_fingerprint"]), int(about["version"]), int(about["rows"])
        except (ValueError, KeyError, TypeError):
            raise PartError(f"part {self.address} is no evidex server; check its address") from None
        return dict(about)

    def scan(self, vectors: NDArray[np.float32], filters: Filters, target: Target, top: int) -> PartFound:
        """The best rows of this part, and the evidence of all that pass ``filters``."""
        box = filters.bbox
        question = {
            "vectors": vectors_text(vectors),
            "top": top,
            "among": target,
            "bbox": None if box is None else [box.west, box.south, box.east, box.north],
            "after": None if filters.after is None else filters.after.isoformat(),
            "before": None if filters.before is None else filters.before.isoformat(),
            "glob": filters.glob,
            # Servers of earlier versions know neither, and need not where nobody asks by them.
            **({} if filters.collection is None else {"collection": filters.collection}),
            **({} if filters.max_cloud is None else {"max_cloud": filters.max_cloud}),
        }
        reply = self._asked("POST", "/part/scan", json.dumps(question).encode())
        try:
            return unpack(reply.content, len(vectors), top)
        except ValueError as error:
            raise PartError(f"part {self.address} answers what cannot be read ({error}); update both sides") from None

    def vector(self, row_id: str, dim: int) -> NDArray[np.float32]:
        """Of one row; NotFoundError where the part has none of that id."""
        reply = self._asked("GET", f"/part/vectors/{quote(row_id, safe='')}")
        try:
            vectors = vectors_from_text(parse_json(reply.content)["vectors"], dim)
        except (ValueError, KeyError, TypeError, InputError):
            raise PartError(f"part {self.address} answers what cannot be read; update both sides") from None
        return np.asarray(vectors[0])

    def get(self, path: str, tag: str | None = None) -> Reply:
        """A plain GET; 304 where what ``tag`` names is still the same."""
        return self._asked("GET", path, tag=tag)

    def _asked(self, method: str, path: str, body: bytes | None = None, tag: str | None = None) -> Reply:
        reply = self._send(method, path, body, {} if tag is None else {"If-None-Match": tag})
        if reply.status == 200 or (reply.status == 304 and tag is not None):
            return reply
        said = _words(reply.content)
        if reply.status == 404:
            raise NotFoundError(said or f"part {self.address} does not have it")
        raise PartError(f"part {self.address} answers {reply.status}" + (f": {said}" if said else ""))

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Reply:
        place = urlsplit(self.address)
        if self.token is not None:
            headers = {**headers, "Authorization": f"Bearer {self.token}"}
        if body is not None:
            headers = {**headers, "Content-Type": "application/json"}
        host, port = place.hostname or "", place.port
        connection: http.client.HTTPConnection
        if place.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, port, timeout=self.seconds, context=context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self.seconds)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            content = _read(answer, time.monotonic() + self.seconds)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise PartError(
                f"part {self.address} does not answer ({reason.lower()}); start it, or serve without it"
            ) from None
        finally:
            connection.close()
        if len(content) > _MOST_BYTES:
            raise PartError(f"part {self.address} answers with more than {_MOST_BYTES} bytes; ask for fewer hits")
        return Reply(answer.status, content, {name.lower(): value for name, value in answer.getheaders()})


def _read(answer: http.client.HTTPResponse, end: float) -> bytes:
    """The whole body, if it comes in time: a socket's own limit begins anew with every byte."""
    content = bytearray()
    while len(content) <= _MOST_BYTES and (piece := answer.read1(1 << 20)):
        content += piece
        if time.monotonic() > end:
            raise TimeoutError("it takes too long")
    return bytes(content)


def _words(content: bytes) -> str:
    """The one line in which a server says what is wrong."""
    try:
        return " ".join(str(parse_json(content)["error"]).split())[:300]
    except (ValueError, KeyError, TypeError):
        return ""
