"""What an index run asks of a gallery: to tell its rows and to change them, one commit at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.rows import Row, WrittenRows

if TYPE_CHECKING:
    from evidex.encoders.model import Model
    from evidex.retrieval.soundness.checks import FileChecks
    from evidex.retrieval.soundness.seal import Losses

Vectors = NDArray[np.float32]


class IndexTarget(Protocol):
    """The gallery that rows go into."""

    @property
    def model(self) -> Model: ...

    @property
    def vectors(self) -> Vectors:
        """(rows, dim), mapped and sound."""

    @property
    def rows_a_commit(self) -> int:
        """How many rows a commit is worth waiting for."""

    @property
    def checks(self) -> FileChecks:
        """Which tell what rows repairs gave up that are not back yet."""

    def __len__(self) -> int: ...

    def writing(self) -> AbstractContextManager[None]:
        """Hold it for one writer."""

    def records(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """All rows, as far as ``columns`` go."""

    def find_with_vectors(self, ids: Sequence[str]) -> Sequence[tuple[Row, Vectors]]: ...

    def append(self, rows: Sequence[Row], vectors: Vectors) -> None: ...

    def append_written(self, written: Sequence[WrittenRows]) -> None:
        """Rows that others wrote."""

    def replace(self, rows: Sequence[Row], vectors: Vectors) -> None:
        """In place of those with the same ids."""

    def remove(self, ids: Sequence[str]) -> None: ...

    def pieces(self) -> int: ...

    def compact(self) -> None: ...

    @property
    def notes(self) -> dict[str, str]:
        """What is kept about the whole gallery."""

    def note(self, notes: dict[str, str]) -> None: ...

    def note_losses(self, lost: Losses) -> None:
        """What of them is not back yet."""
