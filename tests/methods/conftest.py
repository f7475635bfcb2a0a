"""Ten rendered scenes of different kinds, and an encoder that learns them by heart in a few dozen steps."""

import json
from pathlib import Path

import pytest
import torch

from evidex.config import EncoderConfig
from evidex.encoders.towers import TowerEncoder, new_compact
from evidex.scenes import render_archive

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


@pytest.fixture
def towers() -> TowerEncoder:
    """An untrained compact encoder."""
    torch.manual_seed(0)
    return new_compact(EncoderConfig(image_size=32, dim=8), TEXTS).eval()


@pytest.fixture
def pixels() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (len(TEXTS), 3, 32, 32), dtype=torch.uint8, generator=generator)
