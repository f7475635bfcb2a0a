"""Small pictures of rows, kept in memory while they are in use."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from typing import Literal

from evidex.retrieval.rows import Row
from evidex.server.items import Items
from evidex.server.metrics import Metrics

Size = Literal["thumbnail", "preview"]
LONGEST: dict[Size, int] = {"thumbnail": 320, "preview": 1280}
_QUALITY = 85


class Thumbnails:
    """Makes JPEGs of rows; safe to use from several threads."""

    def __init__(self, items: Items, cache_bytes: int, metrics: Metrics) -> None:
        self._items = items
        self._cache = _Cache(cache_bytes)
        self._metrics = metrics

    def tag(self, row: Row, size: Size) -> str:
        """Names a picture's content, so that browsers need not fetch it twice."""
        return f'"{row.sha256[:20]}-{row.id}-{LONGEST[size]}"'

    def jpeg(self, row: Row, size: Size) -> bytes:
        key = self.tag(row, size)
        known = self._cache.get(key)
        self._metrics.pictures.labels("cache" if known is not None else "file").inc()
        if known is not None:
            return known
        stream = io.BytesIO()
        self._items.picture(row, LONGEST[size]).save(stream, "JPEG", quality=_QUALITY)
        self._cache.put(key, stream.getvalue())
        return stream.getvalue()


class _Cache:
    """The pictures used last, up to so many bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._held = 0
        self._lock = threading.Lock()
        self._pictures: OrderedDict[str, bytes] = OrderedDict()

    def get(self, key: str) -> bytes | None:
        with self._lock:
            if key in self._pictures:
                self._pictures.move_to_end(key)
            return self._pictures.get(key)

    def put(self, key: str, picture: bytes) -> None:
        with self._lock:
            self._held += len(picture) - len(self._pictures.pop(key, b""))
            self._pictures[key] = picture
            while self._held > self._most and self._pictures:
                self._held -= len(self._pictures.popitem(last=False)[1])
