"""Who may ask: the right host name, and the token where there is one."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evidex.errors import UnauthorizedError
from evidex.server.failures import problem, problem_of
from evidex.server.settings import Settings

_OPEN = ("/", "/health", "/ready", "/openapi.json")
_OWN_NAMES = ("localhost", "127.0.0.1", "[::1]")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """ASGI middleware. The page itself and the health checks need no token; they hold nothing of the gallery."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._token = None if settings.token is None else settings.token.encode()
        self._names = (settings.host, *_OWN_NAMES) if settings.is_local else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        headers = Headers(scope=scope)
        if not self._knows(headers.get("host", "")):
            # A foreign page can point its own name at this machine; it must not read the answers.
            words = "this server answers as localhost only; use --host to serve others"
            await problem(400, words)(scope, receive, hardened)
        elif not self._admits(scope["path"], headers.get("authorization", "")):
            error = UnauthorizedError("the token is missing or wrong; send 'Authorization: Bearer TOKEN'")
            await problem_of(error, {"WWW-Authenticate": "Bearer"})(scope, receive, hardened)
        else:
            await self._app(scope, receive, hardened)

    def _knows(self, host: str) -> bool:
        if self._names is None:
            return True
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        return name.lower() in self._names

    def _admits(self, path: str, sent: str) -> bool:
        if self._token is None or path in _OPEN or path.startswith("/assets/"):
            return True
        scheme, _, token = sent.partition(" ")  # schemes are the same in any case (RFC 9110, 11.1)
        known = hmac.compare_digest(token.strip().encode("utf-8", "replace"), self._token)
        return known and scheme.lower() == "bearer"
