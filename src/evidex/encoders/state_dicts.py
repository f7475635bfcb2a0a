"""Foreign weight files: read without pickle, every tensor accounted for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch

from evidex.documents import is_file
from evidex.errors import ModelError
from evidex.weights.torchscript import is_torchscript, read_torchscript

_NAMED_IN_MESSAGE = 4
_NO_WEIGHT = ".attn_mask"  # a constant that OpenAI's modules hold as an attribute


def read_state_dict(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of a ``.safetensors`` file, of a ``.pt``/``.pth``/``.bin`` file or of a TorchScript archive.

    A training checkpoint is opened at its ``state_dict``; the ``module.`` prefix of a wrapped model is removed.
    """
    if not is_file(path):
        raise ModelError(f"'{path}' is not a file; give a .safetensors or .pt file with a state dict")
    loaded = _read(path)
    if isinstance(loaded, Mapping) and isinstance(loaded.get("state_dict"), Mapping):
        loaded = loaded["state_dict"]
    if not isinstance(loaded, Mapping) or not loaded:
        raise ModelError(f"'{path}' holds no state dict; save the model's state_dict() and give that file")
    state: dict[str, torch.Tensor] = {}
    for key, value in loaded.items():
        if not isinstance(key, str) or not isinstance(value, torch.Tensor):
            raise ModelError(f"'{path}' holds {key!r}, which is not a tensor; save the model's state_dict() alone")
        state[key] = value
    if all(key.startswith("module.") for key in state):
        state = {key.removeprefix("module."): value for key, value in state.items()}
    return state


def _read(path: Path) -> object:
    import pickle

    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        if is_torchscript(path):
            found = {name: torch.from_numpy(numbers) for name, numbers in read_torchscript(path).items()}
            return {name: tensor for name, tensor in found.items() if not name.endswith(_NO_WEIGHT)}
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, ValueError, RuntimeError, SafetensorError, pickle.UnpicklingError) as error:
        raise ModelError(
            f"'{path}' cannot be read as plain tensors ({type(error).__name__}); "
            "save the model's state_dict() as .safetensors and give that file"
        ) from error


def check_state_dict(
    state: Mapping[str, torch.Tensor],
    expected: Mapping[str, tuple[int, ...]],
    *,
    source: str,
    optional: Iterable[str] = (),
) -> None:
    """Raise a ModelError that names what is unknown, missing or of another shape in ``state``."""
    allowed = set(optional)
    unknown = [key for key in state if key not in expected and key not in allowed]
    missing = [key for key in expected if key not in state]
    misshaped = [
        f"{key} {tuple(state[key].shape)} instead of {shape}"
        for key, shape in expected.items()
        if key in state and tuple(state[key].shape) != shape
    ]
    found = {"unknown": unknown, "missing": missing, "mis-shaped": misshaped}
    problems = "; ".join(f"{name}: {_some(keys)}" for name, keys in found.items() if keys)
    if problems:
        raise ModelError(f"{source} does not fit the architecture: {problems}; give weights of this architecture")


def _some(keys: list[str]) -> str:
    shown = ", ".join(keys[:_NAMED_IN_MESSAGE])
    rest = len(keys) - _NAMED_IN_MESSAGE
    return shown if rest <= 0 else f"{shown} and {rest} more"


def fingerprint(state: Mapping[str, torch.Tensor], *facts: str) -> str:
    """Return a hex digest of all tensors (names, types, shapes, bytes) and of ``facts``, in their order."""
    digest = hashlib.sha256()
    for fact in facts:
        encoded = fact.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    for key in sorted(state):
        tensor = state[key].detach().cpu().contiguous()
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
