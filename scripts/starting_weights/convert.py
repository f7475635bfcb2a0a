"""From each project's own weight format to a flat PyTorch state dict."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import torch

from evidex.weights.downloads import member

StateDict = dict[str, torch.Tensor]

_STAGE_BLOCK = re.compile(r"(res|bn)(\d)([a-f])_branch(1|2[abc])$")
_BATCH_NORM = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}


def half(state: StateDict) -> StateDict:
    """Learned weights in float16; running statistics stay float32, for a variance may leave the range of float16."""
    return {
        name: value.contiguous() if "running_" in name else value.to(torch.float16).contiguous()
        for name, value in state.items()
        if not name.endswith("num_batches_tracked")
    }


def keras_resnet(archive: Path, folder: str) -> StateDict:
    """A Keras ResNet (version 1) in TensorFlow.js layers format, under torchvision's names, without the classifier.

    Keras gives its convolutions a bias. The batch norm behind subtracts its mean, so the bias moves there:
    norm(x + b; mean) = norm(x; mean - b).
    """
    tensors = _tensorflow_js(archive, folder)
    state: StateDict = {}
    for name, values in tensors.items():
        layer, kind = name.rsplit("/", 1)
        target = _torchvision_name(layer)
        if target is None:
            continue
        if kind == "kernel":
            state[f"{target}.weight"] = torch.from_numpy(values.transpose(3, 2, 0, 1).copy())
        elif kind == "bias":
            state[f"{target}.bias"] = torch.from_numpy(values.copy())
        else:
            state[f"{target}.{_BATCH_NORM[kind]}"] = torch.from_numpy(values.copy())
    for name in [key for key in state if key.endswith(".bias") and _is_convolution(key)]:
        bias = state.pop(name)
        state[f"{_norm_behind(name.removesuffix('.bias'))}.running_mean"] -= bias
    return state


def torch_pickle(archive: Path, path: str) -> StateDict:
    """A checkpoint of plain tensors, read without running any pickled code."""
    loaded: StateDict = torch.load(io.BytesIO(member(archive, path)), map_location="cpu", weights_only=True)
    return loaded


def numpy_archive(archive: Path, path: str) -> StateDict:
    """The floating-point arrays of an ``.npz`` file."""
    arrays = np.load(io.BytesIO(member(archive, path)), allow_pickle=False)
    return {name: torch.from_numpy(arrays[name]) for name in arrays.files if arrays[name].dtype == np.float32}


def _tensorflow_js(archive: Path, folder: str) -> dict[str, np.ndarray]:
    model = json.loads(member(archive, f"{folder}/model.json"))
    tensors: dict[str, np.ndarray] = {}
    for group in model["weightsManifest"]:
        content = b"".join(member(archive, f"{folder}/{path}") for path in group["paths"])
        offset = 0
        for weight in group["weights"]:
            count = int(np.prod(weight["shape"]))
            values = np.frombuffer(content, dtype=np.float32, count=count, offset=offset)
            tensors[weight["name"]] = values.reshape(weight["shape"])
            offset += 4 * count
    return tensors


def _torchvision_name(layer: str) -> str | None:
    """Torchvision's name for a Keras layer; the classifier has none, for no encoder needs it."""
    if layer in {"conv1", "bn_conv1"}:
        return {"conv1": "conv1", "bn_conv1": "bn1"}[layer]
    match = _STAGE_BLOCK.match(layer)
    if match is None:
        return None
    kind, stage, block, branch = match.groups()
    prefix = f"layer{int(stage) - 1}.{ord(block) - ord('a')}"
    if branch == "1":
        return f"{prefix}.downsample.{0 if kind == 'res' else 1}"
    return f"{prefix}.{'conv' if kind == 'res' else 'bn'}{'abc'.index(branch[1]) + 1}"


def _is_convolution(key: str) -> bool:
    module = key.removesuffix(".bias")
    return module.rsplit(".", 1)[-1].startswith("conv") or module.endswith("downsample.0")


def _norm_behind(convolution: str) -> str:
    if convolution.endswith("downsample.0"):
        return convolution.removesuffix("0") + "1"
    head, _, last = convolution.rpartition(".")
    return f"{head}.{last.replace('conv', 'bn')}" if head else last.replace("conv", "bn")
