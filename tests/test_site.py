"""The documentation as a site: it builds without a warning, leads nowhere that is not there, and needs no network."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import http_reference
import pytest

from tests.doc_pages import ROOT

pytestmark = pytest.mark.slow
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src"}


class _Page(HTMLParser):
    """What a page names, leads to and loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.names: set[str] = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.append(given["href"])
        if tag in LOADED and LOADED[tag] in given:
            self.loaded.append(given[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(built)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr  # with --quiet nothing would be strict
    return built


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, _Page]:
    found = {path.resolve(): _Page(path) for path in site.rglob("*.html")}
    assert len(found) > 30
    return found


def test_links_lead_to_what_is_there(site: Path, pages: dict[Path, _Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            named = pages[target].names if target in pages else {""}
            if not target.is_file() or unquote(parts.fragment) not in named:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, _Page]) -> None:
    for path, page in pages.items():
        for loaded in page.loaded:
            assert not urlsplit(loaded).netloc, f"{path.name} loads {loaded}"
            if path.name != "404.html":
                assert (path.parent / urlsplit(loaded).path).is_file(), f"{path.name} loads {loaded}"
    for sheet in site.rglob("*.css"):
        assert "url(http" not in sheet.read_text(encoding="utf-8")


def test_the_references_tell_what_is_there(pages: dict[Path, _Page], site: Path) -> None:
    python = pages[site.resolve() / "api" / "python.html"].names
    assert {"evidex.retrieval.gallery.Gallery.add", "evidex.retrieval.retriever.Retriever.search"} <= python
    http = pages[site.resolve() / "api" / "http.html"].names
    assert {"post-search", "post-locate", "hitout"} <= http


def test_the_http_page_has_every_address_and_every_field() -> None:
    schema = http_reference.openapi()
    page = http_reference.page(schema)
    for path, operations in schema["paths"].items():
        assert all(f"## {method.upper()} {path}\n" in page for method in operations)
    for name, described in schema["components"]["schemas"].items():
        part = page.partition(f"### {name}\n")[2].partition("\n### ")[0]
        assert all(f"| `{field}` |" in part for field in described.get("properties", {})), name
