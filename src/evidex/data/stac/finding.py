"""What is to be indexed under the given places: files as they lie there, and the assets of catalogs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from evidex.data.discover import Findings, FoundFile, discover, expanded, find_file, is_catalog, printable
from evidex.data.records import Skip
from evidex.data.remote import is_remote, state_at, tag_number
from evidex.data.stac.item import FoundAsset
from evidex.data.stac.walking import Walk
from evidex.errors import DataError

_AT_ONCE = 8
Source = tuple[str, str]
"""A catalog, and which asset of its items is meant."""


@dataclass(frozen=True)
class Found(Findings):
    """Files, and for those that catalogs name what these say about them."""

    assets: Mapping[str, tuple[FoundAsset, ...]] = field(default_factory=dict)
    """By path; several where items mean parts of one file."""
    remarks: tuple[Skip, ...] = ()
    read: frozenset[str] = frozenset()
    """The catalogs of which all documents and states could be read: what they do not name, they name no more."""


def find(places: Iterable[str | Path], asset: str | None = None, *, gone: bool = False) -> Found:
    """Walk folders and catalogs; ``asset`` names the one to take of each item, instead of the one that shows most.

    With ``gone`` a folder or file that does not exist is a place without files.
    """
    named = [os.fspath(place) for place in places]
    plain = discover([place for place in named if not is_catalog(place)], gone=gone)
    files = {file.path: file for file in plain.files}
    skipped, remarks, roots = list(plain.skipped), [], list(plain.roots)
    assets: dict[str, tuple[FoundAsset, ...]] = {}
    read: set[str] = set()
    for place in _documents(named):
        walk = Walk(place, asset)
        walk.run()
        roots.append(place)
        if not walk.unread:
            read.add(place)
        skipped += walk.skipped
        remarks += walk.remarks
        for each in walk.assets:
            _take(each, assets, remarks)
    # A file that is found by itself is wanted whole, whatever part of it an item means.
    assets = {path: told for path, told in assets.items() if path not in files or told[0].piece is None}
    for path, file in _states({path: told for path, told in assets.items() if path not in files}):
        if isinstance(file, Skip):
            skipped.append(file)
            if is_remote(path):  # it may answer again
                read -= {asset.item.catalog for asset in assets[path] if asset.item.catalog is not None}
            del assets[path]
        else:
            files[path] = file
    found = tuple(files.values()), tuple(skipped), tuple(roots), plain.passed_over
    return Found(*found, assets, tuple(remarks), frozenset(read))


def find_again(named: Mapping[Source, Collection[str]]) -> Found:
    """What catalogs tell now of the files that they named before; of others that they name nothing is asked."""
    skipped: list[Skip] = []
    remarks: list[Skip] = []
    assets: dict[str, tuple[FoundAsset, ...]] = {}
    for (catalog, asset), paths in named.items():
        walk = Walk(catalog, asset)
        walk.run()
        for each in walk.assets:
            if each.path in paths:
                _take(each, assets, remarks)
        if walk.unread:  # else what it skips is of no file that is looked for
            skipped += walk.skipped
    gone = {path: catalog for (catalog, _), paths in named.items() for path in paths if path not in assets}
    for path, catalog in gone.items():
        skipped.append(Skip(printable(path), f"is not told of any more by '{printable(catalog)}', which named it"))
    states = dict(_states(assets))
    files = [state for state in states.values() if isinstance(state, FoundFile)]
    skipped += (state for state in states.values() if isinstance(state, Skip))
    told = {file.path: assets[file.path] for file in files}
    return Found(tuple(files), tuple(skipped), (), assets=told, remarks=tuple(remarks))


def _documents(places: Iterable[str]) -> Iterator[str]:
    """The catalogs among the given places."""
    for place in filter(is_catalog, places):
        if is_remote(place):
            yield place
        else:
            yield from (os.path.normpath(Path(match).absolute()) for match in expanded(place))


def _take(asset: FoundAsset, assets: dict[str, tuple[FoundAsset, ...]], remarks: list[Skip]) -> None:
    """One more asset; items that mean other windows of a file stand beside each other, else the first one counts."""
    known = assets.get(asset.path, ())
    parts = all(one.piece is not None and one.piece.window is not None for one in (*known, asset))
    if known and not (parts and all(one.piece != asset.piece for one in known)):
        other = known[0].item.id
        if (known[0].item, known[0].piece) != (asset.item, asset.piece):
            remarks.append(Skip(printable(asset.path), f"is the asset of '{asset.item.id}' too; told of as '{other}'"))
        return
    assets[asset.path] = (*known, asset)


def _states(assets: Mapping[str, tuple[FoundAsset, ...]]) -> Iterable[tuple[str, FoundFile | Skip]]:
    """The state of each file, asked for on several machines at once; or why it cannot be had."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(zip(assets, threads.map(lambda path: _state(assets[path][0]), assets), strict=True))


def _state(asset: FoundAsset) -> FoundFile | Skip:
    """What counts as unchanged: for a file of this machine what does for all files; for others the time at which the
    item says it was updated, and where it does not say so what the server tells of length, time and tag."""
    if not is_remote(asset.path):
        return find_file(asset.path)
    if asset.updated:
        return FoundFile(asset.path, 0, 0, tag_number(f"updated {asset.updated}"))
    try:
        state = state_at(asset.path, DataError)
    except DataError as error:
        return Skip(asset.path, str(error).removeprefix(f"'{asset.path}' "))
    return FoundFile(asset.path, state.size, state.modified_ns, state.number)


def remote_digest(file: FoundFile) -> str:
    """Stands for the content of a remote file, of which only parts are ever read: its address and state."""
    return hashlib.sha256(f"{file.path}\n{file.size} {file.mtime_ns} {file.ctime_ns}".encode()).hexdigest()
