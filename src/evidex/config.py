"""One experiment as frozen dataclasses, read from one TOML file; unknown keys fail."""

from __future__ import annotations

import dataclasses
import math
import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from evidex.errors import ConfigError

Section = TypeVar("Section")


@dataclass(frozen=True)
class DataConfig:
    """Which pairs to learn from, and how they are varied."""

    path: str = ""  # folder with captions.json and images or tars; relative to the working directory
    train_split: str = "train"
    val_split: str = "val"
    augment: bool = True  # flips, quarter turns, small rotation and scale, colour gain and bias
    degrade: float = 0.0  # share of training images degraded by Eqs. 21–24: a variant of its own, off in ELC
    substitute: float = 0.0  # share of training captions varied by the lexicon; likewise
    captions_per_image: int = 1  # captions of an image that enter one step, each as a pairing of its own
    smallest_crop: float = 0.75  # of the picture's side, when pictures are varied
    erase: float = 0.0  # share of training images of which a rectangle is blanked
    mask_words: float = 0.0  # share of the caption's word pieces that are hidden


@dataclass(frozen=True)
class EncoderConfig:
    """Which two towers, and what they start from."""

    kind: Literal["compact", "towers", "clip"] = "compact"
    source: str = ""  # clip: hub name, folder or open_clip state dict; towers: folder with both towers' weights
    tokenizer: str = ""  # of an open_clip state dict, which comes without one: any CLIP's folder or hub name
    activation: Literal["quick_gelu", "gelu"] = "quick_gelu"  # of an open_clip state dict, whose weights do not show it
    image_tower: str = "convnet"
    text_tower: str = "words"
    image_size: int = 224
    dim: int = 512
    dropout: float = 0.0
    text_layers: int = 0  # how many layers of a pretrained text tower are kept; 0 = all
    pooling: Literal["mean", "mean_max", "cls", "cls_mean"] = "mean"  # of the last grid; CLIP's tower has a class token
    freeze_batch_norm: bool = False


@dataclass(frozen=True)
class MentorConfig:
    """Frozen encoders whose neighbourhoods the towers shall keep; empty = none in that modality."""

    image: str = ""
    text: str = ""
    center: bool = True  # subtract the mean feature: convolutional features share one large direction


@dataclass(frozen=True)
class LossConfig:
    """ELC with a switch for each row of Tables III/IV and each choice the paper leaves open."""

    objective: Literal["elc", "infonce", "vsepp", "poly"] = "elc"
    temperature: float = 0.1  # τ between modalities; 1 = exp(⟨v,t⟩) to the letter
    uncertainty_weighting: bool = True
    detach_weight: bool = True  # False = the weight 1 − u carries gradient, to the letter
    kl: bool = True
    kl_reduction: Literal["sum", "mean"] = "mean"  # "sum" = Eq. 7 to the letter
    b1: float = 40.0  # the KL's weight is epoch / b1
    ucl: bool = True
    ucl_target: Literal["vacuity", "belief"] = "vacuity"
    ucl_start_epoch: float = 0.0
    ucl_ramp_epochs: float = 0.0  # 0 with start 0 = UCL from the first step, to the letter
    b2: float = 1.0
    relation: bool = True
    relation_temperature: float = 1.0  # τ within a modality
    b3: float = 1.0
    mask_equal_captions: bool = True  # False = captions equal to the positive's are negatives, to the letter
    margin: float = 0.2  # of the triplet losses
    soft_targets: Literal["none", "captions", "mentors"] = "none"  # whose view of what else answers; off in ELC
    softness: float = 0.3  # share of the target that is the mentors' view
    soft_temperature: float = 0.1


@dataclass(frozen=True)
class TrainConfig:
    """How the weights move."""

    epochs: int = 40
    batch_size: int = 128  # K, over all processes
    chunk_size: int = 0  # pairs encoded at a time (feature caching); 0 = the whole batch
    learning_rate: float = 1e-6
    text_learning_rate: float = 0.0  # 0 = learning_rate
    head_learning_rate: float = 0.0  # of what starts from nothing; 0 = learning_rate
    layer_decay: float = 1.0  # each layer of a pretrained transformer learns at this share of the rate of the next
    weight_decay: float = 0.1
    warmup_steps: int = 0
    gradient_clip: float = 0.0  # largest gradient norm; 0 = none
    ema_decay: float = 0.0  # 0 = none; else the averaged weights are evaluated and kept
    whiten: float = 0.0  # 0 = none; else what is evaluated and kept has its heads centred and flattened by this power
    bf16: bool = False
    evaluate_every: int = 1  # epochs between evaluations on val
    checkpoint_every: int = 1  # epochs between checkpoints; a run that is killed repeats this many at most


