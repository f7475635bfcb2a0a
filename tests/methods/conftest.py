"""Ten rendered scenes of different kinds, and an encoder that learns them by heart in a few dozen steps."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from evidex.config import EncoderConfig
from evidex.data.datasets import load_dataset
from evidex.encoders.clip.encoder import ClipEncoder
from evidex.encoders.towers import TowerEncoder, new_compact
from evidex.losses import info_nce_loss
from evidex.scenes import render_archive
from tests.encoders.clip.tiny_clip import save_tiny_clip

TEXTS = ["a river .", "many planes near a terminal .", "a green forest .", "two ships in a harbor .", "a dense city ."]


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("methods") / "archive"
    render_archive(folder, count=42, seed=3, size=32)
    described = json.loads((folder / "captions.json").read_text())
    train = [record for record in described["images"] if record["split"] == "train"][::3][:10]
    val = [record for record in described["images"] if record["split"] == "val"][:10]
    (folder / "captions.json").write_text(json.dumps({**described, "images": train + val}))
    return folder


@pytest.fixture(scope="session")
def taught_clip(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny CLIP that knows the ten scenes: methods that leave CLIP as it is can do little with random weights."""
    folder = tmp_path_factory.mktemp("taught") / "clip"
    save_tiny_clip(folder)
    clip, dataset = ClipEncoder.from_pretrained(folder).train(), load_dataset(archive, "train")
    pictures = [clip.prepare_image(dataset.open_image(place)) for place in range(len(dataset))]
    pixels, tokens = torch.from_numpy(np.stack(pictures)), clip.tokenize([each.captions[0] for each in dataset.records])
    optimizer = torch.optim.AdamW(clip.parameters(), 1e-3)
    for _ in range(30):
        similarity = clip.image_features(pixels) @ clip.text_features(tokens).T
        optimizer.zero_grad()
        info_nce_loss(similarity, scale=20.0).backward()
        optimizer.step()
    clip.clip.save_pretrained(folder)
    return folder


@pytest.fixture
def towers() -> TowerEncoder:
    """An untrained compact encoder."""
    torch.manual_seed(0)
    return new_compact(EncoderConfig(image_size=32, dim=8), TEXTS).eval()


@pytest.fixture
def pixels() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (len(TEXTS), 3, 32, 32), dtype=torch.uint8, generator=generator)
