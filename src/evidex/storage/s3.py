"""The connection to S3, made from the usual ``AWS_*`` variables, and what is told of its failures.

Small files go through pyarrow, tables through Lance; both get the same endpoint and the same patience: a store that
answers that it is busy, or breaks off, is asked again for about half a minute. One at an address of its own that says
nothing at all is told of sooner: before use it is asked for a word (`_check_endpoint`), from time to time again.
"""

from __future__ import annotations

import http.client
import math
import os
import re
import ssl
import time
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evidex.errors import StorageError

_ATTEMPTS = 11
"""Of pyarrow's, whose pauses double from 25 ms on: 25 s in all."""
_LANCE_PATIENCE = {"client_max_retries": "200", "client_retry_timeout": "25"}
_CONNECT_SECONDS, _ANSWER_SECONDS = 5.0, 10.0
_SILENT_SECONDS = 15.0
"""For which a store that was there may say nothing."""
_TRUSTED_SECONDS = 5.0
"""For which a store that gave an answer is taken to be there."""
_ANSWERED: dict[str, float] = {}
"""When each address last gave an answer."""
_CREDENTIALS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"

_TOLD = (
    # What the two clients say in their many ways, and what it means.
    (r"NO_SUCH_BUCKET|NoSuchBucket", "there is no bucket '{bucket}'{at}; make it, or name another"),
    (
        r"Failed to get AWS credentials|CredentialsNotLoaded|no providers in chain",
        "no credentials were found; " + _CREDENTIALS,
    ),
    (
        r"ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY|InvalidAccessKey|SIGNATURE|SignatureDoesNotMatch"
        r"|HTTP status 40[13]|40[13] (Forbidden|Unauthorized)|INVALID_CLIENT_TOKEN",
        "the store{at} refuses these credentials; " + _CREDENTIALS,
    ),
    (
        r"SLOW_DOWN|SlowDown|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|HTTP status 5\d\d|status code: 5\d\d|\b50[0234] ",
        "the store{at} answers that it cannot serve us now, and did so for half a minute; run this again later, what "
        "is written stays",
    ),
    (
        r"NETWORK_CONNECTION|curlCode|error sending request|[Cc]onnection (refused|reset|closed)|dns error"
        r"|REQUEST_TIMEOUT|timed out",
        "the store{at} does not answer; check AWS_ENDPOINT_URL and the network",
    ),
)


def endpoint() -> str | None:
    """Where S3 is asked, if not at Amazon."""
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def region() -> str | None:
    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return named or ("us-east-1" if endpoint() else None)


def lance_options() -> dict[str, str]:
    """What Lance is told about the store beside what it reads from the environment itself."""
    options = dict(_LANCE_PATIENCE)
    if (url := endpoint()) is not None:
        options |= {"aws_endpoint": url, "allow_http": str(url.startswith("http:")).lower()}
    if (named := region()) is not None:
        options["aws_region"] = named
    return options


def filesystem() -> Any:
    """The store's small files, for the variables as they are now; StorageError where it cannot be reached."""
    _check_credentials()
    if (url := endpoint()) is not None:
        _check_endpoint(url)
    return _filesystem(url, region(), os.environ.get("AWS_ACCESS_KEY_ID"))


@cache
def _filesystem(url: str | None, named: str | None, _key: str | None) -> Any:
    from pyarrow.fs import AwsDefaultS3RetryStrategy, S3FileSystem

    return S3FileSystem(
        endpoint_override=url,
        region=named,
        background_writes=False,
        retry_strategy=AwsDefaultS3RetryStrategy(max_attempts=_ATTEMPTS),
    )


def _check_credentials() -> None:
    """Refuse at once where nothing says who we are and no machine may be asked either."""
    if os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() != "true":
        return  # a role of this machine may say it; who lacks one is told when the store is first asked
    variables = (
        "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_SHARED_CREDENTIALS_FILE",
    )  # fmt: skip
    if any(os.environ.get(name) for name in variables) or (Path.home() / ".aws").is_dir():
        return
    raise StorageError(f"object storage: no credentials were found; {_CREDENTIALS}")


def _check_endpoint(url: str) -> None:
    """Whether somebody answers there, whatever: the clients would try for a minute where nobody does.

    Of a store that was there before only silence is told; one that refuses is perhaps started anew, and asked again.
    """
    known = url in _ANSWERED
    if time.monotonic() - _ANSWERED.get(url, -math.inf) < _TRUSTED_SECONDS:
        return
    parts = urlsplit(url)
    try:
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("it is no http:// or https:// address")
        if any(char.isspace() or not char.isprintable() for char in parts.netloc):
            raise ValueError("it has characters that no address has")
        kind = http.client.HTTPConnection if parts.scheme == "http" else http.client.HTTPSConnection
        line = kind(parts.hostname, parts.port, timeout=_SILENT_SECONDS if known else _CONNECT_SECONDS)
        with closing(line), suppress(http.client.HTTPException, ssl.SSLError):  # an answer too; the clients judge it
            line.connect()
            line.sock.settimeout(_SILENT_SECONDS if known else _ANSWER_SECONDS)
            line.request("HEAD", "/")
            line.getresponse()
    except (OSError, ValueError) as error:
        if known and not isinstance(error, TimeoutError):
            return
        cause = getattr(error, "strerror", None) or str(error)
        raise StorageError(
            f"AWS_ENDPOINT_URL '{url}' does not answer ({cause.lower()}); check the address and the network"
        ) from None
    _ANSWERED[url] = time.monotonic()


def told(place: object, bucket: str, error: BaseException) -> StorageError | None:
    """What a failure of pyarrow or Lance means, in one line; None where it is not one of the store's."""
    text = str(error)
    url = endpoint()
    for pattern, meaning in _TOLD:
        if re.search(pattern, text):
            return StorageError(f"'{place}': " + meaning.format(bucket=bucket, at=f" at {url}" if url else ""))
    return None
