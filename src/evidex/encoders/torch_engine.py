"""The encoders as torch's modules: to be trained, and to run what ONNX Runtime cannot run or where it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from evidex.encoders.protocol import DualEncoder
from evidex.errors import ModelError


def build_encoder(spec: dict[str, Any]) -> DualEncoder:
    """Return the encoder that ``spec`` describes, its weights random."""
    if spec["kind"] == "towers":
        from evidex.encoders.towers import TowerEncoder

        return TowerEncoder(spec)
    if spec["kind"] == "clip":
        from evidex.encoders.clip.encoder import ClipEncoder

        return ClipEncoder.from_spec(spec)
    if spec["kind"] == "method":
        from evidex.methods.protocol import implementation

        return implementation(spec["method"]).rebuild(build_encoder(spec["base"]), spec["options"])
    from evidex.encoders.committee import CommitteeEncoder

    return CommitteeEncoder.from_spec(spec)


def torch_encoder(spec: dict[str, Any], weights: Mapping[str, Any]) -> DualEncoder:
    """The same with its ``weights``; ValueError where they are not those of the architecture."""
    # Compared before anything of the described size is made: a number may be wrong.
    with torch.device("meta"):
        expected = {name: tuple(value.shape) for name, value in build_encoder(spec).state_dict().items()}
    shapes = {name: tuple(value.shape) for name, value in weights.items()}
    wrong = [name for name in sorted({*expected, *shapes}) if expected.get(name) != shapes.get(name)]
    if wrong:
        raise ValueError(f"weights do not fit the architecture (first difference: '{wrong[0]}')")
    encoder = build_encoder(spec)
    state = encoder.state_dict()
    encoder.load_state_dict(
        {name: torch.from_numpy(np.array(value)).to(state[name].dtype) for name, value in weights.items()}
    )
    return encoder


def moved(encoder: DualEncoder, device: str) -> DualEncoder:
    """``encoder`` on ``device``; ModelError where there is no such device."""
    try:
        if torch.device(device).type == "meta":
            raise AssertionError("a device without memory")
        return encoder.to(device)
    except (RuntimeError, AssertionError, NotImplementedError):  # the middle one where torch was built without it
        raise ModelError(f"device '{device}' is not to be had here; use cpu, or leave it out") from None
