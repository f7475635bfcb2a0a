"""Everything about a server that can be chosen."""

from __future__ import annotations

from dataclasses import dataclass, fields
from ipaddress import ip_address
from pathlib import Path

from evidex.errors import InputError
from evidex.retrieval.scan.precision import Precision
from evidex.storage.objects import Place


@dataclass(frozen=True)
class Settings:
    """Where to serve which gallery, and the limits that keep one client from taking all."""

    gallery: Place
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    """Clients must send it as ``Authorization: Bearer …``; None lets everybody in."""
    static: Path | None = None
    """Folder of the built page; None means the one in the package."""

    cluster: str | None = None
    """Address of the Ray cluster that scans the rows; None: this process does."""
    shards: int | None = None
    """Into which the rows are cut there; None: one for each node."""
    replicas: int = 1
    """Of each shard."""

    marks: bool | None = None
    """Whether hits may be marked, which writes into the gallery's folder; None: where only this machine reaches the
    server, which is then its owner's."""

    precision: Precision = "float32"
    """Of the vectors that are scanned; int8 reads a quarter of the memory, and the best rows are scored exactly."""

    max_body_bytes: int = 32 * 2**20
    max_pixels: int = 40_000_000
    """Of an uploaded image."""
    max_top: int = 200
    request_seconds: float = 30.0
    """A request that takes longer is answered with 504, one whose body takes longer with 408, both overall. A client
    that leaves its answer unread for so long is cut off."""
    header_seconds: float = 10.0
    """In which a connection without a request under way must send the whole head of one, or be closed."""
    max_requests: int = 256
    """Requests under way at once. One more takes the place of the body that has not moved for longest, if any is still
    arriving, or is answered with 429; health checks and metrics are always answered."""
    max_connections: int = 512
    """Open at once. One more takes the place of the one that has waited longest without a request under way."""
    queue: int = 128
    """Queries that may wait for a scan."""
    largest_batch: int = 64
    """Queries answered in one scan; also the most that /search/batch takes."""
    batch_seconds: float = 0.003
    """How long the first query of a batch waits for others."""
    picture_workers: int = 2
    picture_queue: int = 256
    map_queue: int = 16
    """Requests that may wait while one looks where in a picture something is."""
    cache_bytes: int = 64 * 2**20
    """Memory for encoded thumbnails and previews."""
    refresh_seconds: float = 2.0
    """How often to look for new rows."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise InputError(f"port {self.port} is out of range; choose 0 to 65535 (0 takes a free one)")
        if self.cluster is None and (self.shards is not None or self.replicas != 1):
            raise InputError("shards and replicas are of a cluster; name it with --cluster")
        if self.marks and not isinstance(self.gallery, Path):
            raise InputError(f"'{self.gallery}' keeps no marks, as it is no folder of this machine; leave out --marks")
        _check_token(self.token)
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name in ("port", "batch_seconds", "cache_bytes") else 1e-9
            if isinstance(value, (int, float)) and not isinstance(value, bool) and not value >= least:
                raise InputError(f"{field.name} {value} is too small; give a positive number")

    @property
    def takes_marks(self) -> bool:
        """Marks lie in the folder of a gallery; one in an object store has none."""
        return isinstance(self.gallery, Path) and (self.is_local if self.marks is None else self.marks)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


def _check_token(token: str | None) -> None:
    if token is not None and not (token.isascii() and token.isprintable() and token.strip()):
        raise InputError("the token is empty or holds characters that no header can carry; use plain ASCII")
