"""The application: settings in, FastAPI out. Nothing is built at import."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from evidex.server import failures
from evidex.server.guard import Guard
from evidex.server.limits import Limits
from evidex.server.locating import locate_router
from evidex.server.metrics import Metrics
from evidex.server.page import page_router
from evidex.server.routes import about_router, item_router, search_router
from evidex.server.service import Service
from evidex.server.settings import Settings

_ABOUT = "Search a remote-sensing archive by text or by image, and know when not to trust the answer."


def create_app(settings: Settings) -> FastAPI:
    """An app over ``settings.gallery``; GalleryError if there is none. The model is loaded once it runs."""
    from importlib.metadata import version

    metrics = Metrics()
    service = Service(settings, metrics)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        try:
            yield
        finally:
            await service.stop()

    # The interactive documentation of FastAPI loads its code from elsewhere; this server does not.
    app = FastAPI(
        title="evidex", description=_ABOUT, version=version("evidex"), docs_url=None, redoc_url=None, lifespan=running
    )
    app.state.service = service
    for make in (search_router, locate_router, item_router, about_router):
        app.include_router(make(service))
    app.include_router(page_router(settings.static))
    failures.install(app)
    app.add_middleware(Limits, settings=settings, metrics=metrics)
    app.add_middleware(Guard, settings=settings)
    return app
