"""A committee: its similarity is its members' mean, and it is one model."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from evidex.config import EncoderConfig
from evidex.encoders.committee import CommitteeEncoder
from evidex.encoders.model import Model, load_model
from evidex.encoders.model_file import holds_model
from evidex.encoders.towers import TowerEncoder, new_compact
from evidex.errors import ModelError

TEXTS = ["many planes are parked in an airport .", "a river ."]


def _member(seed: int, size: int = 32, texts: list[str] = TEXTS) -> TowerEncoder:
    torch.manual_seed(seed)
    return new_compact(EncoderConfig(image_size=size, dim=16), texts).eval()


def _pixels(count: int = 5, size: int = 32) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def test_its_similarity_is_the_mean_of_its_members() -> None:
    members = [_member(seed) for seed in range(3)]
    committee = CommitteeEncoder(members)
    pixels, tokens = _pixels(), members[0].tokenize(TEXTS)
    apart = torch.stack([m.image_features(pixels) @ m.text_features(tokens).T for m in members]).mean(0)
    together = committee.image_features(pixels) @ committee.text_features(tokens).T
    torch.testing.assert_close(together, apart)
    assert committee.dim == 48


@torch.no_grad()
def test_members_of_other_sizes_see_the_picture_at_their_own() -> None:
    large, small = _member(0, 64), _member(1, 32)
    committee = CommitteeEncoder([small, large])
    assert committee.image_size == 64
    flat = Image.new("RGB", (90, 40), (20, 200, 90))  # a flat picture is the same at every size
    seen = committee.image_features(torch.from_numpy(committee.prepare_image(flat))[None])
    alone = [m.image_features(torch.from_numpy(m.prepare_image(flat))[None]) for m in (small, large)]
    torch.testing.assert_close(seen, torch.cat(alone, -1) / np.sqrt(2), atol=1e-5, rtol=1e-4)


def test_it_is_saved_and_loaded_as_one_model(tmp_path: Path) -> None:
    path = tmp_path / "committee.safetensors"
    model = Model(CommitteeEncoder([_member(0), _member(1)]), 0.1)
    model.save(path)
    again = load_model(path, device="cpu")
    assert again.fingerprint == model.fingerprint
    np.testing.assert_allclose(again.encode_texts(TEXTS), model.encode_texts(TEXTS), atol=1e-6)
    np.testing.assert_allclose(
        again.encode_pixels(_pixels().numpy()), model.encode_pixels(_pixels().numpy()), atol=1e-3
    )
    assert holds_model(path)
    (tmp_path / "none.safetensors").write_bytes(b"no model")
    assert not holds_model(tmp_path / "none.safetensors")
    assert not holds_model(tmp_path / "missing.safetensors")


def test_files_of_committees_name_one_view_and_others_are_refused_in_words() -> None:
    """Files of before hold it, and it is part of their fingerprint."""
    spec = CommitteeEncoder([_member(0)]).spec()
    assert spec["views"] == 1
    assert CommitteeEncoder.from_spec(spec).spec() == spec
    with pytest.raises(ModelError, match=r"8 views.* is read no more; put its members together anew"):
        CommitteeEncoder.from_spec({**spec, "views": 8})


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ModelError, match="no members"):
        CommitteeEncoder([])
    with pytest.raises(ModelError, match="vocabularies"):
        CommitteeEncoder([_member(0), _member(1, texts=["sea .", "sea ."])])
