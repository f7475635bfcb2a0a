"""One experiment as frozen dataclasses, read from one TOML file; unknown keys fail."""

from __future__ import annotations

import functools
import reprlib
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from evidex.checked import (
    MOST,
    Checked,
    Count,
    CountOrZero,
    Name,
    NameOrEmpty,
    NotNegative,
    Positive,
    PositiveShare,
    Range,
    Seed,
    Share,
    parse,
)
from evidex.documents import parse_toml, read_toml
from evidex.errors import ConfigError

__all__ = [
    "Config",
    "DataConfig",
    "EncoderConfig",
    "LossConfig",
    "MentorConfig",
    "MethodConfig",
    "SourceConfig",
    "TrainConfig",
    "load_config",
]

Side = Annotated[int, Range(1, 4096, "1 to 4096 pixels")]
Dim = Annotated[int, Range(1, 1 << 16, f"1 to {1 << 16}")]
SeedOrNone = Annotated[int, Range(-1, 2**63 - 1, "-1, or 0 or more, below 2^63")]
Layers = Annotated[int, Range(0, 1024, "0 or more, at most 1024")]
_MOST_BASES = 8
_OWN_ROWS = ("pe_rsitr", "amfmn", "galr", "fgvla", "kamcl", "cup")  # methods whose rows take more than pixels or texts
_PLAIN = ("elc", "infonce", "vsepp", "poly")  # methods that are a loss alone
Role = Literal["captions", "labels"]
BatchSize = Annotated[int, Range(2, MOST, f"two pairs at least, at most {MOST}")]


@dataclass(frozen=True)
class SourceConfig(Checked):
    """One dataset among several to learn from."""

    path: Name  # as data.path
    role: Role = "captions"  # what of it teaches: its captions, or its labels alone
    weight: Positive = 1.0  # how often each of its images is shown in an epoch
    terms: NameOrEmpty = ""  # under which its authors publish it; for the record


@dataclass(frozen=True)
class DataConfig(Checked):
    """Which pairs to learn from, and how they are varied."""

    path: NameOrEmpty = ""  # folder with captions.json and images or tars; relative to the working directory
    source: tuple[SourceConfig, ...] = ()  # [[data.source]]: further datasets, or all of them where path is empty
    batches: Literal["mixed", "one source"] = "mixed"  # "one source": no batch has images of two sources
    labels_per_step: Count = 64  # images of label sources beside each batch
    texts: tuple[Name, ...] = ()  # files of further captions: what they speak of counts as taught
    label_names: NameOrEmpty = ""  # a table of what else labels are called; half of the time one stands for its label
    label_captions: Share = 0.0  # how often a caption of data.texts with that label stands for it
    foreign: CountOrZero = 0  # texts of everyday words beside the labels of each step, which no picture shows
    train_split: Name = "train"
    val_split: Name = "val"
    augment: bool = True  # flips, quarter turns, small rotation and scale, colour gain and bias
    variation: Literal["free", "slight"] = "free"  # slight: no flips nor quarter turns, less scale and colour
    degrade: Share = 0.0  # share of training images degraded by Eqs. 21–24: a variant of its own, off in ELC
    substitute: Share = 0.0  # share of training captions varied by the lexicon; likewise
    epoch: Literal["images", "pairs"] = "images"  # what an epoch shows once: each image with a caption, or each pair
    captions_per_image: Count = 1  # captions of an image that enter one step, each as a pairing of its own


@dataclass(frozen=True)
class EncoderConfig(Checked):
    """Which two towers, and what they start from."""

    kind: Literal["compact", "towers", "clip", "model"] = "compact"
    # clip: hub name, folder or open_clip state dict; towers: folder with both towers' weights; model: name, file or run
    # folder of a model that is trained on, whose towers and sizes stay
    source: NameOrEmpty = ""
    tokenizer: NameOrEmpty = ""  # of an open_clip state dict, which comes without one: any CLIP's folder or hub name
    activation: Literal["quick_gelu", "gelu"] = "quick_gelu"  # of an open_clip state dict, whose weights do not show it
    image_tower: Name = "convnet"
    text_tower: Name = "words"
    image_size: Side = 224
    dim: Dim = 512
    dropout: Share = 0.0
    text_layers: Layers = 0  # how many of the first layers of a pretrained or trained text tower are kept; 0 = all
    text_hidden: CountOrZero = 0  # how many hidden units of each layer of a trained text tower are kept; 0 = all
    pooling: Literal["mean", "mean_max", "cls", "cls_mean"] = "mean"  # of the last grid; CLIP's tower has a class token
    freeze_batch_norm: bool = False
    seed: SeedOrNone = -1  # of what starts from nothing; -1 = the run's. Runs with one start can be averaged


