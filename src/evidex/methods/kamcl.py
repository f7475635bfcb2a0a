"""KAMCL: concept words as knowledge, momentum contrast with a queue, grids of several levels pooled by rank.

Ji et al., 2023. Copies of both towers that follow slowly give the keys of a queue, so that a picture is told from
thousands of texts and not only those of its batch. A sigmoid of each feature is taught the concepts that a picture's
captions agree on, after eleven epochs, and added to the feature. Two constants belong to the authors' batches of 100
pairs and are brought to ours: how fast copies follow, and the sum of the hinges beside means.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy, cross_entropy, normalize, tanh

from evidex.encoders.protocol import DualEncoder, Modality
from evidex.losses.contrastive import hardest_triplet_loss
from evidex.losses.total import Features
from evidex.methods.amfmn import pyramid_sides
from evidex.methods.concepts import concept_targets, concept_words, words_of
from evidex.methods.protocol import Implementation, MethodLesson, placed
from evidex.methods.vse_infty import RankPooling
from evidex.methods.wrapped import MethodEncoder

_QUEUE, _TEMPERATURE = 8000, 0.07
_MOMENTUM, _PAIRS = 0.999, 100  # a step of so many pairs keeps this share of the slow copies
_CONTRAST, _CONCEPTS = 10.0, 10.0
_FIRST_EPOCHS = 11  # without concepts
_MARGIN = 0.2


def _mlp(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())


class ImagePart(nn.Module):
    """Four grids → feature and concepts, (n, dim) each."""

    def __init__(self, channels: Sequence[int], side: int, dim: int) -> None:
        super().__init__()
        self.deep_pool, self.low_pool, self.last_pool = RankPooling(), RankPooling(), RankPooling()
        self.deep, self.low = nn.Linear(channels[3], dim), nn.Linear(side**2, dim)
        self.high = nn.Linear(channels[2] + channels[3], dim)
        self.mlp = _mlp(dim)
        self.concepts = nn.Linear(dim, dim)

    def forward(self, grids: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        low = torch.cat([grids[0], _as_large(grids[1], grids[0])], 1).flatten(2)
        high = torch.cat([grids[2], _as_large(grids[3], grids[2])], 1).mean((2, 3))
        deep = self.deep_pool(grids[3].flatten(2).transpose(1, 2), _all(grids[3].flatten(2).transpose(1, 2)))
        levels = torch.stack([self.deep(deep), self.low(self.low_pool(low, _all(low))), self.high(high)], 1)
        levels = torch.cat([self.mlp(levels), levels], 1)
        return _with_concepts(self.last_pool(levels, _all(levels)), self.concepts)


class TextPart(nn.Module):
    """Words and the concepts among them → feature and concepts, (n, dim) each."""

    def __init__(self, width: int, dim: int) -> None:
        super().__init__()
        self.word = nn.Linear(width, dim)
        self.mlp = _mlp(dim)
        self.word_pool, self.last_pool = RankPooling(), RankPooling()
        self.known = nn.Linear(dim, dim)
        self.concepts = nn.Linear(dim, dim)

    def forward(self, rows: torch.Tensor, mask: torch.Tensor, known: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        words = self.word(rows)
        both = torch.cat([words, self.mlp(words)], 1)
        sentence = tanh(self.word_pool(both, torch.cat([mask, mask], 1)))
        pair = torch.stack([sentence, self.known(known.to(sentence.dtype))], 1)
        return _with_concepts(self.last_pool(pair, _all(pair)), self.concepts)


def _with_concepts(feature: torch.Tensor, layer: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    concepts = torch.sigmoid(layer(feature))
    return feature + concepts, concepts


def _all(rows: torch.Tensor) -> torch.Tensor:
    return torch.ones(rows.shape[:2], dtype=torch.bool, device=rows.device)


def _as_large(grid: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return nn.functional.interpolate(grid, other.shape[2:], mode="nearest")


class KamclEncoder(MethodEncoder):
    """Both towers with their parts; in training also their slow copies and the queues of what these gave."""

    method = "kamcl"

    def __init__(self, base: DualEncoder, options: dict[str, Any], *, learning: bool = False) -> None:
        super().__init__(base, options)
        towers = placed(base, "KAMCL")
        for head in towers.heads():
            head.requires_grad_(False)  # they are not used
        self._places = {word: index for index, word in enumerate(options["words"])}
        self.head = nn.ModuleDict(
            {
                "image": ImagePart(towers.pyramid_channels(), options["side"], base.dim),
                "text": TextPart(towers.new_word_head().in_features, base.dim),
            }
        )
        self.key: nn.ModuleDict | None = None
        self._fresh: list[tuple[Modality, torch.Tensor]] = []
        if learning:
            self.key = copy.deepcopy(nn.ModuleDict({"base": base, "head": self.head})).requires_grad_(False)
            for name in ("image", "text"):
                self.register_buffer(f"{name}_queue", normalize(torch.randn(_QUEUE, base.dim), dim=-1))
            self.register_buffer("place", torch.zeros(2, dtype=torch.int64))

    def tokenize(self, texts: Sequence[str]) -> dict[str, torch.Tensor]:
        known = torch.zeros(len(texts), self.base.dim, dtype=torch.int64)
        for row, text in zip(known, texts, strict=True):
            row[[self._places[word] for word in words_of(text) if word in self._places]] = 1
        return self.base.tokenize(texts) | {"concepts": known}

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return normalize(_image(self.base, self.head, pixels)[0], dim=-1)

    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        return normalize(_text(self.base, self.head, tokens)[0], dim=-1)

    def image_outputs(self, pixels: torch.Tensor) -> torch.Tensor:
        """Feature, concepts and key."""
        assert self.key is not None
        feature, concepts = _image(self.base, self.head, pixels)
        with torch.no_grad():
            key, _ = _image(self.key["base"], self.key["head"], pixels)
        return torch.cat([normalize(feature, dim=-1), concepts, normalize(key, dim=-1)], -1)

    def text_outputs(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Likewise."""
        assert self.key is not None
        feature, concepts = _text(self.base, self.head, tokens)
        with torch.no_grad():
            key, _ = _text(self.key["base"], self.key["head"], tokens)
        return torch.cat([normalize(feature, dim=-1), concepts, normalize(key, dim=-1)], -1)

    def queue(self, modality: Modality) -> torch.Tensor:
        return self.get_buffer(f"{modality}_queue")

    def remember(self, modality: Modality, keys: torch.Tensor) -> None:
        """Put ``keys`` into the queue after this step."""
        self._fresh.append((modality, keys.detach()))

    @torch.no_grad()
    def after_step(self) -> None:
        """The queues take the step's keys, and the slow copies follow."""
        assert self.key is not None
        place = self.get_buffer("place")
        for modality, keys in self._fresh:
            side = int(modality == "text")
            rows = (place[side] + torch.arange(len(keys), device=keys.device)) % _QUEUE
            self.queue(modality)[rows] = keys.to(self.queue(modality).dtype)
            place[side] = (place[side] + len(keys)) % _QUEUE
        pairs = sum(len(keys) for modality, keys in self._fresh if modality == "text")
        self._fresh = []
        for name, current in (("base", self.base), ("head", self.head)):
            for slow, fast in zip(self.key[name].parameters(), current.parameters(), strict=True):
                slow.lerp_(fast, 1 - _MOMENTUM ** (pairs / _PAIRS))

    def finished(self) -> DualEncoder:
        """Without the slow copies and the queues."""
        kept = KamclEncoder(self.base, self.options)
        kept.head.load_state_dict(self.head.state_dict())
        return kept.to(self.device).eval()


