"""The running parts of a server: the search thread and its batches, picture threads, the watch for new rows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from evidex.encoders.model import Model
from evidex.errors import BusyError, ClusterError, EvidexError
from evidex.retrieval.answers import Answer
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.hits import Hit
from evidex.retrieval.retriever import Search
from evidex.retrieval.searchable import OwnRows, Searchable
from evidex.server.batching import Batcher
from evidex.server.engine import Engine, Neighbours
from evidex.server.items import Items
from evidex.server.limits import BoundedPool, within
from evidex.server.metrics import Metrics
from evidex.server.overview import overview
from evidex.server.schemas import GalleryOut
from evidex.server.settings import Settings
from evidex.server.thumbnails import Thumbnails
from evidex.server.watch import State, state_of

T = TypeVar("T")
_LOG = logging.getLogger("evidex.server")


class Service:
    """Made with the app, started and stopped with the event loop."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings = settings
        self.metrics = metrics
        gallery = Gallery.open(settings.gallery)
        self.engine = Engine(gallery, metrics, _rows(gallery, settings))
        self.items = Items(settings.gallery)
        self.thumbnails = Thumbnails(self.items, settings.cache_bytes, metrics)
        self.pictures = BoundedPool(settings.picture_workers, settings.picture_queue, "pictures")
        self.maps = BoundedPool(1, settings.map_queue, "maps")
        self._search_thread = ThreadPoolExecutor(1, thread_name_prefix="search")
        self._batcher = Batcher(
            self.engine.run,
            self._search_thread,
            queue=settings.queue,
            largest=settings.largest_batch,
            wait_seconds=settings.batch_seconds,
        )
        metrics.waiting.set_function(lambda: self._batcher.waiting)
        self._watch: asyncio.Task[None] | None = None
        self._seen: State | None = None
        self._overview: GalleryOut | None = None
        self.trouble: str | None = "the model is still being loaded; ask again in a moment"
        """Why the server is not ready; None when it is."""

    def start(self) -> None:
        self._batcher.start()
        self._watch = asyncio.get_running_loop().create_task(self._keep_watch())

    async def stop(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch
        await self._batcher.stop()
        self._search_thread.shutdown(wait=True, cancel_futures=True)
        self.pictures.close()
        self.maps.close()
        await asyncio.to_thread(self.engine.rows.close)

    async def search(self, key: Search, queries: Sequence[Any]) -> list[Answer]:
        answers: list[Answer] = await within(self.settings.request_seconds, self._batcher.submit(key, queries))
        return answers

    async def neighbours(self, row_id: str, top: int) -> list[Hit]:
        (found,) = await within(self.settings.request_seconds, self._batcher.submit(Neighbours(top), [row_id]))
        if isinstance(found, EvidexError):
            raise found
        hits: list[Hit] = found
        return hits

    async def model(self) -> Model:
        """The gallery's, loaded."""
        return await self._in_search_thread(lambda: self.engine.gallery.model)

    async def overview(self) -> GalleryOut:
        known = self._overview
        if known is None:
            look = self._in_search_thread(lambda: overview(self.engine.gallery, self.engine.counts(), self.settings))
            known = self._overview = await within(self.settings.request_seconds, look)
        return known

    async def refresh(self) -> bool:
        """Take up new rows and calibrations now; whether there are new rows."""
        changed = await self._in_search_thread(self.engine.refresh)
        await asyncio.to_thread(self.items.refresh)
        self._overview = None
        return changed

    async def _keep_watch(self) -> None:
        try:
            await self._in_search_thread(self.engine.warm_up)
            self.trouble = None
        except EvidexError as error:
            self.trouble = str(error)
            _LOG.error("not ready: %s", error)
        while True:
            await asyncio.sleep(self.settings.refresh_seconds)
            try:
                await self._look()
                if self.engine.is_warm:
                    self.trouble = None
            except ClusterError as error:
                self._say(str(error))
            except (EvidexError, OSError, ValueError) as error:
                self._say(f"the gallery cannot be read any more ({' '.join(str(error).split())[:400]})")

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            _LOG.warning("%s", trouble)
        self.trouble = trouble

    async def _look(self) -> None:
        """Take up what has changed, and hold a little more of the gallery against its checksums."""
        now = await self._in_search_thread(lambda: state_of(self.settings.gallery))
        if now != self._seen:
            await self.refresh()
            self._seen = now  # taken before the look, so that what changed in between is seen the next time
        if not self.engine.is_warm:
            await self._in_search_thread(self.engine.warm_up)
        await asyncio.to_thread(self.engine.rows.check, self.settings.request_seconds / 2)  # queries need not wait
        await self._in_search_thread(self.engine.patrol)

    async def _in_search_thread(self, call: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._search_thread, call)
        except RuntimeError as error:
            if "shutdown" in str(error):
                raise BusyError("the server is shutting down; ask again when it is back") from None
            raise


def _rows(gallery: Gallery, settings: Settings) -> Searchable:
    if settings.cluster is None:
        return OwnRows(gallery, precision=settings.precision)
    from evidex.retrieval.sharded.fleet import ShardOptions
    from evidex.retrieval.sharded.rows import ShardedRows

    # Half of the time, so that what was lost is named before the request itself is given up.
    patience = settings.request_seconds / 2
    options = ShardOptions(settings.shards, settings.replicas, settings.precision, patience, opening=patience)
    return ShardedRows(gallery, settings.cluster, options)
