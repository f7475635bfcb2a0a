"""Where catalogs of strangers may lead: not to this machine, nor to its network."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evidex.data.hosts import _lies_inside, leads_inside
from evidex.data.stac.finding import find
from tests.data.serving import Served, serving
from tests.data.stac.catalogs import item, items, write
from tests.retrieval.archive import picture

_PUBLIC = "catalog.example.org"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server of this machine that is reached under a public name too."""
    connect, look_up = socket.create_connection, socket.getaddrinfo

    def connected(address: tuple[str, int], *arguments: Any, **named: Any) -> socket.socket:
        return connect(("127.0.0.1" if address[0] == _PUBLIC else address[0], address[1]), *arguments, **named)

    def found(host: str, *arguments: Any, **named: Any) -> Any:
        numbers = {_PUBLIC: "8.8.8.8", "stac.intranet": "10.0.0.8"}
        return look_up(numbers.get(host, host), *arguments, **named)

    monkeypatch.setattr(socket, "create_connection", connected)
    monkeypatch.setattr(socket, "getaddrinfo", found)
    _lies_inside.cache_clear()
    picture(0).save(tmp_path / "a.png")
    with serving(tmp_path) as served:
        yield served
    _lies_inside.cache_clear()


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:8265/api",
        "http://a.LOCALHOST./x",
        "http://127.0.0.1/x",
        "http://127.1/x",
        "http://2130706433/x",
        "http://127%2e0.0.1/x",
        "http://１２７.0.0.1/x",
        "http://user@10.0.0.8/x",
        "http://192.168.1.1/x",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]:80/x",
        "http://[::ffff:10.0.0.1]/x",
        "http://[fe80::1%25eth0]/x",
        "http://0.0.0.0/x",
    ],
)
def test_only_what_lies_inside_leads_inside(server: Served, address: str) -> None:
    assert leads_inside(address, f"https://{_PUBLIC}/catalog.json")
    assert not leads_inside(f"https://{_PUBLIC}/catalog.json", f"https://{_PUBLIC}/catalog.json")
    assert not leads_inside("https://8.8.8.8/x", f"https://{_PUBLIC}/catalog.json")
    for inside in (server.address, "http://localhost/catalog.json", "https://stac.intranet/catalog.json"):
        assert not leads_inside(address, inside)


def test_a_public_catalog_leads_to_no_machine_inside(server: Served) -> None:
    public = server.address.replace("127.0.0.1", _PUBLIC)
    own = [{"rel": "self", "href": f"{server.address}/item.json"}]
    server.redirects["away.png"] = f"{server.address}/a.png"
    features = [
        item("good", {"x": "a.png"}),
        item("asset", {"x": f"{server.address}/a.png"}),
        item("own", {"x": "a.png"}, links=own),
        item("redirect", {"x": "away.png"}),
    ]
    write(server.folder / "all.json", items(*features))
    links = [{"rel": "child", "href": f"{base}/all.json"} for base in (server.address, public)]
    content = {"type": "Catalog", "stac_version": "1.0.0", "id": "c", "description": "x", "links": links}
    write(server.folder / "catalog.json", content)
    found = find([f"{public}/catalog.json"])
    assert [file.path for file in found.files] == [f"{public}/a.png"]
    assert len(found.skipped) == 4
    assert all("lies on this machine or its network" in skip.reason for skip in found.skipped)
    assert found.read == frozenset()
    for unaffected in (f"{server.address}/catalog.json", str(server.folder / "catalog.json")):
        assert f"{server.address}/a.png" in [file.path for file in find([unaffected]).files]
