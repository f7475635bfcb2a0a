"""Mend what `verify` found, as far as something sound is left to mend it from."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from evidex.errors import EvidexError, GalleryError
from evidex.files import derived_folder
from evidex.progress import Progress, silent
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.gallery_folder import check_held, held
from evidex.retrieval.gallery_info import parse_info, read_info, write_info
from evidex.retrieval.sealing import seal_table
from evidex.retrieval.soundness.seal import INDEX_AGAIN, Losses, changing, damaged, digest_of, drop, read_seal
from evidex.retrieval.table import ROWS, files_of, manifests, open_at, reading
from evidex.retrieval.vector_file import STATE
from evidex.retrieval.verifying.verify import Finding, Kind, SoundnessReport, verify
from evidex.storage.objects import Place, lance_place, place_of

_MOST_NAMED = 100_000  # every commit writes them again
_Mend = Callable[[Place, list[Finding]], str | None]


def repair(gallery: str | Place, *, progress: Progress = silent) -> SoundnessReport:
    """Mend and verify again; the report holds what was mended as well as what is still wrong."""
    folder = place_of(gallery)
    started = time.monotonic()
    found = verify(folder, progress=progress)
    if not found.findings:
        return found
    told: list[Finding] = []
    with held(folder):
        found = verify(folder, progress=progress)  # a writer may have been at work
        for kind, mend in _MENDERS.items():
            mine = [finding for finding in found.findings if finding.kind == kind]
            if mine:
                told += _mended(folder, mine, mend)
    after = verify(folder, progress=progress)
    left = tuple(finding for finding in after.findings if (finding.kind, finding.file) not in _names(told))
    return replace(after, findings=(*told, *left), seconds=time.monotonic() - started)


def _names(findings: list[Finding]) -> set[tuple[Kind, str]]:
    return {(finding.kind, finding.file) for finding in findings}


def _mended(
    folder: Place, findings: list[Finding], mend: Callable[[Place, list[Finding]], str | None]
) -> list[Finding]:
    """The findings with what became of them; what ``mend`` returns is still to be done."""
    try:
        check_held(folder)
        left = mend(folder, findings)
    except EvidexError as error:
        return [replace(finding, remedy=f"it could not be mended ({error})") for finding in findings]
    if left is None:
        return [replace(finding, mended=True, remedy="it was mended") for finding in findings]
    return [replace(finding, remedy=left) for finding in findings]


def _mend_seal(folder: Place, _: list[Finding]) -> str | None:
    """Nothing says what the files should be: they are taken as they are, if all rows can be read and make sense."""
    info = parse_info(folder)
    if info is None:
        return "gallery.json cannot be read either; index into a new folder"
    gallery = Gallery(folder, info, None, None)
    wrong = [f for f in verify(folder).findings if f.kind in ("rows", "version", "model")]
    if wrong:
        return f"not mended, as more is wrong ({wrong[0]})"
    gallery.complete_seal()
    return None


def _mend_info(folder: Place, _: list[Finding]) -> str | None:
    write_info(folder, read_info(folder)[0])
    return None


def _mend_version(folder: Place, _: list[Finding]) -> str | None:
    """Go back to the newest version whose files are all as they were written."""
    seal = read_seal(folder)
    versions = manifests(folder)
    for version in sorted(versions, reverse=True):
        if seal is None or not _is_whole(folder, version, versions[version]):
            continue
        for newer in [name for number, name in versions.items() if number > version]:
            (folder / newer).unlink(missing_ok=True)
        (derived_folder(folder) / STATE).unlink(missing_ok=True)
        dataset = open_at(folder, version)
        with reading(folder):
            dataset.restore()
        lost = Losses(f"a repair went back to version {version}, with {dataset.count_rows()} rows")
        seal_table(folder, dataset, anew=manifests(folder)[int(dataset.version)], lost=seal.lost + lost)
        return f"went back to version {version} with {dataset.count_rows()} rows; {INDEX_AGAIN}"
    return "no version of the rows is left; index into a new folder"


def _is_whole(folder: Place, version: int, manifest: str) -> bool:
    seal = read_seal(folder)
    if seal is None or digest_of(folder / manifest) not in seal.files.get(manifest, ()):
        return False
    try:
        names = files_of(folder, open_at(folder, version))
    except EvidexError:
        return False
    return all(digest_of(folder / name) in seal.files.get(name, ()) for name in names)


def _mend_rows(folder: Place, findings: list[Finding]) -> str | None:
    """Drop the pieces of the table that are damaged; which pictures they were of is told as far as it can be read."""
    import lance

    bad = {finding.file for finding in findings}
    dataset = open_at(folder, max(manifests(folder)))
    lost = [fragment for fragment in dataset.get_fragments() if bad & set(_files_of_fragment(fragment))]
    if not lost:
        return "index into a new folder"
    rows = sum(fragment.physical_rows - fragment.num_deletions for fragment in lost)
    told = [name for fragment in lost for name in _paths(folder, fragment)]
    dropped = lance.LanceOperation.Delete([], [fragment.fragment_id for fragment in lost], "damaged")
    with reading(folder):
        where = lance_place(folder / ROWS)
        newest = lance.LanceDataset.commit(where.pop("uri"), dropped, read_version=dataset.version, **where)
    for name in bad:
        (folder / name).unlink(missing_ok=True)
    names = tuple(sorted(set(told)))
    if len(names) > _MOST_NAMED:
        told, names = [], ()
    nameless = rows - len(told)
    missing = Losses(f"a repair dropped {nameless} that were damaged" if nameless else "", names)
    seal = read_seal(folder)
    seal_table(folder, newest, lost=missing if seal is None else seal.lost + missing)
    return f"{rows} rows were dropped with it ({missing}); {INDEX_AGAIN}"


def _files_of_fragment(fragment: Any) -> list[str]:
    deletions = fragment.deletion_file()
    return [*(f"{ROWS}/data/{file.path}" for file in fragment.data_files()), f"{ROWS}/{deletions}"]


def _paths(folder: Place, fragment: Any) -> list[str]:
    """What a damaged piece says its pictures are, a path for each row where that makes sense.

    Texts are no files, and a path that is no UTF-8 is none to look for by its printed form.
    """
    names = [name for name in ("path", "kind", "raw_path") if name in fragment.schema.names]
    try:
        with reading(folder):
            rows = fragment.to_table(columns=names).to_pylist()
    except EvidexError:
        return []
    paths = [row["path"] for row in rows if row["kind"] != "text" and row.get("raw_path") is None]
    return [path for path in paths if isinstance(path, str) and path and path.isprintable()]


def forget_losses(gallery: str | Place) -> None:
    """Take it that all that repairs gave up is back, or not wanted."""
    folder = place_of(gallery)
    if read_seal(folder) is None:
        raise GalleryError(f"'{folder}' has no seal, and so nothing noted as lost; see 'evidex verify'")
    with held(folder), changing(folder) as change:
        change(lambda seal: replace(seal, lost=Losses()))


def _mend_lost(_: Place, findings: list[Finding]) -> str | None:
    return findings[0].remedy


def _mend_stray(folder: Place, findings: list[Finding]) -> str | None:
    drop(folder, [finding.file for finding in findings])
    return None


def _mend_vectors(folder: Place, _: list[Finding]) -> str | None:
    gallery = Gallery.open(folder)
    gallery.remake_vectors()
    gallery.vectors  # noqa: B018 (holds them against their checksums)
    return None


def _mend_calibrations(folder: Place, findings: list[Finding]) -> str | None:
    """Make those again that the gallery makes by itself; those that were given can only be dropped."""
    from evidex.retrieval.certainty.self_calibrating import self_calibrate

    names = [finding.file for finding in findings]
    drop(folder, names)
    gallery = Gallery.open(folder)
    if len(gallery):
        self_calibrate(gallery, np.random.default_rng(0))
    if any(not name.endswith("-by-itself.json") for name in names):
        return "it was dropped; give its queries to 'evidex calibrate' again"
    return None


def _mend_model(folder: Place, _: list[Finding]) -> str | None:
    raise damaged(folder, "a model cannot be made again from anything else; put a sound copy in its place")


_MENDERS: dict[Kind, _Mend] = {
    "seal": _mend_seal,
    "info": _mend_info,
    "version": _mend_version,
    "rows": _mend_rows,
    "lost": _mend_lost,
    "stray": _mend_stray,
    "vectors": _mend_vectors,
    "calibration": _mend_calibrations,
    "model": _mend_model,
}