@dataclass(frozen=True)
class Config:
    """One experiment."""

    seed: int = 0
    output: str = "runs/experiment"
    data: DataConfig = field(default_factory=DataConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    mentors: MentorConfig = field(default_factory=MentorConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


def load_config(path: Path, overrides: typing.Sequence[str] = ()) -> Config:
    """Read ``path``; ``overrides`` are ``section.key=value``, the value as in TOML (bare words are strings)."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"'{path}' does not exist; give the path of a TOML configuration") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"'{path}' is not readable as TOML: {error}") from None
    for override in overrides:
        _apply_override(table, override)
    config = parse(Config, table, str(path))
    check_ranges(config, str(path))
    return config


def check_ranges(config: Config, where: str) -> None:
    """Raise ConfigError for a number that cannot work, before any work is done."""
    positive = {
        "loss.temperature": config.loss.temperature,
        "loss.relation_temperature": config.loss.relation_temperature,
        "loss.b1": config.loss.b1,
        "data.captions_per_image": config.data.captions_per_image,
        "encoder.image_size": config.encoder.image_size,
        "encoder.dim": config.encoder.dim,
        "train.epochs": config.train.epochs,
        "train.learning_rate": config.train.learning_rate,
        "train.layer_decay": config.train.layer_decay,
        "train.evaluate_every": config.train.evaluate_every,
        "train.checkpoint_every": config.train.checkpoint_every,
        "loss.soft_temperature": config.loss.soft_temperature,
        "data.smallest_crop": config.data.smallest_crop,
    }
    not_negative = {
        "seed": config.seed,
        "loss.b2": config.loss.b2,
        "loss.b3": config.loss.b3,
        "loss.ucl_start_epoch": config.loss.ucl_start_epoch,
        "loss.ucl_ramp_epochs": config.loss.ucl_ramp_epochs,
        "train.chunk_size": config.train.chunk_size,
        "train.weight_decay": config.train.weight_decay,
        "train.warmup_steps": config.train.warmup_steps,
        "train.gradient_clip": config.train.gradient_clip,
        "train.text_learning_rate": config.train.text_learning_rate,
        "train.head_learning_rate": config.train.head_learning_rate,
        "loss.margin": config.loss.margin,
        "encoder.text_layers": config.encoder.text_layers,
    }
    shares = {
        "data.degrade": config.data.degrade,
        "data.substitute": config.data.substitute,
        "data.smallest_crop": config.data.smallest_crop,
        "data.erase": config.data.erase,
        "data.mask_words": config.data.mask_words,
        "loss.softness": config.loss.softness,
        "encoder.dropout": config.encoder.dropout,
        "train.ema_decay": config.train.ema_decay,
        "train.layer_decay": config.train.layer_decay,
        "train.whiten": config.train.whiten,
    }
    for key, value in positive.items():
        if not (value > 0 and math.isfinite(value)):
            raise ConfigError(f"{where}: {key} = {value}; give a number above 0")
    for key, value in not_negative.items():
        if not (value >= 0 and math.isfinite(value)):
            raise ConfigError(f"{where}: {key} = {value}; give 0 or more")
    for key, value in shares.items():
        if not 0 <= value <= 1:
            raise ConfigError(f"{where}: {key} = {value}; give a number from 0 to 1")
    if config.train.batch_size < 2:
        raise ConfigError(f"{where}: train.batch_size = {config.train.batch_size}; a batch needs two pairs at least")
    if config.train.whiten and config.encoder.kind == "clip":
        raise ConfigError(f"{where}: train.whiten = {config.train.whiten} changes the heads of towers; set 0 for clip")


def to_table(config: Any) -> dict[str, Any]:
    """Return ``config`` as plain tables, the inverse of ``parse``."""
    return dataclasses.asdict(config)


def parse(cls: type[Section], table: dict[str, Any], where: str) -> Section:
    """Build ``cls`` from ``table``; every key must exist there and have its type."""
    if not isinstance(table, dict):
        raise ConfigError(f"{where}: expected a table, found {table!r}")
    hints = typing.get_type_hints(cls)
    unknown = sorted(set(table) - set(hints))
    if unknown:
        raise ConfigError(f"{where}: unknown key '{unknown[0]}'; known are {', '.join(sorted(hints))}")
    return cls(**{key: _value(hints[key], value, f"{where}: {key}") for key, value in table.items()})


def _value(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return parse(typing.cast(type, hint), value, where)
    origin = typing.get_origin(hint)
    if origin is Literal:
        if value not in typing.get_args(hint):
            raise ConfigError(f"{where} = {value!r}; choose one of {', '.join(map(repr, typing.get_args(hint)))}")
        return value
    if origin in (tuple, types.GenericAlias):
        (inner, *_) = typing.get_args(hint)
        if not isinstance(value, list):
            raise ConfigError(f"{where} = {value!r}; expected a list")
        return tuple(_value(inner, item, where) for item in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise ConfigError(f"{where} = {value!r}; expected {hint.__name__}")
    return value


def _apply_override(table: dict[str, Any], override: str) -> None:
    name, separator, text = override.partition("=")
    if not separator:
        raise ConfigError(f"'{override}' is no override; write section.key=value")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *sections, key = name.strip().split(".")
    for section in sections:
        table = table.setdefault(section, {})
    table[key] = value
