"""Frozen mentors from published weights: text models, image models, any torch backbone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from safetensors import SafetensorError
from torch import nn
from torch.nn import functional

from evidex.documents import parse_json
from evidex.encoders.hub import model_folder, quiet_loading
from evidex.encoders.mentors.unicom import load_unicom
from evidex.encoders.preprocess import CLIP_MEAN, CLIP_STD, normalise, resize_and_crop
from evidex.encoders.state_dicts import fingerprint, read_state_dict
from evidex.errors import ModelError
from evidex.files import at_home

if TYPE_CHECKING:
    from PIL.Image import Image

TextPooling = Literal["mean", "cls"]
ImagePooling = Literal["auto", "pooled", "cls", "mean"]


class HuggingFaceTextMentor:
    """A BERT-like sentence encoder (GTE, MiniLM, mpnet) from a hub name or folder: token mean, unit length."""

    def __init__(
        self,
        name_or_folder: str | Path,
        *,
        pooling: TextPooling = "mean",
        max_tokens: int = 512,
        batch_size: int = 64,
        device: str = "cpu",
    ) -> None:
        from transformers import AutoTokenizer

        _check_choice(pooling, TextPooling)
        folder = model_folder(name_or_folder)
        self._model, missing = _load(folder, device)
        _refuse_missing(missing, folder)
        try:
            with quiet_loading():
                self._tokenizer = AutoTokenizer.from_pretrained(folder)
        except (OSError, ValueError) as error:
            raise ModelError(f"'{folder}' has no readable tokenizer; fetch its files again") from error
        rows = self._model.get_input_embeddings().weight.shape[0]
        # A folder without its vocabulary yields a tokenizer of special tokens alone, without a warning.
        if not any((folder / name).is_file() for name in _VOCABULARIES) or len(self._tokenizer) > rows:
            raise ModelError(f"'{folder}' has no tokenizer that fits {rows} token vectors; fetch its files again")
        self._pooling = pooling
        self._max_tokens = min(max_tokens, self._tokenizer.model_max_length, _positions(self._model))
        self._batch_size = batch_size
        self._device = device
        self.dim = int(self._model.config.hidden_size)
        vocabulary = json.dumps(self._tokenizer.get_vocab(), sort_keys=True)
        facts = ("text", pooling, str(self._max_tokens), _config(folder), vocabulary)
        self.fingerprint = fingerprint(self._model.state_dict(), *facts)

    @torch.inference_mode()
    def features(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for start in range(0, len(texts), self._batch_size):
            batch = list(texts[start : start + self._batch_size])
            tokens = self._tokenizer(
                batch, padding=True, truncation=True, max_length=self._max_tokens, return_tensors="pt"
            ).to(self._device)
            hidden = self._model(**tokens).last_hidden_state.float()
            mask = tokens["attention_mask"].unsqueeze(-1).float()
            pooled = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1) if self._pooling == "mean" else hidden[:, 0]
            rows[start : start + len(batch)] = functional.normalize(pooled, dim=-1).cpu().numpy()
        return rows


class HuggingFaceImageMentor:
    """Any image model of transformers (ViT, DINOv2, Swin, ResNet, CLIP's image tower …) from a hub name or folder.

    ``auto`` takes the model's own pooled output where it has trained one, else the class token of a transformer,
    else the mean over places.
    """

    def __init__(
        self,
        name_or_folder: str | Path,
        *,
        pooling: ImagePooling = "auto",
        batch_size: int = 32,
        device: str = "cpu",
    ) -> None:
        _check_choice(pooling, ImagePooling)
        folder = model_folder(name_or_folder)
        self._model, missing = _load(folder, device)
        untrained_pooler = [key for key in missing if "pooler" in key]
        _refuse_missing([key for key in missing if key not in untrained_pooler], folder)
        if pooling == "pooled" and untrained_pooler:
            raise ModelError(f"'{folder}' has no weights for {untrained_pooler[0]}; choose the pooling cls or mean")
        self._pooling = "cls" if pooling == "auto" and untrained_pooler else pooling
        self._processor = _image_processor(folder)
        self._batch_size = batch_size
        self._device = device
        settings = (folder / "preprocessor_config.json").read_text(encoding="utf-8")
        self.fingerprint = fingerprint(self._model.state_dict(), "image", self._pooling, _config(folder), settings)
        self.dim = self._batch([_grey_image()]).shape[1]

    def features(self, images: Sequence[Image]) -> np.ndarray:
        return _in_batches(self._batch, images, self._batch_size, self.dim)

    @torch.inference_mode()
    def _batch(self, images: Sequence[Image]) -> np.ndarray:
        prepared = self._processor(images=[image.convert("RGB") for image in images], return_tensors="np")
        pixels = torch.from_numpy(np.stack(list(prepared["pixel_values"]))).float().to(self._device)
        return _unit_rows(self._pool(pixels))

    def _pool(self, pixels: torch.Tensor) -> torch.Tensor:
        if hasattr(self._model, "get_image_features"):
            output = self._model.get_image_features(pixel_values=pixels)
            return output if isinstance(output, torch.Tensor) else _tensor(output.pooler_output)
        output = self._model(pixel_values=pixels)
        pooled = getattr(output, "pooler_output", None)
        if self._pooling in ("auto", "pooled") and pooled is not None:
            return _tensor(pooled)
        hidden = _tensor(output.last_hidden_state)
        if hidden.dim() == 4:
            return hidden.mean(dim=(2, 3))
        return hidden.mean(dim=1) if self._pooling == "mean" else hidden[:, 0]


class TorchImageMentor:
    """Any torch function from a batch of prepared images to feature rows.

    ``prepare`` turns one image into the tensor that ``backbone`` takes a batch of. Its code is not part of the
    fingerprint, so ``name`` has to tell this mentor, with its preparation, from every other.
    """

    def __init__(
        self,
        backbone: Callable[[torch.Tensor], torch.Tensor],
        prepare: Callable[[Image], torch.Tensor],
        *,
        name: str,
        batch_size: int = 32,
        device: str = "cpu",
    ) -> None:
        self._backbone = backbone
        state: dict[str, torch.Tensor] = {}
        if isinstance(backbone, nn.Module):
            _freeze(backbone, device)
            state = backbone.state_dict()
        self._prepare = prepare
        self._batch_size = batch_size
        self._device = device
        self.fingerprint = fingerprint(state, "torch", name)
        self.dim = self._batch([_grey_image()]).shape[1]

    @classmethod
    def unicom(cls, state_dict: str | Path, *, batch_size: int = 32, device: str = "cpu") -> TorchImageMentor:
        """Build the mentor of a published Unicom ViT from its state dict; images are prepared as for CLIP."""
        path = at_home(state_dict)
        network, shape = load_unicom(read_state_dict(path), source=f"'{path}'")
        mean, std = torch.tensor(CLIP_MEAN), torch.tensor(CLIP_STD)

        def prepare(image: Image) -> torch.Tensor:
            pixels = torch.from_numpy(resize_and_crop(image, shape.image_size))
            return normalise(pixels.unsqueeze(0), mean, std)[0]

        return cls(network, prepare, name="unicom", batch_size=batch_size, device=device)

    def features(self, images: Sequence[Image]) -> np.ndarray:
        return _in_batches(self._batch, images, self._batch_size, self.dim)

    @torch.inference_mode()
    def _batch(self, images: Sequence[Image]) -> np.ndarray:
        return _unit_rows(self._backbone(torch.stack([self._prepare(image) for image in images]).to(self._device)))


_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model")


def _load(folder: Path, device: str) -> tuple[Any, list[str]]:
    """Return the frozen model and the names of its weights that the folder does not have."""
    from transformers import AutoModel

    try:
        with quiet_loading(), torch.random.fork_rng(devices=[]):
            model, report = AutoModel.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    except (OSError, ValueError, RuntimeError, ImportError, SafetensorError) as error:
        cause = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ModelError(f"'{folder}' cannot be loaded as a model ({cause}); give a Hugging Face folder") from error
    _freeze(model, device)
    return model, sorted({str(key) for fault in ("missing_keys", "mismatched_keys") for key in report[fault]})


def _freeze(module: nn.Module, device: str) -> None:
    module.to(device).eval().requires_grad_(False)


def _refuse_missing(missing: Sequence[str], folder: Path) -> None:
    # A pooler that the token mean and the class token never use may be missing.
    wrong = [key for key in missing if "pooler" not in key]
    if wrong:
        raise ModelError(f"the weights in '{folder}' lack {wrong[0]} ({len(wrong)} in all); fetch them again")


def _check_choice(value: str, choices: Any) -> None:
    if value not in get_args(choices):
        raise ModelError(f"pooling {value!r} is unknown; choose one of {', '.join(get_args(choices))}")


def _config(folder: Path) -> str:
    return (folder / "config.json").read_text(encoding="utf-8")


def _positions(model: Any) -> int:
    """Return how many tokens the model has positions for; RoBERTa's kin spend some on padding."""
    positions = getattr(model.config, "max_position_embeddings", None) or 512
    embeddings = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(embeddings, "padding_idx", None)
    return int(positions) - (0 if padding is None else padding + 1)


def _image_processor(folder: Path) -> Any:
    """Return the folder's image processor in its Pillow form, which needs no torchvision."""
    import transformers

    try:
        settings = parse_json((folder / "preprocessor_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"'{folder}' has no readable preprocessor_config.json; fetch it again") from error
    if not isinstance(settings, dict):
        raise ModelError(f"'{folder}' has a preprocessor_config.json without settings; fetch it again")
    kind = str(settings.get("image_processor_type") or settings.get("feature_extractor_type") or "")
    base = kind.removesuffix("Fast").removesuffix("Pil").replace("FeatureExtractor", "ImageProcessor")
    processor = getattr(transformers, f"{base}Pil", None) if base else None
    if processor is None:
        raise ModelError(f"'{folder}' names the image processor {kind!r}, which has no Pillow form; use another model")
    with quiet_loading():
        return processor.from_pretrained(folder)


def _grey_image() -> Image:
    """An image to learn a network's output size from."""
    from PIL import Image as images

    return images.new("RGB", (64, 64), (128, 128, 128))


def _tensor(value: Any) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        raise ModelError(f"the mentor returned {type(value).__name__} instead of a tensor; use another model")
    return value


def _unit_rows(features: torch.Tensor) -> np.ndarray:
    rows: np.ndarray = functional.normalize(_tensor(features).flatten(1).float(), dim=-1).cpu().numpy()
    return rows


def _in_batches(
    batch: Callable[[Sequence[Image]], np.ndarray], images: Sequence[Image], size: int, dim: int
) -> np.ndarray:
    rows = np.zeros((len(images), dim), dtype=np.float32)
    for start in range(0, len(images), size):
        rows[start : start + size] = batch(images[start : start + size])
    return rows
