"""CLIP weights in OpenAI's and open_clip's naming (RemoteCLIP, GeoRSCLIP) onto transformers' CLIPModel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import torch

from evidex.encoders.clip.architecture import ClipArchitecture
from evidex.encoders.state_dicts import check_state_dict
from evidex.errors import ModelError
from evidex.weights.openai_names import BLOCK, PROJECTIONS

Activation = Literal["quick_gelu", "gelu"]

# A buffer that open_clip once saved, and three numbers in OpenAI's own files; the shapes of the weights say the same.
_IGNORED = ("attn_mask", "input_resolution", "context_length", "vocab_size")
_LAYER_NORM_EPS = 1e-5


def infer_architecture(
    state: Mapping[str, torch.Tensor], *, activation: Activation, head_width: int = 64
) -> ClipArchitecture:
    """Read all sizes off the shapes. The activation leaves no trace in the weights, so the caller has to know it.

    OpenAI's weights and models trained on from them use ``quick_gelu``; open_clip's plain ``ViT-B-32`` is ``gelu``.
    """
    if activation not in get_args(Activation):
        raise ModelError(f"activation {activation!r} is unknown; choose one of {', '.join(get_args(Activation))}")
    if "visual.layer1.0.conv1.weight" in state:
        raise ModelError("the image tower is a ResNet (visual.layer1.0.conv1.weight); give a CLIP with a ViT")
    image_width, channels, patch_height, patch_width = _shape(state, "visual.conv1.weight", 4)
    positions, _ = _shape(state, "visual.positional_embedding", 2)
    vocabulary, text_width = _shape(state, "token_embedding.weight", 2)
    context, _ = _shape(state, "positional_embedding", 2)
    _, dim = _shape(state, "visual.proj", 2)
    image_hidden, _ = _shape(state, "visual.transformer.resblocks.0.mlp.c_fc.weight", 2)
    text_hidden, _ = _shape(state, "transformer.resblocks.0.mlp.c_fc.weight", 2)
    grid = round((positions - 1) ** 0.5)
    if channels != 3 or patch_height != patch_width or grid * grid != positions - 1:
        raise ModelError(
            f"{channels} channels, patches of {patch_height}×{patch_width} and {positions} positions "
            "(visual.conv1.weight, visual.positional_embedding) are no square RGB image; give a CLIP with a ViT"
        )
    for name, width in (("image", image_width), ("text", text_width)):
        if head_width < 1 or width % head_width:
            raise ModelError(f"the {name} tower's width {width} is no multiple of head_width {head_width}; set it")
    return ClipArchitecture(
        dim=dim,
        activation=activation,
        layer_norm_eps=_LAYER_NORM_EPS,
        image_size=grid * patch_height,
        patch_size=patch_height,
        image_width=image_width,
        image_hidden=image_hidden,
        image_layers=_layers(state, "visual.transformer.resblocks."),
        image_heads=image_width // head_width,
        vocabulary=vocabulary,
        context=context,
        # The text feature is read at the highest token number of the row, which is the last of the vocabulary.
        end_token=vocabulary - 1,
        text_width=text_width,
        text_hidden=text_hidden,
        text_layers=_layers(state, "transformer.resblocks."),
        text_heads=text_width // head_width,
    )


def map_state_dict(
    state: Mapping[str, torch.Tensor], architecture: ClipArchitecture, *, source: str = "the state dict"
) -> dict[str, torch.Tensor]:
    """Return the weights under CLIPModel's names, in float32. Every key of ``state`` is used, or it is an error."""
    check_state_dict(state, expected_shapes(architecture), source=source, optional=_IGNORED)
    weights = {key: tensor.float() for key, tensor in state.items() if key not in _IGNORED}
    mapped = {
        "logit_scale": weights["logit_scale"],
        "visual_projection.weight": weights["visual.proj"].T,
        "text_projection.weight": weights["text_projection"].T,
        "vision_model.embeddings.class_embedding": weights["visual.class_embedding"],
        "vision_model.embeddings.patch_embedding.weight": weights["visual.conv1.weight"],
        "vision_model.embeddings.position_embedding.weight": weights["visual.positional_embedding"],
        "text_model.embeddings.token_embedding.weight": weights["token_embedding.weight"],
        "text_model.embeddings.position_embedding.weight": weights["positional_embedding"],
    }
    norms = {
        "vision_model.pre_layrnorm": "visual.ln_pre",
        "vision_model.post_layernorm": "visual.ln_post",
        "text_model.final_layer_norm": "ln_final",
    }
    for target, origin in norms.items():
        mapped |= {f"{target}.{part}": weights[f"{origin}.{part}"] for part in ("weight", "bias")}
    for layer in range(architecture.image_layers):
        mapped |= _block(weights, f"visual.transformer.resblocks.{layer}", f"vision_model.encoder.layers.{layer}")
    for layer in range(architecture.text_layers):
        mapped |= _block(weights, f"transformer.resblocks.{layer}", f"text_model.encoder.layers.{layer}")
    return {key: tensor.contiguous() for key, tensor in mapped.items()}


