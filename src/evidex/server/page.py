"""The page: files that the front end's build put into the package."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response

BUILT = Path(__file__).parent / "static"
_NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>evidex</title>
<h1>The page is not built</h1>
<p>The server runs, and its interface is described at <a href="openapi.json">/openapi.json</a>.</p>
<p>To build the page, run <code>npm ci &amp;&amp; npm run build</code> in the folder <code>frontend</code>
of the source and start the server again. Installed wheels bring it along.</p></html>
"""


def page_router(static: Path | None) -> APIRouter:
    """Serves the files that are there now, each by its name; nothing else can be reached."""
    folder = static or BUILT
    index = folder / "index.html"
    assets = {path.name: path for path in sorted((folder / "assets").glob("*")) if path.is_file()}
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def page() -> Response:
        if not index.is_file():
            return HTMLResponse(_NOT_BUILT, status_code=503)
        return FileResponse(index, media_type="text/html", headers={"Cache-Control": "no-cache"})

    @router.get("/assets/{name}")
    async def asset(name: str) -> Response:
        if name not in assets:
            raise HTTPException(404, f"the page has no file '{name[:80]}'; load the page again")
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        # Names carry a digest of the content.
        return FileResponse(assets[name], media_type=kind, headers={"Cache-Control": "max-age=31536000, immutable"})

    return router
