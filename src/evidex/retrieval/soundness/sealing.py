"""Write the seal of a gallery: of all its files, or of what a commit to its table has changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evidex.retrieval.soundness.seal import Digest, Seal, changing, digest_of, files_under, write_seal

MODEL = "model.safetensors"
CALIBRATION = "calibration"
_ROWS = "rows.lance"
_KINDS = (".lance", ".manifest", ".txn", ".arrow", ".bin")  # of files that never change; others are hints

_Files = Mapping[str, tuple[Digest | None, ...]]


def seal_all(folder: Path, gallery: Mapping[str, Any], version: int) -> Seal:
    """Seal every file as it is now, of a gallery that is new or has no seal."""
    others = [name for name in (MODEL, *files_under(folder, CALIBRATION)) if (folder / name).is_file()]
    with changing(folder):
        seal = Seal(gallery, version, {**_sealed_table(folder, {}), **_digests(folder, others)})
        write_seal(folder, seal)
    return seal


def seal_table(folder: Path, version: int, *, anew: str | None = None) -> Seal | None:
    """Seal what the table has new and forget what it has dropped; None where the gallery has no seal.

    ``anew`` names a file that was written again, under a name that had been lost.
    """
    sealed: list[Seal] = []

    def how(seal: Seal) -> Seal:
        others = {name: digests for name, digests in seal.files.items() if not name.startswith(f"{_ROWS}/")}
        known = {name: digests for name, digests in seal.files.items() if name != anew}
        sealed.append(Seal(seal.gallery, version, {**others, **_sealed_table(folder, known)}))
        return sealed[0]

    with changing(folder) as change:
        change(how)
    return sealed[0] if sealed else None


def _sealed_table(folder: Path, known: _Files) -> _Files:
    """Files of the table are written once and never changed, so what is sealed stays so."""
    names = [name for name in files_under(folder, _ROWS) if name.endswith(_KINDS)]
    kept = {name: known[name] for name in names if name in known}
    return {**kept, **_digests(folder, [name for name in names if name not in known])}


def _digests(folder: Path, names: list[str]) -> _Files:
    found = {name: digest_of(folder / name) for name in names}
    return {name: (digest,) for name, digest in found.items() if digest is not None}
