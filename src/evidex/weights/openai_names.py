"""OpenAI's and open_clip's names of CLIP's weights, and transformers' for the same."""

from __future__ import annotations

import numpy as np

# Within a layer; the three projections of the attention stand in one matrix besides.
BLOCK = {
    "attn.out_proj": "self_attn.out_proj",
    "ln_1": "layer_norm1",
    "ln_2": "layer_norm2",
    "mlp.c_fc": "mlp.fc1",
    "mlp.c_proj": "mlp.fc2",
}
PROJECTIONS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
_NORMS = {"ln_pre": "pre_layrnorm", "ln_post": "post_layernorm"}
_EMBEDDINGS = {
    "class_embedding": "class_embedding",
    "conv1.weight": "patch_embedding.weight",
    "positional_embedding": "position_embedding.weight",
}
_PARTS = ("weight", "bias")


def image_tower(visual: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the image tower that OpenAI names ``visual.…`` under transformers' names without ``vision_model``.

    KeyError where a weight is missing.
    """
    mapped = {f"embeddings.{new}": visual[old] for old, new in _EMBEDDINGS.items()}
    mapped["visual_projection.weight"] = visual["proj"].T
    mapped |= {f"{new}.{part}": visual[f"{old}.{part}"] for old, new in _NORMS.items() for part in _PARTS}
    layers = {int(name.split(".")[2]) for name in visual if name.startswith("transformer.resblocks.")}
    for layer in sorted(layers):
        old_block, new_block = f"transformer.resblocks.{layer}", f"encoder.layers.{layer}"
        for part in _PARTS:
            for old, new in BLOCK.items():
                mapped[f"{new_block}.{new}.{part}"] = visual[f"{old_block}.{old}.{part}"]
            joined = np.split(visual[f"{old_block}.attn.in_proj_{part}"], len(PROJECTIONS))
            mapped |= {f"{new_block}.{new}.{part}": value for new, value in zip(PROJECTIONS, joined, strict=True)}
    return mapped
