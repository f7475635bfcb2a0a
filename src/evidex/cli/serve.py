"""evidex serve: a gallery on the network, with a page."""

from __future__ import annotations

from typing import Annotated

import typer

from evidex.cli.terminal import say
from evidex.storage.objects import place_of

LOCAL = "127.0.0.1"
_MARKS = typer.Option("--marks/--no-marks", help="Let hits be marked; by default only where nobody else can reach it.")


def command(
    gallery: Annotated[str, typer.Option(help="Folder of the gallery, or s3://BUCKET/PREFIX.", metavar="PLACE")],
    host: Annotated[str, typer.Option(help="Address to listen at; by default only this machine reaches it.")] = LOCAL,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 takes a free one.")] = 8765,
    token: Annotated[
        str | None, typer.Option(envvar="EVIDEX_TOKEN", help="Clients must send this as bearer token.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="Scan on this Ray cluster: HOST:PORT, auto or local.")] = None,
    shards: Annotated[
        int | None, typer.Option(min=1, help="Processes that share the rows there; or one a node.")
    ] = None,
    replicas: Annotated[int, typer.Option(min=1, help="Copies of each shard there, on different nodes.")] = 1,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    max_body: Annotated[int, typer.Option(min=1, help="Largest body of a request, in MiB.")] = 32,
    max_pixels: Annotated[int, typer.Option(min=1, help="Largest picture that may be sent.")] = 40_000_000,
    max_top: Annotated[int, typer.Option(min=1, max=10_000, help="Most hits a query may ask for.")] = 200,
    max_requests: Annotated[int, typer.Option(min=1, help="Requests under way at once.")] = 256,
    max_connections: Annotated[int, typer.Option(min=1, help="Connections open at once.")] = 512,
    queue: Annotated[int, typer.Option(min=1, help="Queries that may wait; one more is answered with 429.")] = 128,
    batch: Annotated[int, typer.Option(min=1, help="Most queries answered in one scan; 1 switches it off.")] = 64,
    batch_wait: Annotated[float, typer.Option(min=0.0, help="Milliseconds a query waits for others.")] = 3.0,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds until a request is given up.")] = 30.0,
    marks: Annotated[bool | None, _MARKS] = None,
    precision: Annotated[
        str, typer.Option(help="Vectors to scan: float32, or the smaller bfloat16 or int8, held in memory.")
    ] = "float32",
    refresh: Annotated[float, typer.Option(min=0.1, help="Seconds between looks for new rows.")] = 2.0,
) -> None:
    """Serve a gallery: an HTTP interface and a page to search with. Ctrl-C ends it."""
    from evidex.server.memory import few_readers, steady_heap

    steady_heap()
    few_readers()
    from evidex.retrieval.scan.precision import checked_precision
    from evidex.server.running import serve
    from evidex.server.settings import Settings

    settings = Settings(
        gallery=place_of(gallery),
        host=host,
        port=port,
        token=token,
        cluster=cluster,
        shards=shards,
        replicas=replicas,
        max_body_bytes=max_body * 2**20,
        max_pixels=max_pixels,
        max_top=max_top,
        max_requests=max_requests,
        max_connections=max_connections,
        queue=queue,
        largest_batch=batch,
        batch_seconds=batch_wait / 1e3,
        request_seconds=timeout,
        refresh_seconds=refresh,
        precision=checked_precision(precision),
        marks=marks,
    )
    serve(settings, announce=say, opens=typer.launch if open_page else None)
