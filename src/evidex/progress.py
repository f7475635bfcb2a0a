"""How long work tells its caller how far it is, without knowing about terminals."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called now and then with the number of finished items and the total."""

    def __call__(self, done: int, total: int) -> None: ...


def silent(done: int, total: int) -> None:
    """The progress of work that nobody watches."""
