"""The encoder before training, and whether the batch can be computed as the configuration asks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from evidex.config import Config, EncoderConfig
from evidex.encoders.domain import Domain
from evidex.encoders.protocol import DualEncoder
from evidex.encoders.towers import TowerEncoder, from_pretrained_towers, new_compact
from evidex.errors import ConfigError
from evidex.methods.protocol import implementation
from evidex.training.distributed import World
from evidex.training.schedule import lock_images

_ASKED = 2048
"""Texts that tell which hidden units matter."""


def build_start(config: Config, texts: list[str], captions: Sequence[Sequence[str]] = ()) -> DualEncoder:
    """Return the encoder that ``config`` names, with what its method adds, as it is before training with ``texts``.

    ``captions`` are those of each picture.
    """
    encoder = implementation(config.method_name).wrap(_plain(config, texts), captions)
    if config.train.learns != "both":
        lock_images(encoder, head=config.train.learns == "texts")
    return encoder


def domain_before(config: Config) -> Domain | None:
    """What the model that is trained on was taught before; None where training starts from towers."""
    if config.encoder.kind != "model":
        return None
    from evidex.encoders.model import load_model

    return load_model(config.encoder.source or None, device="cpu").domain


def _plain(config: Config, texts: list[str]) -> DualEncoder:
    if config.encoder.kind == "model":
        return _of_model(config, texts)
    if config.encoder.kind == "clip":
        from evidex.encoders.clip.encoder import ClipEncoder

        settings = config.encoder
        if Path(settings.source).suffix in (".pt", ".bin", ".safetensors"):
            return ClipEncoder.from_open_clip(
                settings.source, tokenizer=settings.tokenizer, activation=settings.activation
            )
        return ClipEncoder.from_pretrained(settings.source)
    encoder: TowerEncoder = (
        from_pretrained_towers(config.encoder)
        if config.encoder.kind == "towers"
        else new_compact(config.encoder, texts)
    )
    encoder.freeze_batch_norm = _freezes(config)
    return encoder


def _freezes(config: Config) -> bool:
    """Whether batch norms keep their statistics: where the pictures' tower is locked, these are a part of it."""
    return config.encoder.freeze_batch_norm or config.train.learns != "both"


def _of_model(config: Config, texts: Sequence[str]) -> DualEncoder:
    """The encoder of a model that was trained before, with the dropout that is asked for now."""
    from evidex.encoders.model import load_model
    from evidex.encoders.torch_engine import torch_encoder

    settings = config.encoder
    encoder = load_model(settings.source or None, device="cpu").encoder
    spec = encoder.spec()
    if spec["kind"] not in ("towers", "clip"):
        raise ConfigError(f"encoder.source = '{settings.source}' is a {spec['kind']}; name a model of two plain towers")
    if settings.image_size not in (encoder.image_size, EncoderConfig.image_size):
        raise ConfigError(
            f"encoder.image_size = {settings.image_size}, but '{settings.source}' looks at pictures of "
            f"{encoder.image_size} pixels; set that"
        )
    if encoder.dim != settings.dim:
        raise ConfigError(f"encoder.dim = {settings.dim}, but '{settings.source}' has {encoder.dim}; set that")
    if spec["kind"] == "towers":
        spec = {**spec, "dropout": settings.dropout}
    elif (learns := config.train.learns) != "both":
        raise ConfigError(
            f"train.learns = \"{learns}\": '{settings.source}' is a CLIP; name a model of two plain towers"
        )
    weights = encoder.weights()
    if settings.text_layers:
        spec, weights = _with_fewer_layers(spec, weights, settings)
    started = torch_encoder(spec, weights)
    if settings.text_hidden:
        started = _with_fewer_hidden(started, settings, texts)
    if isinstance(started, TowerEncoder):
        started.freeze_batch_norm = _freezes(config)
    return started


def _with_fewer_layers(
    spec: dict[str, Any], weights: Mapping[str, Any], settings: EncoderConfig
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same with the first ``settings.text_layers`` layers of the text tower alone."""
    kept, there = settings.text_layers, spec["text_shape"]["layers"] if spec["kind"] == "towers" else 0
    if kept > there:
        has = f"has {there} layers of text" if there else "has no text tower whose layers could be left out"
        raise ConfigError(f"encoder.text_layers = {kept}, but '{settings.source}' {has}; set it to {there}")
    layer = re.compile(r"text_tower\.encoder\.layer\.(\d+)\.")
    first = {name: each for name, each in weights.items() if not ((at := layer.match(name)) and int(at[1]) >= kept)}
    return {**spec, "text_shape": {**spec["text_shape"], "layers": kept}}, first


def _with_fewer_hidden(encoder: DualEncoder, settings: EncoderConfig, texts: Sequence[str]) -> DualEncoder:
    """The same with ``settings.text_hidden`` hidden units in each layer of the text tower, chosen by ``texts``."""
    from evidex.encoders.pruning import with_fewer_hidden

    there = encoder.spec()["text_shape"]["intermediate"] if isinstance(encoder, TowerEncoder) else 0
    if not isinstance(encoder, TowerEncoder) or settings.text_hidden > there:
        raise ConfigError(
            f"encoder.text_hidden = {settings.text_hidden}, but '{settings.source}' has {there} such units; set it to 0"
        )
    distinct = sorted(set(texts))
    return with_fewer_hidden(encoder, settings.text_hidden, encoder.tokenize(distinct[:: -(-len(distinct) // _ASKED)]))


def check_batch(config: Config, world: World) -> None:
    """Refuse a batch that does not divide, or whose parts would give batch norm other statistics than the whole."""
    size, chunk = config.train.batch_size, config.train.chunk_size
    if size % world.size:
        raise ConfigError(f"train.batch_size = {size} does not divide over {world.size} processes; choose a multiple")
    split = world.size > 1 or 0 < chunk < size
    if split and config.encoder.kind != "clip" and not _freezes(config):
        raise ConfigError(
            "a batch in chunks or processes gives batch norm other statistics; set encoder.freeze_batch_norm = true"
        )


def compile_layers(encoder: DualEncoder) -> None:
    """Compile each layer of the transformers inside ``encoder``, in place; they are alike: one compilation serves all.

    The names of the weights stay as they are.
    """
    for module in encoder.modules():
        layers = getattr(module, "layers", None)
        if isinstance(layers, nn.ModuleList):
            for layer in layers:
                layer.compile(dynamic=False)
