"""Every failure a user can cause, and what the command line and the server say about it.

A message is one line: the value, the cause, the remedy, e.g.
``'scene.tif' has 13 bands; choose three with --bands 4,3,2``.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from functools import partial

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_LONGEST = 900


class EvidexError(Exception):
    """Base of all errors that evidex raises on purpose; whatever a message quotes, it is one line of bounded length."""

    def __init__(self, message: str) -> None:
        line = _CONTROL.sub(" ", message.encode("utf-8", "backslashreplace").decode())
        if len(line) > _LONGEST:
            line = f"{line[: _LONGEST * 2 // 3]} … {line[-_LONGEST // 3 :]}"
        super().__init__(line)


class InputError(EvidexError):
    """An argument is out of range or makes no sense together with another."""


class ConfigError(InputError):
    """A configuration file is missing, unreadable, or holds an unknown or wrong key."""


class DataError(InputError):
    """A dataset, caption file or archive is missing or malformed."""


class ImageError(InputError):
    """One image cannot be decoded."""


class ImageTooLargeError(ImageError):
    """One image has more pixels than the limit allows."""


class BlankImageError(ImageError):
    """One image shows nothing: all its pixels are empty or alike."""


class BandsError(ImageError):
    """One scene has bands of which nobody said which to show."""


class ModelError(InputError):
    """Model files are missing, foreign or do not fit the architecture."""


class MissingPackageError(InputError):
    """Something was asked for that needs a package of one of evidex's extras, which is not installed."""

    def __init__(self, what: str, package: str, *, extra: str = "train") -> None:
        super().__init__(f"{what} needs {package}, which is not installed; pip install 'evidex[{extra}]'")
        self._told = what, package, extra

    def __reduce__(self) -> tuple[object, ...]:
        what, package, extra = self._told
        return partial(MissingPackageError, extra=extra), (what, package)


class GalleryError(InputError):
    """A gallery is missing, damaged, newer than this version or made by another model."""


class DamagedError(GalleryError):
    """Files of a gallery are gone or not what was written."""


class StorageError(GalleryError):
    """An object store does not answer, refuses us, or lacks the bucket."""


class NotFoundError(InputError):
    """An item that was asked for is not in the gallery."""


class DiskFullError(InputError, OSError):
    """A disk has no room for what was to be written; what was there before still is."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.errno = errno.ENOSPC


class UnauthorizedError(EvidexError):
    """The request carries no valid token."""


class BusyError(EvidexError):
    """The server's queue is full."""


class ClusterError(InputError):
    """A cluster does not answer, or what it lost did not come back in time."""


class TrainingError(EvidexError):
    """Training cannot go on, for example because a loss is not finite."""


class InputWarning(UserWarning):
    """Something in the input that is hardly meant, told without stopping."""


@dataclass(frozen=True)
class Outcome:
    """How a failure leaves the process (exit code) or the server (HTTP status)."""

    exit_code: int
    http_status: int


_OUTCOMES: dict[type[EvidexError], Outcome] = {
    EvidexError: Outcome(1, 500),
    InputError: Outcome(2, 422),
    ConfigError: Outcome(2, 500),
    DataError: Outcome(2, 422),
    ImageError: Outcome(2, 415),
    ImageTooLargeError: Outcome(2, 413),
    BlankImageError: Outcome(2, 422),
    BandsError: Outcome(2, 415),
    ModelError: Outcome(2, 500),
    MissingPackageError: Outcome(2, 500),
    GalleryError: Outcome(2, 503),
    DamagedError: Outcome(2, 503),
    StorageError: Outcome(2, 503),
    NotFoundError: Outcome(2, 404),
    DiskFullError: Outcome(2, 507),
    UnauthorizedError: Outcome(1, 401),
    BusyError: Outcome(1, 429),
    ClusterError: Outcome(2, 503),
    TrainingError: Outcome(1, 500),
}


def outcome(error: EvidexError) -> Outcome:
    """Return the outcome of the most specific listed class of ``error``."""
    for cls in type(error).__mro__:
        if cls in _OUTCOMES:
            return _OUTCOMES[cls]
    return _OUTCOMES[EvidexError]
