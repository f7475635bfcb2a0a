"""Several pieces of work under one progress."""

from __future__ import annotations

from evidex.progress import Progress


class Stages:
    """Hands each piece of work a progress of its own and reports the sum to the one above."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._total = max(total, 1)
        self._begun = 0

    def next(self, count: int) -> Progress:
        """The progress of the next piece, which is worth ``count`` items whatever it counts itself."""
        start, self._begun = self._begun, self._begun + count

        def report(done: int, total: int) -> None:
            self._progress(min(start + count * done // max(total, 1), self._total), self._total)

        return report

    def finish(self) -> None:
        self._progress(self._total, self._total)
