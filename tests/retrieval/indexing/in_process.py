"""An index run without other processes and without arithmetic, so that many can be tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.encoders.model import Model
from evidex.retrieval.indexing import decode_worker
from evidex.retrieval.indexing.decode_worker import Content, DecodeTask, Message, WorkerSettings


class Pool:
    """Stands for the decoding processes: three files open at once, whose messages come in any order."""

    between: Callable[[], object] = staticmethod(lambda: None)
    """Called between any two messages."""

    def __init__(
        self, tasks: Iterable[DecodeTask], settings: WorkerSettings, *, wanted: Callable[[Content], bool], **_: object
    ) -> None:
        self._tasks = list(tasks)
        self._settings = settings
        self._wanted = wanted
        self._rng = np.random.default_rng(len(self._tasks))

    def __enter__(self) -> Pool:
        # Each in a thread of its own: GDAL keeps its settings by thread.
        self._lanes = [ThreadPoolExecutor(1) for _ in range(3)]
        self._opened: dict[int, Iterator[Message]] = {}
        return self

    def __exit__(self, *_: object) -> None:
        for number, messages in self._opened.items():
            self._lanes[number].submit(messages.close).result()  # type: ignore[attr-defined]
        for lane in self._lanes:
            lane.shutdown()

    def __iter__(self) -> Iterator[Message]:
        opened = self._opened
        while self._tasks or opened:
            for number in set(range(3)) - opened.keys():
                if self._tasks:
                    asking: Any = _Asking(self._wanted)
                    opened[number] = decode_worker._messages(self._tasks.pop(0), self._settings, asking)
            number = int(self._rng.choice(list(opened)))
            message = self._lanes[number].submit(next, opened[number], None).result()
            Pool.between()
            if message is None:
                del opened[number]
            else:
                yield message


class _Asking:
    def __init__(self, wanted: Callable[[Content], bool]) -> None:
        self._wanted = wanted
        self._answer = True

    def send(self, content: Content) -> None:
        self._answer = self._wanted(content)
        Pool.between()

    def recv(self) -> bool:
        return self._answer


def quickly_encoded(model: Model, pixels: NDArray[np.uint8], **_: object) -> NDArray[np.float32]:
    """Vectors that differ as the pictures do, without the arithmetic."""
    coarse = pixels.reshape(len(pixels), -1)[:, :: pixels[0].size // model.dim][:, : model.dim] + np.float32(1)
    return coarse / np.linalg.norm(coarse, axis=1, keepdims=True)  # type: ignore[no-any-return]