def _image(base: nn.Module, head: nn.Module, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    assert isinstance(base, DualEncoder)
    assert isinstance(head, nn.ModuleDict)
    feature, concepts = head["image"](placed(base, "KAMCL").image_pyramid(pixels))
    return feature.float(), concepts.float()


def _text(base: nn.Module, head: nn.Module, tokens: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    assert isinstance(base, DualEncoder)
    assert isinstance(head, nn.ModuleDict)
    words = placed(base, "KAMCL").text_places({name: ids for name, ids in tokens.items() if name != "concepts"})
    feature, concepts = head["text"](words.rows, words.mask, tokens["concepts"])
    return feature.float(), concepts.float()


def momentum_contrast(queries: torch.Tensor, keys: torch.Tensor, queue: torch.Tensor) -> torch.Tensor:
    """Tell each query's own key from all of ``queue``; unit rows."""
    logits = torch.cat([(queries * keys).sum(-1, keepdim=True), queries @ queue.T], -1) / _TEMPERATURE
    return cross_entropy(logits, torch.zeros(len(logits), dtype=torch.int64, device=logits.device))


class Kamcl(Implementation):
    """Hinges of the batch, contrast with the queues, and from the twelfth epoch concepts."""

    def wrap(self, base: DualEncoder, captions: Sequence[Sequence[str]]) -> DualEncoder:
        side = pyramid_sides(placed(base, "KAMCL"))[0]
        return KamclEncoder(base, {"side": side, "words": concept_words(captions, base.dim)}, learning=True)

    def rebuild(self, base: DualEncoder, options: dict[str, Any]) -> DualEncoder:
        return KamclEncoder(base, options)

    def facts(self, encoder: DualEncoder, captions: Sequence[Sequence[str]]) -> torch.Tensor:
        assert isinstance(encoder, KamclEncoder)
        return concept_targets(captions, encoder.options["words"], encoder.base.dim)

    def loss(self, batch: Features, lesson: MethodLesson) -> dict[str, torch.Tensor]:
        encoder = lesson.encoder
        assert isinstance(encoder, KamclEncoder)
        assert batch.facts is not None
        image, image_concepts, image_key = batch.image.float().chunk(3, -1)
        text, text_concepts, text_key = batch.text.float().chunk(3, -1)
        contrast = momentum_contrast(image, text_key.detach(), encoder.queue("text"))
        contrast = contrast + momentum_contrast(text, image_key.detach(), encoder.queue("image"))
        encoder.remember("image", image_key)
        encoder.remember("text", text_key)
        hinge = hardest_triplet_loss(image @ text.T, margin=_MARGIN, ignore=lesson.ignored(batch))
        parts = {"triplet": _PAIRS * hinge, "contrast": _CONTRAST * contrast}
        if lesson.epoch >= _FIRST_EPOCHS:
            known = binary_cross_entropy(image_concepts, batch.facts) + binary_cross_entropy(text_concepts, batch.facts)
            parts["concepts"] = _CONCEPTS * known
        return parts


METHOD = Kamcl()
