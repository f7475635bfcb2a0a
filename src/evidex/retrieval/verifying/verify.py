"""Hold everything in a gallery against what was written: every file, every row, every vector, the model."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from evidex.errors import DamagedError, EvidexError, GalleryError, InputError
from evidex.progress import Progress, silent
from evidex.retrieval.certainty.calibration_store import read_calibration
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.gallery_info import INFO, GalleryInfo, parse_info, read_info
from evidex.retrieval.gallery_model import OWN_MODEL, load_model_of
from evidex.retrieval.marks import FILE, Marks
from evidex.retrieval.sealing import CALIBRATION, MODEL
from evidex.retrieval.soundness.checks import FileChecks, state_of
from evidex.retrieval.soundness.seal import INDEX_AGAIN, SEAL, Seal, digest_of, files_under, read_seal
from evidex.retrieval.table import ROWS, files_of, manifests, open_at
from evidex.retrieval.verifying.content import check_rows
from evidex.storage.objects import Place, place_of

_TRIES = 3
Kind = Literal["seal", "info", "version", "rows", "lost", "stray", "vectors", "calibration", "model", "marks"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, and what to do about it."""

    kind: Kind
    file: str
    problem: str
    remedy: str
    mended: bool = False

    def __str__(self) -> str:
        return f"{self.file} {self.problem}; {self.remedy}"


@dataclass(frozen=True)
class SoundnessReport:
    """What `verify` found."""

    gallery: str
    files: int
    bytes: int
    rows: int | None
    """None where they could not be counted."""
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    seconds: float

    @property
    def sound(self) -> bool:
        return all(finding.mended for finding in self.findings)


@dataclass
class _Look:
    """One pass over a gallery and what it has found so far."""

    folder: Place
    progress: Progress
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    bad: dict[str, str] = field(default_factory=dict)
    files: int = 0
    bytes: int = 0
    rows: int | None = None

    def find(self, kind: Kind, file: str, problem: str, remedy: str) -> None:
        self.findings.append(Finding(kind, file, problem, remedy))


def verify(gallery: str | Place, *, progress: Progress = silent) -> SoundnessReport:
    """Read all of a gallery and say what is wrong with it; GalleryError where there is none. Mends nothing."""
    folder = place_of(gallery)
    for _ in range(_TRIES):
        before = state_of(folder / SEAL)
        report = _verify(folder, progress)
        if report.sound or state_of(folder / SEAL) == before:
            break
        # Somebody has written to it meanwhile, and what was read may be of before and after.
    return report


def _verify(folder: Place, progress: Progress) -> SoundnessReport:
    started = time.monotonic()
    look = _Look(folder, progress)
    seal, info = _said(look)
    if seal is not None:
        _check_files(look, seal)
    if info is not None:
        _check_table(look, info, seal)
        _check_calibrations(look, info)
        _check_model(look, info, seal)
    if isinstance(folder, Path):
        _check_marks(look, Marks(folder))
    return SoundnessReport(
        str(folder), look.files, look.bytes, look.rows, tuple(look.findings), tuple(look.notes),
        time.monotonic() - started,
    )  # fmt: skip


def _said(look: _Look) -> tuple[Seal | None, GalleryInfo | None]:
    """What the gallery says of itself."""
    folder, mends = look.folder, "--repair makes it anew from what is there"
    info = parse_info(folder)
    try:
        seal = read_seal(folder)
    except DamagedError:
        look.find("seal", SEAL, "is not what was written", mends)
        return None, info
    if seal is None:
        if info is None:
            read_info(folder)  # says what is missing
            raise GalleryError(f"'{folder}' is no gallery")
        if info.format > 1:
            look.find("seal", SEAL, "is missing", mends)
        else:
            look.notes.append("made before checksums were kept; they are recorded when something is next indexed")
        return None, info
    if info != (sealed := read_info(folder)[0]):
        look.find("info", INFO, "is missing or not what was written", "--repair writes it again from its copy")
    return seal, sealed


