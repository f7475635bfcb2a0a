"""The scenes of a folder, one after another: bad files are reported, and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evidex.data.discover import discover, printable
from evidex.data.images import KINDS
from evidex.data.items import ReadOptions
from evidex.data.records import Skip
from evidex.errors import ImageError, InputError
from evidex.files import check_folder
from evidex.locating.asked import Asked
from evidex.locating.locate import LocateOptions, locate
from evidex.locating.located import Finding, Located
from evidex.locating.view import view_of_file
from evidex.locating.writing import TABLES, check_output, write_located, write_peaks
from evidex.progress import Progress

if TYPE_CHECKING:
    from evidex.encoders.model import Model


@dataclass(frozen=True)
class Places:
    """The scenes, and where what is found goes."""

    files: tuple[str, ...]
    skipped: tuple[Skip, ...]
    root: str
    maps: tuple[Path, ...]
    """Folders that get a map of each scene."""
    tables: tuple[Path, ...]
    """Files that get the peaks of all."""

    def map_of(self, file: str, folder: Path) -> Path:
        """Beside which others cannot come to lie: the scene's place in its folder, with its own suffix in the name."""
        inside = Path(file).relative_to(self.root)
        return folder / inside.parent / f"{inside.name}.tif"


@dataclass(frozen=True, eq=False)
class Many:
    """What was found in each scene, the likest first."""

    asked: Asked
    located: tuple[Located, ...]
    skipped: tuple[Skip, ...]

    @property
    def headline(self) -> str:
        seen = len(self.located)
        if self.asked.reading.new_words:
            return "The model does not know this"
        some = sum(one.finding in (Finding.FOUND, Finding.PERHAPS) for one in self.located)
        scenes = f"{seen} scene{'s' * (seen != 1)}"
        if not self.asked.is_judged:
            return f"{scenes}, the likest to {self.asked.thing} first"
        thing = self.asked.thing
        return (
            f"{thing[:1].upper()}{thing[1:]}: places in {some} of {scenes}"
            if some
            else f"Nothing in {scenes} looks like {thing}"
        )

    def json(self) -> dict[str, Any]:
        skipped = [{"scene": skip.name, "reason": skip.reason} for skip in self.skipped]
        scenes = [one.json() for one in self.located]
        return {"query": self.asked.shown, "headline": self.headline, "scenes": scenes, "skipped": skipped}


def check_places(folder: str, targets: Sequence[Path]) -> Places:
    """The scenes in ``folder``; refuses what cannot be written or read, before a model is loaded."""
    found = discover([folder])
    if not found.files:
        raise InputError(f"'{printable(folder)}' holds no scene; give {KINDS} files")
    tables = tuple(target for target in targets if target.suffix.lower() in TABLES)
    maps = tuple(target for target in targets if target not in tables)
    for table in tables:
        check_output(table)
    for target in maps:
        if target.suffix:
            raise InputError(f"'{target}' would hold the maps of {len(found.files)} scenes; name a folder for them")
        check_folder(target)
    places = Places(tuple(file.path for file in found.files), found.skipped, found.roots[0], maps, tables)
    _check_apart(places)
    return places


def _check_apart(places: Places) -> None:
    """Maps among the scenes would be taken for scenes the next time, and might replace one."""
    root = Path(places.root).resolve()
    for folder in places.maps:
        if any(places.map_of(file, folder).resolve().is_relative_to(root) for file in places.files):
            raise InputError(f"'{folder}' would put maps among the scenes; name a folder outside '{places.root}'")


def locate_files(
    model: Model,
    places: Places,
    asked: Asked,
    options: LocateOptions,
    reading: ReadOptions,
    watch: Callable[[str], AbstractContextManager[Progress]],
) -> Many:
    """Look through all scenes of ``places`` and write what goes where; ``watch`` shows the progress of each."""
    located: list[Located] = []
    skipped = list(places.skipped)
    for file in places.files:
        try:
            with view_of_file(file, reading) as view, watch(Path(view.name).name) as progress:
                found = locate(model, view, asked, options, progress)
                for folder in places.maps:
                    target = places.map_of(file, folder)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    write_located(target, found, view)
        except ImageError as error:
            skipped.append(Skip(printable(file), str(error)))
            continue
        located.append(found.without_map())
    if not located:
        raise InputError(f"'{printable(places.root)}': no scene could be read; the first: {skipped[0].reason}")
    located.sort(key=lambda one: -one.heat.peak)
    for table in places.tables:
        write_peaks(table, located)
    return Many(asked, tuple(located), tuple(skipped))
