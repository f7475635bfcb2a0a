"""The encoder before training, and whether the batch can be computed as the configuration asks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import nn

from evidex.config import Config
from evidex.encoders.protocol import DualEncoder
from evidex.encoders.towers import TowerEncoder, from_pretrained_towers, new_compact
from evidex.errors import ConfigError
from evidex.methods.protocol import implementation
from evidex.training.distributed import World


def build_start(config: Config, texts: list[str], captions: Sequence[Sequence[str]] = ()) -> DualEncoder:
    """Return the encoder that ``config`` names, with what its method adds, as it is before training with ``texts``.

    ``captions`` are those of each picture.
    """
    return implementation(config.method_name).wrap(_plain(config, texts), captions)


def _plain(config: Config, texts: list[str]) -> DualEncoder:
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
    encoder.freeze_batch_norm = config.encoder.freeze_batch_norm
    return encoder


def check_batch(config: Config, world: World) -> None:
    """Refuse a batch that does not divide, or whose parts would give batch norm other statistics than the whole."""
    size, chunk = config.train.batch_size, config.train.chunk_size
    if size % world.size:
        raise ConfigError(f"train.batch_size = {size} does not divide over {world.size} processes; choose a multiple")
    split = world.size > 1 or 0 < chunk < size
    if split and config.encoder.kind != "clip" and not config.encoder.freeze_batch_norm:
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
