"""ONNX Runtime: a graph as a session that runs it, with bounded memory and threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

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


class Session:
    """One tower, ready to run; it may be asked by several threads at once."""

    def __init__(self, graph: Graph, device: Device) -> None:
        import onnxruntime

        given = dict(graph.weights())
        # The runtime reads from these values for as long as it runs.
        self._values = [onnxruntime.OrtValue.ortvalue_from_numpy(values) for values in given.values()]
        options = _options()
        options.add_external_initializers(list(given), self._values)
        try:
            self._session = onnxruntime.InferenceSession(graph.to_bytes(), options, providers=_PROVIDERS[device])
        except _failures() as error:
            cause = str(error).strip().partition("\n")[0]
            raise ModelError(f"ONNX Runtime cannot load the model ({cause}); fetch or train it again") from None
        self._at_once = _AT_ONCE[device]
        self._callers = ThreadPoolExecutor(threads() if device == "cpu" else 1)

    def run(self, name: str, items: NDArray[Any]) -> Floats:
        """A row for each of ``items``, the graph's input ``name``."""
        parts = [items[start : start + self._at_once] for start in range(0, len(items), self._at_once)]
        if len(parts) == 1:
            return self._run(name, parts[0])
        # Each runs by itself, as many at once as there are cores: they need not wait for each other layer by layer.
        return np.concatenate(list(self._callers.map(lambda part: self._run(name, part), parts)))

    def _run(self, name: str, items: NDArray[Any]) -> Floats:
        rows: Floats = self._session.run(["rows"], {name: items})[0]
        return rows


def _options() -> onnxruntime.SessionOptions:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads()
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # it keeps the most that was ever needed; a server's memory stays flat
    options.log_severity_level = 3  # errors; they are raised, too
    # Threads that wait do so asleep: spinning ones take the cores from the scan, the decoders and each other.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _failures() -> tuple[type[Exception], ...]:
    """What ONNX Runtime raises; its errors have no common class."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    names = "EPFail Fail InvalidArgument InvalidGraph InvalidProtobuf NotImplemented RuntimeException"
    return tuple(getattr(state, name) for name in names.split())
