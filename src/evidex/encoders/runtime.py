"""ONNX Runtime: a graph as a session that runs it, with bounded memory and threads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from evidex.encoders.graphs.exact_bytes import trial
from evidex.encoders.graphs.graph import Floats, Graph
from evidex.errors import ModelError

if TYPE_CHECKING:
    import onnxruntime

Device = Literal["cpu", "cuda"]
_CUDA = "CUDAExecutionProvider"
# Results must not depend on the card: float32 is computed in float32.
_PROVIDERS: dict[Device, list[Any]] = {"cpu": ["CPUExecutionProvider"], "cuda": [(_CUDA, {"use_tf32": "0"})]}
_AT_ONCE: dict[Device, int] = {"cpu": 1, "cuda": 64}
"""Items of a run. On a CPU one stays in the cache where several do not, and its row depends on nothing beside it."""


_SAME = 1e-6


def threads() -> int:
    """How many threads compute: what OMP_NUM_THREADS says, or the cores that this process may use."""
    try:
        return max(1, int(os.environ["OMP_NUM_THREADS"]))
    except (KeyError, ValueError):
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_cuda() -> bool:
    """Whether the ONNX Runtime that is installed can use an NVIDIA card."""
    import onnxruntime

    return _CUDA in onnxruntime.get_available_providers()


@cache
def exact_in_bytes() -> bool:
    """Whether this processor multiplies bytes as graphs/exact_bytes.py needs it."""
    graph, values, expected = trial()
    found = _rows(Session(graph, "cpu")._session(1), "values", values)
    return bool(np.abs(found - expected).max() < _SAME)


class Session:
    """One tower, ready to run; it may be asked by several threads at once.

    On a CPU a single item has all cores, and several have one each: they need not wait for each other layer by layer.
    ``small`` items have one core in any case: threads that wake for each layer take longer than they save. The bits of
    a row are the same either way. What runs one and what runs several is made when it is first needed.
    """

    def __init__(self, graph: Graph, device: Device, *, small: bool = False) -> None:
        self._graph, self._device, self._small = graph, device, small
        self._at_once = _AT_ONCE[device]
        self._callers = ThreadPoolExecutor(threads() if device == "cpu" else 1)
        self._making = Lock()
        self._made: dict[int, onnxruntime.InferenceSession] = {}

    def run(self, name: str, groups: Sequence[NDArray[Any]]) -> Floats:
        """A row for each item of the graph's input ``name``; a group holds items of one shape."""
        size = self._at_once
        if len(groups) == 1 and len(groups[0]) <= size:
            return _rows(self._session(1 if self._small else threads()), name, groups[0])
        parts = [group[start : start + size] for group in groups for start in range(0, len(group), size)]
        session = self._session(threads() if self._device == "cuda" else 1)
        return np.concatenate(list(self._callers.map(lambda part: _rows(session, name, part), parts)))

    def _session(self, cores: int) -> onnxruntime.InferenceSession:
        with self._making:
            if cores not in self._made:
                self._made[cores] = self._loaded(cores)
            return self._made[cores]

    def _loaded(self, cores: int) -> onnxruntime.InferenceSession:
        import onnxruntime

        options = _options(cores)
        given = dict(self._graph.weights())
        # The runtime copies them as it loads, which is why pyproject.toml bounds its version; nobody holds them twice.
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(each) for each in given.values()]
        options.add_external_initializers(list(given), values)
        try:
            return onnxruntime.InferenceSession(self._graph.to_bytes(), options, providers=_PROVIDERS[self._device])
        except _failures() as error:
            cause = str(error).strip().partition("\n")[0]
            raise ModelError(f"ONNX Runtime cannot load the model ({cause}); fetch or train it again") from None


def _rows(session: onnxruntime.InferenceSession, name: str, items: NDArray[Any]) -> Floats:
    rows: Floats = session.run(["rows"], {name: items})[0]
    return rows


def _options(cores: int) -> onnxruntime.SessionOptions:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = cores
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # it keeps the most that was ever needed; a server's memory stays flat
    options.log_severity_level = 3  # errors; they are raised, too
    # Threads that share an item wait for each other awake, a third faster, but only until it is done: after that they
    # would take the cores from the scan, the decoders and each other.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return options


def _failures() -> tuple[type[Exception], ...]:
    """What ONNX Runtime raises; its errors have no common class."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    names = "EPFail Fail InvalidArgument InvalidGraph InvalidProtobuf NotImplemented RuntimeException"
    return tuple(getattr(state, name) for name in names.split())
