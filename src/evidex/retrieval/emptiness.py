"""Why a search had no row to look at: an empty gallery, rows of another kind, unknown places or times, or filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evidex.data.discover import printable
from evidex.retrieval.answers import Answer
from evidex.retrieval.filters import NO_FILTERS, Filters, Mask, Selector, Target, path_matcher
from evidex.retrieval.gallery import Gallery

_NAMES: dict[Target, str] = {"images": "pictures", "texts": "texts"}


def with_reasons(answers: Sequence[Answer], gallery: Gallery, filters: Filters, among: Target | None) -> list[Answer]:
    """The answers of one search; where nothing was searched, with the reason in them."""
    if all(answer.searched for answer in answers):
        return list(answers)
    reason = why_nothing(gallery, filters, among)
    return [answer if answer.searched else replace(answer, emptiness=reason) for answer in answers]


def why_nothing(gallery: Gallery, filters: Filters, among: Target | None = None) -> str:
    """The reason for which no row of ``gallery`` is searched under ``filters``, with its remedy."""
    if not len(gallery):
        return "the gallery is empty; put something in with 'evidex index'"
    selector = Selector(gallery)
    target = among or selector.default_target()
    eligible = _mask(selector, NO_FILTERS, target, len(gallery))
    count, name = int(eligible.sum()), _NAMES[target]
    if count == 0:
        other = _NAMES["texts" if target == "images" else "images"]
        return f"the gallery holds no {name}, only {other}; look among those"
    for part in _parts(filters):
        if not _mask(selector, part, target, len(gallery)).any():
            return _reason(gallery, part, eligible, f"{count} {name}")
    return f"each filter lets some of the {count} {name} pass, but none passes all of them; loosen one"


def _mask(selector: Selector, filters: Filters, target: Target, rows: int) -> Mask:
    kept = selector.select(filters, target)
    return np.ones(rows, np.bool_) if kept is None else kept


def _parts(filters: Filters) -> list[Filters]:
    """The filters that are set, each alone; the two ends of a time span belong together."""
    parts = [
        Filters(bbox=filters.bbox),
        Filters(after=filters.after, before=filters.before),
        Filters(glob=filters.glob),
        Filters(collection=filters.collection),
        Filters(max_cloud=filters.max_cloud),
    ]
    return [part for part in parts if part != NO_FILTERS]


def _reason(gallery: Gallery, part: Filters, eligible: Mask, rows: str) -> str:
    if part.glob is not None:
        return f"the path of none of the {rows} matches '{part.glob}'; {_pattern(gallery, part.glob, eligible)}"
    if part.collection is not None:
        return _no_collection(gallery, part.collection, eligible, rows)
    if part.max_cloud is not None:
        if not _known(gallery, "cloud_cover", eligible).any():
            return f"none of the {rows} knows its clouds, so none passes a filter by them; leave it out"
        return f"none of the {rows} has at most {part.max_cloud:g} % of clouds; allow more"
    if part.bbox is not None:
        if not _known(gallery, "footprint", eligible).any():
            return f"none of the {rows} knows its place, so none lies in the area; leave the area out"
        return f"none of the {rows} touches the area; choose a larger one"
    if part.after is not None and part.before is not None and part.after >= part.before:
        return f"nothing is taken after {part.after:%F} and yet before {part.before:%F}; swap the two"
    import pyarrow.compute as pc

    known = _known(gallery, "acquired", eligible)
    if not known.any():
        return f"none of the {rows} has a date, so none passes a filter by time; leave the time out"
    span = pc.min_max(gallery.column("acquired").filter(known)).as_py()
    return f"none of the {rows} was taken in that time; the dated ones are from {span['min']:%F} to {span['max']:%F}"


def _no_collection(gallery: Gallery, name: str, eligible: Mask, rows: str) -> str:
    names = gallery.column("collection").filter(_known(gallery, "collection", eligible)).unique().to_pylist()
    if not names:
        return f"none of the {rows} belongs to a collection; leave that out"
    shown = "', '".join(sorted(names)[:5]) + ("', …" if len(names) > 5 else "'")
    return f"none of the {rows} is of the collection '{name}'; there are '{shown}"


def _pattern(gallery: Gallery, tried: str, eligible: Mask) -> str:
    """What to try instead: a pattern that was found to match some path, else what the paths look like."""
    import pyarrow as pa

    paths = gallery.column("path").filter(pa.array(eligible)).unique().to_pylist()
    within = f"*{tried.removeprefix('./').strip('*')}*"
    for other in dict.fromkeys((within, *(case(each) for each in (tried, within) for case in (str.lower, str.upper)))):
        if any(map(path_matcher(other), paths)):
            return f"try '{other}'"
    alike = path_matcher(within.lower())
    for path in paths:
        if alike(path.lower()):
            return f"small and capital letters count, as in '{printable(path)}'"
    return f"the paths are such as '{printable(paths[0])}'"


def _known(gallery: Gallery, column: str, eligible: Mask) -> Any:
    return gallery.column(column).is_valid().to_numpy(zero_copy_only=False) & eligible
