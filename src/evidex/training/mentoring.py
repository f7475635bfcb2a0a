"""The mentors' features of a training split, computed once and kept (Section III-D)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from evidex.config import Config
from evidex.data.datasets import Dataset
from evidex.data.pixels import content_digests
from evidex.errors import ConfigError
from evidex.losses.regression import shared_space
from evidex.progress import Progress, silent

if TYPE_CHECKING:
    from evidex.encoders.mentors.protocol import ImageMentor, TextMentor


@dataclass(frozen=True)
class MentorFeatures:
    """Unit rows: one an image, one a distinct sentence."""

    image: torch.Tensor | None
    text: torch.Tensor | None


def mentor_features(
    config: Config,
    datasets: Sequence[Dataset],
    sentences: list[str],
    device: torch.device,
    progress: Progress = silent,
) -> MentorFeatures:
    """Return the features of the mentors that ``config`` names, from the cache where it has them.

    The images are those of all ``datasets``, one after another; each dataset is in the cache for itself.
    """
    if config.method_name != "elc" or not (config.loss.relation or config.loss.b4):
        return MentorFeatures(None, None)
    from evidex.encoders.mentors.feature_cache import cached_features, content_digest

    image = text = None
    if config.mentors.image:
        image_mentor = _image_mentor(config.mentors.image, device)
        image = np.concatenate([image_features(dataset, image_mentor, progress) for dataset in datasets])
    if config.mentors.text:
        text_mentor = _text_mentor(config.mentors.text, device)
        text = cached_features(
            text_mentor.fingerprint,
            [content_digest(sentence) for sentence in sentences],
            lambda rows: text_mentor.features([sentences[row] for row in rows]),
            progress=progress,
        )
    unit_image, unit_text = (_unit(features, config.mentors.center, device) for features in (image, text))
    if not config.loss.b4:
        return MentorFeatures(unit_image, unit_text)
    return MentorFeatures(*_in_own_space(unit_image, unit_text, config))


def image_features(dataset: Dataset, mentor: ImageMentor, progress: Progress = silent) -> np.ndarray:
    """What ``mentor`` makes of the pictures, one row each, from the cache where it is there."""
    from evidex.encoders.mentors.feature_cache import cached_features

    return cached_features(
        mentor.fingerprint,
        content_digests(dataset),
        lambda rows: mentor.features([dataset.open_image(row) for row in rows]),
        progress=progress,
    )


def _in_own_space(
    image: torch.Tensor | None, text: torch.Tensor | None, config: Config
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both mentors' features in a space of the student's size, which regression needs and relations allow."""
    mentors = config.mentors
    if image is None or text is None or mentors.image != mentors.text:
        raise ConfigError(
            f"loss.b4 = {config.loss.b4} regresses both modalities to one mentor's features, but mentors.image = "
            f"'{mentors.image}' and mentors.text = '{mentors.text}'; name the same trained model in both, or set b4 = 0"
        )
    return shared_space(image, text, config.encoder.dim)


def _image_mentor(name: str, device: torch.device) -> ImageMentor:
    """Return the mentor that ``name`` means.

    ``compact`` is the model that comes with evidex, ``NAME.safetensors`` a trained model or a tower's weights,
    ``NAME.pt`` Unicom's; everything else is a Hugging Face folder or hub name.
    """
    from evidex.encoders.mentors.model import ImageModelMentor
    from evidex.encoders.mentors.pretrained import HuggingFaceImageMentor, TorchImageMentor
    from evidex.encoders.mentors.tower import TowerMentor
    from evidex.encoders.model_file import holds_model

    path = Path(name)
    if name == "compact" or holds_model(path):
        return ImageModelMentor(name, device)
    if path.suffix == ".safetensors":
        return TowerMentor(path, device)
    if path.suffix == ".pt":
        return TorchImageMentor.unicom(path, device=str(device))
    return HuggingFaceImageMentor(name, device=str(device))


def _text_mentor(name: str, device: torch.device) -> TextMentor:
    """Return the mentor that ``name`` means: likewise, but ``NAME.safetensors`` is a model or stored features."""
    from evidex.encoders.mentors.model import TextModelMentor
    from evidex.encoders.mentors.pretrained import HuggingFaceTextMentor
    from evidex.encoders.mentors.stored import StoredTextMentor
    from evidex.encoders.model_file import holds_model

    path = Path(name)
    if name == "compact" or holds_model(path):
        return TextModelMentor(name, device)
    return StoredTextMentor(path) if path.suffix == ".safetensors" else HuggingFaceTextMentor(name, device=str(device))


def _unit(features: np.ndarray | None, center: bool, device: torch.device) -> torch.Tensor | None:
    if features is None:
        return None
    rows = torch.from_numpy(features.astype(np.float32))
    if center:
        rows = rows - rows.mean(0)
    return torch.nn.functional.normalize(rows, dim=-1).to(device)
