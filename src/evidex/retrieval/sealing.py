"""Write the seal of a gallery: of all its files, or of what a commit to its table has changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from typing import Any

from evidex.retrieval.gallery_info import FORMAT, GalleryInfo, parse_info, write_info
from evidex.retrieval.soundness.checks import FileChecks, State, state_of
from evidex.retrieval.soundness.seal import SEAL, Digest, Losses, Seal, changing, digest_of, files_under, write_seal
from evidex.retrieval.table import ROWS, files_of
from evidex.storage.objects import Place

MODEL = "model.safetensors"
CALIBRATION = "calibration"
_KINDS = (".lance", ".manifest", ".txn", ".arrow", ".bin")  # of files that never change; others are hints

_Files = Mapping[str, tuple[Digest | None, ...]]


Sealed = tuple[Seal, State | None]
"""A seal and the state of its file, taken while no other process could write it."""


def seal_all(folder: Place, gallery: Mapping[str, Any], version: int) -> Sealed:
    """Seal every file as it is now, of a gallery that is new or has no seal."""
    others = [name for name in (MODEL, *files_under(folder, CALIBRATION)) if (folder / name).is_file()]
    with changing(folder):
        seal = Seal(gallery, version, {**_sealed_table(folder, {}), **_digests(folder, others)})
        write_seal(folder, seal)
        return seal, state_of(folder / SEAL)


def seal_table(
    folder: Place,
    dataset: Any,
    *,
    anew: str | None = None,
    lost: Losses | None = None,
    digests: Mapping[str, Digest] | None = None,
) -> Sealed | None:
    """Seal what the table has new and forget what it has dropped; None where the gallery has no seal.

    ``dataset`` is its newest version. ``anew`` names a file that was written again, under a name that had been lost;
    ``lost`` says which rows are given up, if that is to change; ``digests`` are of files that others wrote and read.
    """
    needed, version = files_of(folder, dataset), int(dataset.version)
    sealed: list[Seal] = []

    def how(seal: Seal) -> Seal:
        others = {name: digests for name, digests in seal.files.items() if not name.startswith(f"{ROWS}/")}
        known = {name: digests for name, digests in seal.files.items() if name != anew}
        told = {name: (digest,) for name, digest in (digests or {}).items()}
        files = {**others, **_sealed_table(folder, {**told, **known}, needed)}
        sealed.append(Seal(seal.gallery, version, files, seal.lost if lost is None else lost))
        return sealed[0]

    with changing(folder) as change:
        change(how)
        return (sealed[0], state_of(folder / SEAL)) if sealed else None


def complete(folder: Place, info: GalleryInfo, dataset: Any, files: list[str], checks: FileChecks) -> GalleryInfo:
    """Bring seal and gallery.json up to what is there: of a gallery from before there were seals, or after a kill.

    A process that ends between a commit and its seal leaves rows that nothing vouches for.
    """
    version = int(dataset.version)
    if checks.seal is None:
        info = replace(info, format=FORMAT)
        checks.adopt(*seal_all(folder, asdict(info), version))
    elif not checks.covers(files, version):
        sealed = seal_table(folder, dataset)
        if sealed is not None:
            checks.adopt(*sealed)
    if parse_info(folder) != info:
        write_info(folder, info)
    return info


def _sealed_table(folder: Place, known: _Files, needed: Collection[str] | None = None) -> _Files:
    """Files of the table are written once and never changed, so what is sealed stays so.

    Rows that no version has yet, which are not ``needed``, may be in the making by others: they are left out.
    """
    names = [name for name in files_under(folder, ROWS) if name.endswith(_KINDS)]
    if needed is not None:
        wanted = {*known, *needed}
        names = [name for name in names if name in wanted or not name.startswith(f"{ROWS}/data/")]
    kept = {name: known[name] for name in names if name in known}
    return {**kept, **_digests(folder, [name for name in names if name not in known])}


def _digests(folder: Place, names: list[str]) -> _Files:
    found = {name: digest_of(folder / name) for name in names}
    return {name: (digest,) for name, digest in found.items() if digest is not None}
