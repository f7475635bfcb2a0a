"""A batch of queries between the scan and the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.scan.partial import Partial, ScanResult


@dataclass(frozen=True)
class Found:
    """What the scan and the gate say about a batch, before rows are looked up."""

    first: ScanResult
    final: list[Partial]
    refined: NDArray[np.bool_]
    """(queries,) which of them were asked again."""
    abstained: NDArray[np.bool_]
    percentiles: NDArray[np.float64] | None
    encode_ms: float
    scan_ms: float
    refine_ms: float
    chances: NDArray[np.float64] | None = None
    """(queries,) that a right row is among the first ``chance_top`` of the first ranking; None where not learnt."""
    chance_top: int | None = None
    weak: NDArray[np.bool_] | None = None
    """(queries,) whose best match is less similar than ``floor``; None where no floor is known."""
    floor: float | None = None
    new_words: Sequence[tuple[str, ...]] = ()
    """(queries,) words that make a text strange to the model; none for a text that is not."""
    ignored_words: Sequence[tuple[str, ...]] = ()
    """(queries,) words that the model was never taught, of texts that are not strange all the same."""
    read_in_part: Sequence[bool] = ()
    """(queries,) which of them are longer than what the model reads."""
