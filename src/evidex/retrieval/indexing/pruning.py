"""Which files are gone, and when that is too many to believe it."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from evidex.data.discover import printable
from evidex.data.remote import is_remote
from evidex.data.stac.finding import Found
from evidex.errors import InputError

_MOST_PRUNED = 0.9


def is_gone(path: str) -> bool:
    """Whether nothing is there to be indexed. A place that cannot be looked at is not gone, it is out of reach."""
    if is_remote(path):
        return False
    try:
        status = os.stat(path)  # noqa: PTH116 (a path may hold bytes that are no UTF-8)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return not stat.S_ISREG(status.st_mode) or status.st_size == 0


def is_taken_away(path: str, roots: frozenset[str]) -> bool:
    """Whether a file is gone from a place that is there, and not with its folder or disk, which may come back."""
    if not is_gone(path):
        return False
    if _root(path, roots) is not None:
        return True
    try:
        with os.scandir(os.path.dirname(path)) as listing:  # noqa: PTH120 (a path may hold bytes that are no UTF-8)
            return next(listing, None) is not None
    except OSError:
        return False


@dataclass(frozen=True)
class Pruning:
    """What of the files that a gallery knew before a run lies in the given places, and whether it may be dropped."""

    files: frozenset[str]
    """Those that were found."""
    known: frozenset[str]
    roots: frozenset[str]
    force: bool
    listed: Mapping[str, str]
    """The files that catalogs named which are read again now, from end to end, with these catalogs."""

    @classmethod
    def of(cls, findings: Found, known: Mapping[str, str | None], force: bool) -> Pruning:
        """``known``: the files that the gallery knew, each with the catalog that told of it, if one did."""
        roots = frozenset(findings.roots)
        found = frozenset(file.path for file in findings.files)
        listed = {path: catalog for path, catalog in known.items() if catalog in findings.read}
        inside = frozenset(path for path in known if path in listed or _root(path, roots) is not None)
        return cls(found, inside, roots, force, listed)

    def gone(self) -> list[str]:
        """What is not found any more: no file is there, or no item names it."""
        return sorted(path for path in self.known - self.files if path in self.listed or is_gone(path))

    def is_given_up(self, path: str) -> bool:
        """Whether a file that the gallery need not know was looked for, and is gone."""
        return path not in self.files and _root(path, self.roots) is not None and is_gone(path)

    def check_before(self) -> None:
        """Refuse at once places of which nothing is or was there, and where so little is found that renamed files
        cannot explain what is missing."""
        for root in sorted(self.roots):
            if not (is_remote(root) or os.path.lexists(root) or any(_root(path, {root}) for path in self.known)):
                raise InputError(
                    f"'{printable(root)}' does not exist, and the gallery holds nothing from there; check the name"
                )
        new = Counter(map(self._place, self.files - self.known))
        self._refuse(self.gone(), new, "nothing was changed")

    def check(self, dropped: Iterable[str]) -> None:
        """Refuse to drop nearly all files of a place."""
        self._refuse(dropped, Counter(), "nothing was pruned")

    def _refuse(self, dropped: Iterable[str], excused: Counter[str], so: str) -> None:
        if self.force:
            return
        known = Counter(map(self._place, self.known))
        lost = Counter(self._place(path) for path in dropped if path in self.known)
        for place, count in lost.items():
            if count - excused[place] > _MOST_PRUNED * known[place]:
                where = f"'{printable(place)}'" if place else "what was named"
                raise InputError(
                    f"{where}: {count} of the {known[place]} files that the gallery holds from there are gone or "
                    f"cannot be read, as when a disk is not mounted; {so}; add --force to drop them"
                )

    def _place(self, path: str) -> str:
        """The given folder that ``path`` lies in; files that were named themselves count together."""
        root = self.listed.get(path) or _root(path, self.roots)
        return "" if root is None or root == path else root


def _root(path: str, roots: Set[str]) -> str | None:
    """The nearest of ``roots`` that is ``path`` or lies above it."""
    while path not in roots:
        above = os.path.dirname(path)  # noqa: PTH120 (a path may hold bytes that are no UTF-8)
        if above == path:
            return None
        path = above
    return path
