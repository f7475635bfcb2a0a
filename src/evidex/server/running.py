"""Run the application until it is told to stop."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from evidex.errors import InputError
from evidex.server.settings import Settings

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

_LAST_REQUESTS_SECONDS = 10


def serve(
    settings: Settings, *, announce: Callable[[str], object], opens: Callable[[str], object] | None = None
) -> None:
    """Serve until SIGINT or SIGTERM; requests under way are answered first.

    ``announce`` gets the address once it takes requests; ``opens`` gets it to show the page.
    """
    import uvicorn

    from evidex.server.app import create_app

    app = create_app(settings)
    listener = bound(settings)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            address = _address(settings, listener)
            announce(f"evidex serves {settings.gallery} at {address} (Ctrl-C ends it)")
            if not settings.is_local and settings.token is None:
                announce("Everybody who can reach this address can search; set --token to change that.")
            if opens is not None:
                opens(address if settings.token is None else f"{address}#token={settings.token}")

    with listener:
        Server(configured(app, settings)).run([listener])


def configured(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """How uvicorn runs ``app``: as one process without a limit of its own, and with a clock on every connection."""
    import uvicorn

    from evidex.server.connections import Connection, Crowd

    protocol: Any = partial(Connection, crowd=Crowd(settings))
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        log_level="warning",
        timeout_graceful_shutdown=_LAST_REQUESTS_SECONDS,
        timeout_keep_alive=math.ceil(settings.header_seconds),
        server_header=False,
        lifespan="on",
    )


def bound(settings: Settings) -> socket.socket:
    """A socket at the address of ``settings``; the kernel holds early clients until the app takes them."""
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(
            f"{settings.host}:{settings.port} cannot be used: {reason}; choose another --host or --port"
        ) from None
    return listener


def _address(settings: Settings, listener: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listener.getsockname()[1]}/"