def _check_files(look: _Look, seal: Seal) -> None:
    total = sum(max((entry[0] for entry in entries if entry), default=0) for entries in seal.files.values())

    def read(size: int) -> None:
        look.bytes += size
        look.progress(look.bytes, max(total, look.bytes))

    for name, allowed in sorted(seal.files.items()):
        try:
            found = digest_of(look.folder / name, read)
        except DamagedError as error:
            look.bad[name] = f"cannot be read ({error})"
            continue
        look.files += found is not None
        if found not in allowed:
            look.bad[name] = "is missing" if found is None else "is not what was written"


def _check_table(look: _Look, info: GalleryInfo, seal: Seal | None) -> None:
    folder, versions = look.folder, manifests(look.folder)
    newest = max(versions, default=None)
    lost = f"rows are lost; --repair goes back to a version that is whole, then 'evidex index … --gallery {folder}'"
    if newest is None or (seal is not None and newest < seal.version) or versions[newest] in look.bad:
        name = f"{ROWS}/_versions" if newest is None or versions[newest] not in look.bad else versions[newest]
        look.find("version", name, look.bad.pop(name, "lacks the newest version of the rows"), lost)
        return
    try:
        needed = files_of(folder, open_at(folder, newest))
    except DamagedError as error:
        look.find("version", versions[newest], f"cannot be read ({error})", lost)
        return
    again = f"--repair drops its rows; then {INDEX_AGAIN}"
    for name in needed:
        if not (folder / name).exists():
            look.bad.setdefault(name, "is missing")
    for name in [name for name in look.bad if name.startswith(f"{ROWS}/")]:
        if name in needed:
            look.find("rows", name, look.bad.pop(name), again)
        elif (problem := look.bad.pop(name)) != "is missing":
            look.find("stray", name, problem, "no search needs it; --repair removes it")
    if seal is not None and seal.lost:
        forget = f"; when all is back, 'evidex verify --gallery {folder} --forget-losses' takes this off"
        look.find("lost", ROWS, f"lacks rows: {seal.lost}", INDEX_AGAIN + forget)
    if not any(finding.kind == "rows" for finding in look.findings):
        _check_content(look, Gallery(folder, info, None, seal))


def _check_content(look: _Look, gallery: Gallery) -> None:
    """Read every row, and compare its vector with the mapped one."""
    try:
        look.rows = len(gallery)
        rows_problem, vectors_problem = check_rows(gallery, look.progress)
    except DamagedError as error:
        look.find("rows", ROWS, f"cannot be read in whole ({error})", "index into a new folder")
        return
    if rows_problem is not None:
        look.find("rows", ROWS, rows_problem, "index into a new folder")
    if vectors_problem is not None:
        look.find("vectors", "vectors-*.f32", vectors_problem, "the next search, or --repair, makes it again")


def _check_calibrations(look: _Look, info: GalleryInfo) -> None:
    for name in sorted({*files_under(look.folder, CALIBRATION), *look.bad}):
        if not name.startswith(f"{CALIBRATION}/") or not name.endswith(".json"):
            continue
        problem = look.bad.pop(name, None)
        if problem is None:
            try:
                calibration = read_calibration(look.folder / name)
                if calibration.model_fingerprint == info.model_fingerprint:
                    continue
                problem = "was made with another model"
            except InputError as error:
                problem = f"cannot be read ({error})"
        own = name.endswith("-by-itself.json")
        remedy = "--repair makes it again" if own else "--repair drops it; give its queries to 'evidex calibrate' again"
        look.find("calibration", name, problem, remedy)


def _check_marks(look: _Look, marks: Marks) -> None:
    try:
        damaged = marks.damaged
    except GalleryError as error:
        look.find("marks", FILE, f"cannot be read ({error})", "all else can be used; bring it back, or remove it")
        return
    if damaged:
        look.notes.append(f"{damaged} lines of {FILE} are not what was written and are passed over; other marks hold")


def _check_model(look: _Look, info: GalleryInfo, seal: Seal | None) -> None:
    if MODEL in look.bad:
        look.find("model", MODEL, look.bad.pop(MODEL), "put a sound copy of the model in its place")
        return
    try:
        load_model_of(look.folder, info, FileChecks(look.folder, seal))
    except EvidexError as error:
        own = info.model == OWN_MODEL
        remedy = "put a sound copy of it in its place" if own else "bring it back, or name it with --model"
        look.find("model", MODEL if own else info.model, f"cannot be used ({error})", remedy)
