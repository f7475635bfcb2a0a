"""Files on other machines, read over http and https: within bounds of time and size, and nothing but those two."""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from functools import cache
from typing import IO, TYPE_CHECKING, Any

from evidex.data.hosts import leads_inside
from evidex.errors import EvidexError

if TYPE_CHECKING:
    from email.message import Message
    from urllib.request import OpenerDirector, Request

SECONDS = 30.0
"""For one answer, from the first byte to the last."""
MOST_PICTURE = 64 << 20
"""Bytes of a file that is fetched whole; larger ones are read by range or not at all."""
GDAL_OPTIONS: dict[str, Any] = {
    # No look at what lies beside a remote file: each would be a request, mostly for what is not there.
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "GDAL_HTTP_TIMEOUT": int(SECONDS),
    "GDAL_HTTP_CONNECTTIMEOUT": 10,
    "GDAL_HTTP_MAX_RETRY": 2,
    "GDAL_HTTP_RETRY_DELAY": 1,
    "GDAL_INGESTED_BYTES_AT_OPEN": 32768,
    "CPL_VSIL_CURL_NON_CACHED": "/vsicurl/",
}
_ADDRESS = re.compile(r"https?://[^/\s]", re.IGNORECASE)
_PIECE = 1 << 16


def is_remote(path: str) -> bool:
    """Whether ``path`` is an address and no file of this machine."""
    return _ADDRESS.match(path) is not None


@dataclass(frozen=True)
class RemoteState:
    """What a server says of a file without sending it; the same state stands for the same content."""

    size: int
    modified_ns: int
    tag: str

    @property
    def number(self) -> int:
        """The tag as a number that fits where a local file has its time of change."""
        return tag_number(self.tag)


def tag_number(tag: str) -> int:
    return int.from_bytes(hashlib.blake2b(tag.encode(), digest_size=8).digest(), "big") >> 1 if tag else 0


def fetch(address: str, error: type[EvidexError], *, most: int) -> bytes:
    """All of what lies at ``address``, if it has no more than ``most`` bytes and comes in time."""
    content = bytearray()
    with _Answer(address, error) as answer:
        while piece := answer.read(_PIECE):
            content += piece
            if len(content) > most:
                raise error(f"'{address}' has more than {most >> 20} MiB, too much to be fetched whole")
    return bytes(content)


def first_bytes(address: str, count: int, error: type[EvidexError]) -> bytes:
    """How the file at ``address`` begins."""
    with _Answer(address, error, {"Range": f"bytes=0-{count - 1}"}) as answer:
        return answer.read(count)


def state_at(address: str, error: type[EvidexError]) -> RemoteState:
    """Ask for the state of a file, by HEAD, or by its first byte where a server does not know that."""
    try:
        with _Answer(address, error, method="HEAD") as answer:
            return _state(answer.headers, None)
    except _RefusedError:
        pass
    with _Answer(address, error, {"Range": "bytes=0-0"}) as answer:
        whole = re.fullmatch(r"bytes \d+-\d+/(\d+)", answer.headers.get("Content-Range", ""))
        return _state(answer.headers, whole[1] if whole else None)


def _state(headers: Message[str, str], length: str | None) -> RemoteState:
    from email.utils import parsedate_to_datetime

    length = length or headers.get("Content-Length") or "0"
    try:
        modified = round(parsedate_to_datetime(headers.get("Last-Modified", "")).timestamp() * 1e9)
    except (ValueError, TypeError):
        modified = 0
    state = RemoteState(int(length) if length.isdecimal() else 0, modified, headers.get("ETag", ""))
    # Of a server that tells nothing nobody knows whether its file is still the same: then it is taken for another.
    return state if state != RemoteState(0, 0, "") else RemoteState(0, 0, f"asked at {time.time_ns()}")


class _RefusedError(Exception):
    """The server knows no HEAD."""


@cache
def _opener() -> OpenerDirector:
    """Follows redirects, but to no other kind of address, and from outside to none inside; answers within SECONDS."""
    from urllib.error import URLError
    from urllib.request import HTTPRedirectHandler, build_opener

    from evidex.data.deadline import Plain, Secure

    class Redirects(HTTPRedirectHandler):
        max_redirections = 5

        def redirect_request(
            self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message[str, str], newurl: str
        ) -> Request | None:
            if not is_remote(newurl):
                raise URLError(f"it leads to '{newurl[:80]}', which is no http address")
            if leads_inside(newurl, req.full_url):
                raise URLError(f"it leads to '{newurl[:80]}', which lies on this machine or its network")
            return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]

    return build_opener(Redirects, Plain, Secure)


class _Answer:
    """An opened answer; whatever goes wrong with it is one line of the given kind of error."""

    def __init__(
        self, address: str, error: type[EvidexError], headers: dict[str, str] | None = None, method: str = "GET"
    ) -> None:
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import Request

        self._address, self._error = address, error
        self._opened: Any = None
        try:
            request = Request(address, headers={"User-Agent": "evidex", **(headers or {})}, method=method)
            self._opened = _opener().open(request, timeout=SECONDS)
        except HTTPError as problem:
            problem.close()
            if method == "HEAD" and problem.code in (400, 403, 405, 501):
                raise _RefusedError from None
            raise error(f"'{address}' cannot be fetched: the server answers {problem.code} {problem.reason}") from None
        except (OSError, ValueError, HTTPException) as problem:
            raise error(f"'{address}' cannot be fetched ({_words(problem)}); check the address") from None

    @property
    def headers(self) -> Message[str, str]:
        headers: Message[str, str] = self._opened.headers
        return headers

    def read(self, count: int) -> bytes:
        from http.client import HTTPException

        try:
            return bytes(self._opened.read(count))
        except TimeoutError:
            raise self._error(
                f"'{self._address}' does not come within {SECONDS:.0f} s; try again later, or copy it here"
            ) from None
        except (OSError, HTTPException) as problem:
            raise self._error(f"'{self._address}' breaks off ({_words(problem)}); try again") from None

    def __enter__(self) -> _Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def _words(problem: Exception) -> str:
    reason = getattr(problem, "reason", None) or getattr(problem, "strerror", None) or problem
    return (str(getattr(reason, "strerror", None) or reason) or type(problem).__name__).lower()
