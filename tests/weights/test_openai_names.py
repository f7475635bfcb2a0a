"""OpenAI's image tower under transformers' names: the same as what the whole CLIP is read as."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from evidex.encoders.clip.open_clip_weights import expected_shapes, infer_architecture, map_state_dict
from evidex.errors import ModelError
from evidex.weights.bases import BASES
from evidex.weights.openai_names import image_tower


@pytest.fixture(scope="module")
def state() -> dict[str, torch.Tensor]:
    """A CLIP of two layers in OpenAI's names."""
    generator = torch.Generator().manual_seed(0)
    first = {"visual.conv1.weight": (64, 3, 8, 8), "visual.positional_embedding": (5, 64), "visual.proj": (64, 16)}
    first |= {"token_embedding.weight": (50, 64), "positional_embedding": (7, 64)}
    first |= {f"{tower}transformer.resblocks.{layer}.mlp.c_fc.weight": (128, 64)
              for tower in ("visual.", "") for layer in range(2)}  # fmt: skip
    architecture = infer_architecture({name: torch.zeros(shape) for name, shape in first.items()}, activation="gelu")
    return {name: torch.randn(shape, generator=generator) for name, shape in expected_shapes(architecture).items()}


def test_every_weight_of_the_tower_gets_the_name_it_has_in_the_whole_model(state: dict[str, torch.Tensor]) -> None:
    mapped = map_state_dict(state, infer_architecture(state, activation="gelu"))
    expected = {
        name.removeprefix("vision_model."): value.numpy()
        for name, value in mapped.items()
        if name.startswith(("vision_model.", "visual_projection."))
    }
    found = image_tower(
        {name.removeprefix("visual."): value.numpy() for name, value in state.items() if name.startswith("visual.")}
    )
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


def test_openais_archive_is_read_as_that_tower(state: dict[str, torch.Tensor], tmp_path: Path) -> None:
    root = nn.Module()
    for name, value in state.items():
        *path, last = name.split(".")
        module = root
        for part in path:
            if not hasattr(module, part):
                module.add_module(part, nn.Module())
            module = getattr(module, part)
        module.register_parameter(last, nn.Parameter(value))
    torch.jit.script(root).save(str(tmp_path / "clip.pt"))
    found = BASES["clip_vit_b16"][1].read(tmp_path / "clip.pt")
    query = state["visual.transformer.resblocks.1.attn.in_proj_weight"][:64].numpy().astype(np.float16)
    np.testing.assert_array_equal(found["encoder.layers.1.self_attn.q_proj.weight"], query)
    assert {value.dtype for value in found.values()} == {np.dtype(np.float16)}


def test_another_archive_is_told(tmp_path: Path) -> None:
    root = nn.Module()
    root.add_module("visual", nn.Linear(2, 2))
    torch.jit.script(root).save(str(tmp_path / "other.pt"))
    with pytest.raises(ModelError, match=r"lacks visual\.class_embedding: it is another CLIP"):
        BASES["clip_vit_b16"][1].read(tmp_path / "other.pt")