@dataclass(frozen=True)
class MentorConfig(Checked):
    """Frozen encoders whose neighbourhoods the towers shall keep; empty = none in that modality."""

    image: NameOrEmpty = ""
    text: NameOrEmpty = ""
    center: bool = True  # subtract the mean feature: convolutional features share one large direction


@dataclass(frozen=True)
class MethodConfig(Checked):
    """Which method is trained; see ``evidex methods``."""

    name: Literal[
        "", "elc", "infonce", "vsepp", "poly", "vse_infty", "pau", "pe_rsitr", "amfmn", "galr", "sirs", "fgvla",
        "kamcl", "cup",
    ] = ""  # empty = loss.objective  # fmt: skip


@dataclass(frozen=True)
class LossConfig(Checked):
    """ELC with a switch for each row of Tables III/IV and each choice the paper leaves open."""

    objective: Literal["elc", "infonce", "vsepp", "poly"] = "elc"
    temperature: Positive = 0.1  # τ between modalities; 1 = exp(⟨v,t⟩) to the letter
    learn_temperature: bool = False  # ELC's τ moves from there, as InfoNCE's does, within the next two
    temperature_least: Positive = 0.02
    temperature_most: Positive = 0.2
    uncertainty_weighting: bool = True
    detach_weight: bool = True  # False = the weight 1 − u carries gradient, to the letter
    kl: bool = True
    kl_reduction: Literal["sum", "mean"] = "mean"  # "sum" = Eq. 7 to the letter
    b1: Positive = 40.0  # the KL's weight is epoch / b1
    annealing: Literal["step", "epoch"] = "step"  # which epoch that is: with its fraction, or its number from 1 (Eq. 8)
    ucl: bool = True
    ucl_target: Literal["vacuity", "belief"] = "vacuity"
    ucl_start_epoch: NotNegative = 0.0
    ucl_ramp_epochs: NotNegative = 0.0  # 0 with start 0 = UCL from the first step, to the letter
    b2: NotNegative = 1.0
    relation: bool = True
    relation_temperature: Positive = 1.0  # τ within a modality
    b3: NotNegative = 1.0
    b4: NotNegative = 0.0  # of the regression to the mentors' own features, which the paper has not; 0 = none
    mask_equal_captions: bool = True  # False = captions equal to the positive's are negatives, to the letter
    margin: NotNegative = 0.2  # of the triplet losses
    all_negatives_epochs: NotNegative = 0.0  # the first in which they take every negative, not the hardest alone
    labels: NotNegative = 1.0  # weight of what label sources teach; nothing without one
    twins: NotNegative = 0.0  # weight of captions against their twins with one thing exchanged; 0 = none


@dataclass(frozen=True)
class TrainConfig(Checked):
    """How the weights move."""

    epochs: Count = 40
    # texts: pictures keep their vectors; texts and head: their tower is locked, and its head learns
    learns: Literal["both", "texts", "texts and head"] = "both"
    batch_size: BatchSize = 128  # K, over all processes
    chunk_size: CountOrZero = 0  # pairs encoded at a time (feature caching); 0 = the whole batch
    learning_rate: Positive = 1e-6
    text_learning_rate: NotNegative = 0.0  # 0 = learning_rate
    head_learning_rate: NotNegative = 0.0  # of what starts from nothing; 0 = learning_rate
    layer_decay: PositiveShare = 1.0  # each layer of a pretrained transformer learns at this share of the next one's
    weight_decay: NotNegative = 0.1
    warmup_steps: CountOrZero = 0
    gradient_clip: NotNegative = 0.0  # largest gradient norm; 0 = none
    ema_decay: Share = 0.0  # 0 = none; else the averaged weights are evaluated and kept
    whiten: Share = 0.0  # 0 = none; else what is evaluated and kept has its heads centred and flattened by this power
    bf16: bool = False
    compile: bool = False  # fuse the operations of a transformer tower's layers: faster on a GPU, after some seconds
    evaluate_every: Count = 1  # epochs between evaluations on val
    checkpoint_every: Count = 1  # epochs between checkpoints; a run that is killed repeats this many at most


