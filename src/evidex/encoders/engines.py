"""What runs a model here: ONNX Runtime, or torch where it must, and on which device."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from evidex.encoders.graphs.towers import KINDS
from evidex.errors import MissingPackageError, ModelError

EngineName = Literal["onnx", "torch"]


@dataclass(frozen=True)
class Chosen:
    """An engine and the device it runs on."""

    engine: EngineName
    device: str


def choose(kind: str, device: str | None, engine: EngineName | None = None) -> Chosen:
    """The engine for a model of this ``kind``: ONNX Runtime wherever it can, on a card of NVIDIA's where one is.

    ``device`` and ``engine`` are what was asked for, if anything. Torch is not imported where there is no card.
    """
    if engine != "torch" and kind in KINDS and _installed("onnxruntime"):
        from evidex.encoders.runtime import has_cuda

        carded = device == "cuda" or (device is None and has_card())
        if carded and has_cuda():
            return Chosen("onnx", "cuda")
        if engine == "onnx" and device == "cuda":
            raise ModelError("ONNX Runtime here cannot use a card; install onnxruntime-gpu, or leave the engine out")
        if device == "cpu" or engine == "onnx" or (device is None and not (carded and _torch_has_cuda())):
            return Chosen("onnx", "cpu")
    if engine == "onnx":
        raise ModelError(f"a model of kind '{kind}' runs with torch only; leave the engine out")
    if not _installed("torch"):
        what = f"device '{device}'" if engine is None and kind in KINDS else f"a model of kind '{kind}'"
        raise MissingPackageError(what, "torch")
    return Chosen("torch", device or ("cuda" if has_card() and _torch_has_cuda() else "cpu"))


def has_card() -> bool:
    """Whether a driver of NVIDIA's is here and names a card."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        count = ctypes.c_int(0)
        return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
    except (OSError, AttributeError):
        return False


def described() -> list[str]:
    """Lines that say what models run on here, and what else is installed for it."""
    from importlib.metadata import version

    from evidex.encoders.runtime import threads

    lines = []
    if _installed("onnxruntime"):
        found = choose("towers", None)
        name = f"ONNX Runtime {version('onnxruntime')}" if found.engine == "onnx" else f"torch {version('torch')}"
        lines.append(f"models run on {name}, {found.device.upper()}, {threads()} threads")
    installed = [f"{name} {version(name)}" for name in ("torch", "transformers") if _installed(name)]
    lines.append(f"training: {', '.join(installed) or 'not installed (evidex[train])'}")
    return lines


def _installed(package: str) -> bool:
    return find_spec(package) is not None


def _torch_has_cuda() -> bool:
    if not _installed("torch"):
        return False
    import torch

    return torch.cuda.is_available()
