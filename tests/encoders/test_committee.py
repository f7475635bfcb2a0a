"""A committee: its similarity is its members' mean, and turning a picture changes nothing where all turns are seen."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from evidex.config import EncoderConfig
from evidex.encoders.committee import CommitteeEncoder
from evidex.encoders.model import Model, holds_model, load_model
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
@pytest.mark.parametrize("views", [4, 8])
def test_all_views_of_a_picture_are_one_picture(views: int) -> None:
    committee = CommitteeEncoder([_member(0)], views=views)
    pixels = _pixels()
    seen = committee.image_features(pixels)
    torch.testing.assert_close(committee.image_features(torch.rot90(pixels, 1, (2, 3))), seen)
    mirrored = committee.image_features(pixels.flip(3))
    if views == 8:
        torch.testing.assert_close(mirrored, seen)
    else:
        assert (mirrored - seen).abs().max() > 1e-4
    assert (CommitteeEncoder([_member(0)]).image_features(pixels) - seen).abs().max() > 1e-4


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
    model = Model(CommitteeEncoder([_member(0), _member(1)], views=8), 0.1)
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


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ModelError, match="no members"):
        CommitteeEncoder([])
    with pytest.raises(ModelError, match="3 views"):
        CommitteeEncoder([_member(0)], views=3)
    with pytest.raises(ModelError, match="vocabularies"):
        CommitteeEncoder([_member(0), _member(1, texts=["sea .", "sea ."])])


@torch.no_grad()
def test_features_have_length_one_and_members_equal_weight_however_many_views() -> None:
    members = [_member(seed) for seed in range(2)]
    pixels = _pixels()
    seen = CommitteeEncoder(members, views=4).image_features(pixels)
    torch.testing.assert_close(seen.norm(dim=-1), torch.ones(5))
    for number, member in enumerate(members):
        mean = sum(member.image_features(torch.rot90(pixels, turn, (2, 3))).double() for turn in range(4)) / 4
        assert isinstance(mean, torch.Tensor)
        part = seen[:, 16 * number : 16 * (number + 1)].double() * 2**0.5
        torch.testing.assert_close(part, mean / mean.norm(dim=-1, keepdim=True), atol=1e-5, rtol=1e-4)