def _block(weights: Mapping[str, torch.Tensor], origin: str, target: str) -> dict[str, torch.Tensor]:
    mapped = {}
    for part in ("weight", "bias"):
        for old, new in BLOCK.items():
            mapped[f"{target}.{new}.{part}"] = weights[f"{origin}.{old}.{part}"]
        joined = weights[f"{origin}.attn.in_proj_{part}"].chunk(len(PROJECTIONS))
        mapped |= {f"{target}.{new}.{part}": value for new, value in zip(PROJECTIONS, joined, strict=True)}
    return mapped


def expected_shapes(architecture: ClipArchitecture) -> dict[str, tuple[int, ...]]:
    """Return every key that a state dict of this architecture holds, with its shape."""
    a = architecture
    positions = (a.image_size // a.patch_size) ** 2 + 1
    shapes: dict[str, tuple[int, ...]] = {
        "logit_scale": (),
        "visual.class_embedding": (a.image_width,),
        "visual.positional_embedding": (positions, a.image_width),
        "visual.conv1.weight": (a.image_width, 3, a.patch_size, a.patch_size),
        "visual.proj": (a.image_width, a.dim),
        "token_embedding.weight": (a.vocabulary, a.text_width),
        "positional_embedding": (a.context, a.text_width),
        "text_projection": (a.text_width, a.dim),
    }
    norms = {"visual.ln_pre": a.image_width, "visual.ln_post": a.image_width, "ln_final": a.text_width}
    shapes |= {f"{name}.{part}": (width,) for name, width in norms.items() for part in ("weight", "bias")}
    towers = (
        ("visual.transformer.resblocks", a.image_layers, a.image_width, a.image_hidden),
        ("transformer.resblocks", a.text_layers, a.text_width, a.text_hidden),
    )
    for prefix, layers, width, hidden in towers:
        for layer in range(layers):
            shapes |= {f"{prefix}.{layer}.{key}": shape for key, shape in _block_shapes(width, hidden).items()}
    return shapes


def _block_shapes(width: int, hidden: int) -> dict[str, tuple[int, ...]]:
    return {
        "attn.in_proj_weight": (3 * width, width),
        "attn.in_proj_bias": (3 * width,),
        "attn.out_proj.weight": (width, width),
        "attn.out_proj.bias": (width,),
        "ln_1.weight": (width,),
        "ln_1.bias": (width,),
        "ln_2.weight": (width,),
        "ln_2.bias": (width,),
        "mlp.c_fc.weight": (hidden, width),
        "mlp.c_fc.bias": (hidden,),
        "mlp.c_proj.weight": (width, hidden),
        "mlp.c_proj.bias": (width,),
    }


def _shape(state: Mapping[str, torch.Tensor], key: str, dimensions: int) -> tuple[int, ...]:
    if key not in state:
        raise ModelError(f"{key} is missing; give the whole state dict of a CLIP with a ViT (open_clip's naming)")
    shape = tuple(state[key].shape)
    if len(shape) != dimensions:
        raise ModelError(f"{key} has shape {shape} instead of {dimensions} dimensions; give a CLIP with a ViT")
    return shape


def _layers(state: Mapping[str, torch.Tensor], prefix: str) -> int:
    """Count the blocks by the highest number, so that a hole among them is reported as missing keys."""
    numbers = {key.removeprefix(prefix).split(".", 1)[0] for key in state if key.startswith(prefix)}
    return 1 + max((int(number) for number in numbers if number.isdecimal()), default=0)
