"""STAC documents by their address: fetched within bounds, and links from one to the next that lead nowhere else."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote_to_bytes, urljoin, urlsplit

from evidex.data.hosts import leads_inside
from evidex.data.remote import fetch, is_remote
from evidex.documents import parse_json, read_regular
from evidex.errors import DataError

MOST_REMOTE = 64 << 20
MOST_LOCAL = 512 << 20
"""Bytes of a document: a hundred thousand items in one take less."""


def load(place: str) -> Any:
    """What the JSON at ``place`` stands for; DataError, in one line, where it does not come or is none."""
    if is_remote(place):
        content = fetch(place, DataError, most=MOST_REMOTE)
    else:
        content = read_regular(place, DataError, most=MOST_LOCAL)
    try:
        return parse_json(content)
    except ValueError as problem:
        raise DataError(f"'{place}' is no JSON ({problem}); give a STAC document") from None


def resolved(href: str, document: str, catalog: str | None = None) -> str:
    """Where a link of ``document`` leads: an address, or a path of this machine.

    ValueError for what leads elsewhere. What another machine sends never leads to a file of this one, and where
    ``catalog``, the one that was given (else ``document``), lies outside, to no machine inside.
    """
    target = _target(href, document)
    given = catalog or document
    if is_remote(given) and leads_inside(target, given):
        raise ValueError(f"'{href[:200]}' lies on this machine or its network; a public catalog may not lead there")
    return target


def _target(href: str, document: str) -> str:
    if is_remote(document):
        target = urljoin(document, href)
        if not is_remote(target):
            raise ValueError(f"'{href[:200]}' is no http address; a catalog on another machine may name no other")
        return target
    if is_remote(href):
        return href
    place = urlsplit(href)
    if place.scheme == "file":
        return os.fsdecode(unquote_to_bytes(place.path))
    if "://" in href:
        raise ValueError(f"'{href[:200]}' is neither a file nor an http address")
    folder = os.path.dirname(document)  # noqa: PTH120 (a path may hold bytes that are no UTF-8)
    path = os.path.normpath(os.path.join(folder, href))  # noqa: PTH118
    if "%" in href and not os.path.lexists(path):
        decoded = os.fsdecode(unquote_to_bytes(href))
        return os.path.normpath(os.path.join(folder, decoded))  # noqa: PTH118
    return path
