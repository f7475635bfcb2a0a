"""A text tower rounded to bytes for the texts it reads: what rounding one weight spoils, the next ones make good.

Columns are rounded one after the other, and the error of each is passed on to those that are still to come, as far as
they go along with it in what the layer is given (Frantar et al., "GPTQ", 2022).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from evidex.encoders.rounding import LARGEST, RoundedTensor, rounded
from evidex.encoders.towers import TowerEncoder

_TEXTS = 3000
_DAMPING = 0.01
"""Added to the squares of what a layer is given, as a share of their mean: directions that hardly occur count, too."""


def text_rounded_for(encoder: TowerEncoder, texts: Sequence[str]) -> dict[str, RoundedTensor]:
    """The matrices of the text tower's layers by their names in a model file, fitted to a sample of ``texts``."""
    distinct = sorted(set(texts))
    chosen = np.random.default_rng(0).permutation(len(distinct))[:_TEXTS]
    given = _given(encoder, [distinct[index] for index in chosen])
    weights = encoder.weights()
    return {f"{name}.weight": fitted(np.asarray(weights[f"{name}.weight"]), squares) for name, squares in given.items()}


def fitted(weight: NDArray[Any], squares: NDArray[np.float64]) -> RoundedTensor:
    """``weight`` (rows, columns) in bytes for inputs x that have the ``squares`` Σ x xᵀ."""
    scales = rounded(weight).scales
    left, steps = weight.astype(np.float64), scales.astype(np.float64)
    mean = max(float(np.trace(squares)) / len(squares), np.finfo(np.float64).tiny)
    passed = np.linalg.cholesky(np.linalg.inv(squares / mean + _DAMPING * np.eye(len(squares)))).T
    whole = np.empty(weight.shape, np.int8)
    for column in range(weight.shape[1]):
        nearest = np.clip(np.rint(left[:, column] / steps), -LARGEST, LARGEST)
        whole[:, column] = nearest
        error = (left[:, column] - nearest * steps) / passed[column, column]
        left[:, column + 1 :] -= np.outer(error, passed[column, column + 1 :])
    return RoundedTensor(whole, scales)


@torch.inference_mode()
def _given(encoder: TowerEncoder, texts: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Σ x xᵀ over what each dense layer of the text tower is given for ``texts``."""
    found: dict[str, Any] = {}

    def noted(name: str) -> Any:
        def note(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            rows = inputs[0].flatten(0, -2)
            found[name] = found.get(name, 0) + (rows.T @ rows).double()

        return note

    layers = {
        f"text_tower.{name}": each for name, each in encoder.text_tower.named_modules() if type(each) is nn.Linear
    }
    handles = [each.register_forward_pre_hook(noted(name)) for name, each in layers.items()]
    alike = defaultdict(list)
    for text in texts:
        alike[len(encoder.tokenizer.encode(text))].append(text)
    for group in alike.values():  # texts of one length: what pads the others is nothing that a layer is asked
        encoder.embed_texts(group)
    for handle in handles:
        handle.remove()
    return {name: squares.cpu().numpy() for name, squares in found.items()}
