"""CLIP as a dual encoder: from a hub name, a model folder, or weights in open_clip's naming."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from torch import nn
from torch.nn import functional
from transformers import CLIPConfig, CLIPModel

from evidex.documents import is_file, parse_json
from evidex.encoders.clip.architecture import ClipArchitecture
from evidex.encoders.clip.open_clip_weights import Activation, infer_architecture, map_state_dict
from evidex.encoders.clip.tokenizer import ClipTokenizer
from evidex.encoders.hub import model_folder, quiet_loading
from evidex.encoders.preprocess import CLIP_MEAN, CLIP_STD, normalise, resize_and_crop
from evidex.encoders.protocol import PlacedEncoder, Places
from evidex.encoders.state_dicts import read_state_dict
from evidex.errors import ModelError
from evidex.files import at_home

if TYPE_CHECKING:
    from PIL.Image import Image


class ClipEncoder(PlacedEncoder):
    """transformers' CLIPModel with CLIP's own tokenizer and image preparation.

    The learned temperature of CLIP stays in the weights but takes no part in training; see ``native_temperature``.
    """

    def __init__(
        self,
        architecture: ClipArchitecture,
        tokenizer: ClipTokenizer,
        clip: CLIPModel,
        *,
        mean: Sequence[float] = CLIP_MEAN,
        std: Sequence[float] = CLIP_STD,
    ) -> None:
        super().__init__()
        _check_tokenizer(architecture, tokenizer)
        self.architecture = architecture
        self.tokenizer = tokenizer
        self.dim = architecture.dim
        self.image_size = architecture.image_size
        self.clip = clip
        self.clip.logit_scale.requires_grad_(False)
        self._normalisation = {"mean": list(mean), "std": list(std)}
        self.mean: torch.Tensor
        self.std: torch.Tensor
        self.register_buffer("mean", torch.tensor(list(mean)), persistent=False)
        self.register_buffer("std", torch.tensor(list(std)), persistent=False)

    @classmethod
    def from_pretrained(cls, name_or_folder: str | Path) -> ClipEncoder:
        """Load a Hugging Face CLIP by its hub name (``openai/clip-vit-base-patch32``) or from its folder."""
        folder = model_folder(name_or_folder)
        _check_is_clip(folder)
        try:
            with quiet_loading(), torch.random.fork_rng(devices=[]):
                config = CLIPConfig.from_pretrained(folder)
                loaded, report = CLIPModel.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            raise ModelError(f"'{folder}' cannot be loaded as a CLIP ({_first_line(error)}); fetch it again") from error
        for fault in ("missing_keys", "mismatched_keys"):
            if report[fault]:
                keys = sorted(str(key) for key in report[fault])
                raise ModelError(f"the weights in '{folder}' lack {keys[0]} ({len(keys)} in all); fetch them again")
        tokenizer = ClipTokenizer.from_files(folder, config.text_config.max_position_embeddings)
        architecture = ClipArchitecture.from_config(config, end_token=tokenizer.end_token)
        mean, std = _normalisation(folder)
        return cls(architecture, tokenizer, loaded, mean=mean, std=std)

    @classmethod
    def from_open_clip(
        cls, state_dict: str | Path, *, tokenizer: str | Path, activation: Activation, head_width: int = 64
    ) -> ClipEncoder:
        """Load RemoteCLIP, GeoRSCLIP or another ViT of open_clip or OpenAI from its state dict.

        Such a file comes without a tokenizer: ``tokenizer`` names a model folder that has one (any CLIP's), or
        OpenAI's ``bpe_simple_vocab_16e6.txt.gz``. For ``activation`` see ``infer_architecture``.
        """
        path = at_home(state_dict)
        state = read_state_dict(path)
        architecture = infer_architecture(state, activation=activation, head_width=head_width)
        weights = map_state_dict(state, architecture, source=f"'{path}'")
        vocabulary = at_home(tokenizer)
        source = vocabulary if is_file(vocabulary) else model_folder(tokenizer)
        clip = _untrained(architecture)
        clip.load_state_dict(weights)
        return cls(architecture, ClipTokenizer.from_files(source, architecture.context), clip)

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> ClipEncoder:
        """Rebuild the module that wrote ``spec``; its weights are loaded afterwards with ``load_state_dict``."""
        missing = sorted({"kind", "architecture", "tokenizer", "mean", "std"} - set(spec))
        if missing or spec["kind"] != "clip":
            wrong = f"lacks {', '.join(missing)}" if missing else f"is of kind {spec['kind']!r}"
            raise ModelError(f"the model's description {wrong}; give the description of a CLIP")
        architecture = ClipArchitecture.from_json(spec["architecture"])
        tokenizer = ClipTokenizer.from_json(spec["tokenizer"], architecture.context)
        return cls(architecture, tokenizer, _untrained(architecture), mean=spec["mean"], std=spec["std"])

    def spec(self) -> dict[str, Any]:
        return {
            "kind": "clip",
            "architecture": self.architecture.to_json(),
            "tokenizer": self.tokenizer.to_json(),
            **self._normalisation,
        }

    @property
    def start_scale(self) -> float:
        """CLIP's own, which its features were trained with."""
        return float(self.clip.logit_scale.detach())

    @property
    def native_temperature(self) -> float:
        """The temperature that CLIP was trained with (0.01 for OpenAI's weights)."""
        return float(torch.exp(-self.clip.logit_scale.detach().double()))

    def prepare_image(self, image: Image) -> np.ndarray:
        return resize_and_crop(image, self.image_size)

    def tokenize(self, texts: Sequence[str]) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.from_numpy(self.tokenizer(texts))}

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return functional.normalize(self.image_projection(pixels), dim=-1)

    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        return functional.normalize(self.text_projection(tokens), dim=-1)

    def image_projection(self, pixels: torch.Tensor) -> torch.Tensor:
        """The pictures' features before they are brought to unit length."""
        prepared = normalise(pixels, self.mean, self.std)
        pooled = self.clip.vision_model(pixel_values=prepared).pooler_output
        projected: torch.Tensor = self.clip.visual_projection(pooled).float()
        return projected

    def text_projection(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """The sentences' features before they are brought to unit length."""
        # No attention mask: attention is causal, so nothing after the first end token reaches the feature read there.
        ids = tokens["input_ids"]
        hidden = self.clip.text_model(input_ids=ids).last_hidden_state
        end = (ids == self.architecture.end_token).int().argmax(dim=-1)
        pooled = hidden[torch.arange(len(ids), device=ids.device), end]
        projected: torch.Tensor = self.clip.text_projection(pooled).float()
        return projected

    def image_places(self, pixels: torch.Tensor) -> Places:
        grid = self.image_pyramid(pixels)[-1]
        rows = grid.flatten(2).transpose(1, 2)
        return Places(rows, torch.ones(rows.shape[:2], dtype=torch.bool, device=rows.device))

    def text_places(self, tokens: dict[str, torch.Tensor]) -> Places:
        hidden = self.clip.text_model(input_ids=tokens["input_ids"]).last_hidden_state
        return Places(hidden, self.word_mask(tokens))

    def word_mask(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        ids = tokens["input_ids"]
        end = (ids == self.architecture.end_token).int().argmax(dim=-1, keepdim=True)
        return torch.arange(ids.shape[1], device=ids.device) <= end

    def new_place_head(self) -> nn.Linear:
        return _like(self.clip.visual_projection)

    def new_word_head(self) -> nn.Linear:
        return _like(self.clip.text_projection)

    def image_pyramid(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        """The patches after each quarter of the layers: a transformer has one scale, so all grids are of one size."""
        prepared = normalise(pixels, self.mean, self.std)
        states = self.clip.vision_model(pixel_values=prepared, output_hidden_states=True).hidden_states
        layers = len(states) - 1
        chosen = [states[-(-layers * quarter // 4)][:, 1:] for quarter in (1, 2, 3)]
        chosen.append(self.clip.vision_model.post_layernorm(states[-1][:, 1:]))
        side = self.architecture.image_size // self.architecture.patch_size
        return [patches.transpose(1, 2).unflatten(2, (side, side)) for patches in chosen]

    def pyramid_channels(self) -> list[int]:
        return [self.architecture.image_width] * 4

    def image_entry_and_blocks(self) -> tuple[nn.Module, list[nn.Module]]:
        vision = self.clip.vision_model
        return vision.pre_layrnorm, list(vision.encoder.layers)

    def text_entry_and_blocks(self) -> tuple[nn.Module, list[nn.Module]]:
        text = self.clip.text_model
        return text.embeddings, list(text.encoder.layers)

    def heads(self) -> list[nn.Module]:
        """None: CLIP's projections were trained with its towers."""
        return []


def _like(projection: nn.Linear) -> nn.Linear:
    made = nn.Linear(projection.in_features, projection.out_features)
    with torch.no_grad():
        made.weight.copy_(projection.weight)
        made.bias.zero_()
    return made


def _untrained(architecture: ClipArchitecture) -> CLIPModel:
    """Draw weights from a seed of their own: building a model leaves the caller's randomness alone."""
    with quiet_loading(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return CLIPModel(architecture.config())


def _check_tokenizer(architecture: ClipArchitecture, tokenizer: ClipTokenizer) -> None:
    if len(tokenizer.tokens) > architecture.vocabulary or tokenizer.end_token != architecture.end_token:
        raise ModelError(
            f"the tokenizer has {len(tokenizer.tokens)} tokens and ends texts with token {tokenizer.end_token}, "
            f"the model has {architecture.vocabulary} and expects {architecture.end_token}; give the model's tokenizer"
        )


def _check_is_clip(folder: Path) -> None:
    try:
        kind = parse_json((folder / "config.json").read_text(encoding="utf-8")).get("model_type")
    except (OSError, ValueError, AttributeError) as error:
        raise ModelError(f"'{folder}' has no readable config.json; give the folder of a Hugging Face CLIP") from error
    if kind != "clip":
        raise ModelError(f"'{folder}' holds a model of type {kind!r}; give the folder of a Hugging Face CLIP")


def _normalisation(folder: Path) -> tuple[Sequence[float], Sequence[float]]:
    """Return the mean and deviation that the folder names; CLIP's own where it names none."""
    path = folder / "preprocessor_config.json"
    if not is_file(path):
        return CLIP_MEAN, CLIP_STD
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        mean, std = content.get("image_mean", CLIP_MEAN), content.get("image_std", CLIP_STD)
        if len(mean) != 3 or len(std) != 3 or not all(float(value) > 0 for value in std):
            raise ValueError("image_mean and image_std are not three numbers each")
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ModelError(f"'{path}' is unreadable ({_first_line(error)}); fetch it again") from error
    return mean, std


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