@dataclass(frozen=True)
class Config(Checked):
    """One experiment."""

    seed: Seed = 0
    output: Name = "runs/experiment"
    data: DataConfig = field(default_factory=DataConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    mentors: MentorConfig = field(default_factory=MentorConfig)
    method: MethodConfig = field(default_factory=MethodConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.train.whiten and self.encoder.kind == "clip":
            raise ConfigError(f"train.whiten = {self.train.whiten} changes the heads of towers; set 0 for clip")
        if self.train.learns != "both":
            self._check_locked()
        if self.encoder.text_hidden and self.encoder.kind != "model":
            raise ConfigError(
                f'encoder.text_hidden = {self.encoder.text_hidden} is for models that are trained on, kind = "model"; '
                "set it to 0"
            )
        if self.data.foreign and not (self.loss.labels and any(each.role == "labels" for each in self.data.source)):
            raise ConfigError(
                f"data.foreign = {self.data.foreign} shows texts beside labels, and none are learned; set it to 0, or "
                'loss.labels and a [[data.source]] with role = "labels"'
            )
        if self.data.variation != "free" and not self.data.augment:
            raise ConfigError(
                f'data.variation = "{self.data.variation}" with data.augment = false varies nothing; set it true'
            )
        if self.loss.learn_temperature:
            self._check_learnt_temperature()
        if self.data.epoch == "pairs" and self.data.captions_per_image > 1:
            raise ConfigError(
                f'data.captions_per_image = {self.data.captions_per_image} with data.epoch = "pairs" would show pairs '
                "more than once; set it to 1"
            )
        if self.loss.b4 and (self.method_name != "elc" or self.encoder.kind == "clip"):
            which = f"method '{self.method_name}'" if self.method_name != "elc" else 'encoder.kind = "clip"'
            raise ConfigError(
                f"loss.b4 = {self.loss.b4:g} regresses features of encoder.dim to a mentor's, in ELC on towers alone, "
                f"and not with {which}; set it to 0"
            )
        beside = self.loss.twins or any(source.role == "labels" for source in self.data.source)
        if beside and self.method_name in _OWN_ROWS:
            raise ConfigError(
                f"twins and labels compare plain features; method '{self.method_name}' has rows of its own"
            )

    def _check_learnt_temperature(self) -> None:
        """Refuse a start beyond the bounds, and methods that have a scale of their own or none."""
        loss = self.loss
        if not loss.temperature_least <= loss.temperature <= loss.temperature_most:
            raise ConfigError(
                f"loss.temperature = {loss.temperature:g} is not within temperature_least = {loss.temperature_least:g} "
                f"and temperature_most = {loss.temperature_most:g}, where it is learned; choose one that is"
            )
        if self.method_name != "elc":
            raise ConfigError(f"loss.learn_temperature is ELC's, and not for method '{self.method_name}'; set it false")

    def _check_locked(self) -> None:
        """Refuse what would move the vectors of pictures otherwise, or lock a tower that has learned nothing."""
        learns = f'train.learns = "{self.train.learns}"'
        if self.encoder.kind != "model" or self.method_name not in _PLAIN:
            raise ConfigError(
                f'{learns} with encoder.kind = "{self.encoder.kind}" and method "{self.method_name}": '
                "only a trained model's tower of pictures can be locked, and only without a network beside it; set "
                f'kind "model" and one of {", ".join(_PLAIN)}'
            )
        if self.train.whiten or self.encoder.dropout:
            raise ConfigError(
                f"{learns} locks the tower of pictures, whose vectors train.whiten and encoder.dropout would change; "
                "set both to 0"
            )

    @property
    def method_name(self) -> str:
        """The method that is trained, however the configuration names it."""
        return self.method.name or self.loss.objective


def load_config(path: Path, overrides: typing.Sequence[str] = ()) -> Config:
    """Read ``path``; ``overrides`` are ``section.key=value``, the value as in TOML (bare words are strings).

    The file may name another one as its ``base``, relative to itself, and then holds only what differs.
    """
    table = _read_with_bases(path)
    for override in overrides:
        apply_override(table, override)
    return parse(Config, table, str(path))


def merged(table: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """``table`` with ``changes`` put in, section by section."""
    result = dict(table)
    for key, value in changes.items():
        known = result.get(key)
        result[key] = merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return result


def _read_with_bases(path: Path) -> dict[str, Any]:
    """``path`` over its base over that one's base, and so on."""
    tables: list[dict[str, Any]] = []
    seen: set[Path] = set()
    while True:
        table = read_toml(path, ConfigError)
        place = path.resolve()
        if place in seen:
            raise ConfigError(f"'{path}' is a base of itself; take base out of one of these files")
        if len(seen) == _MOST_BASES:
            raise ConfigError(f"'{path}' is the base of a base of … more than {_MOST_BASES} files; join some of them")
        seen.add(place)
        base = table.pop("base", None)
        tables.append(table)
        if base is None:
            return functools.reduce(merged, reversed(tables))
        if not isinstance(base, str) or not base.strip():
            raise ConfigError(f"{path}: base = {reprlib.repr(base)}; give the path of a configuration")
        path = path.parent / base


def apply_override(table: dict[str, Any], override: str) -> None:
    """Put ``section.key=value`` into ``table``."""
    name, separator, text = override.partition("=")
    if not separator:
        raise ConfigError(f"'{override}' is no override; write section.key=value")
    try:
        value = parse_toml(f"value = {text}")["value"]
    except ValueError:
        value = text
    *sections, key = name.strip().split(".")
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(f"'{override}': {section} is no section; write section.key=value")
    table[key] = value
