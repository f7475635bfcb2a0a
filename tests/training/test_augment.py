"""Augmentation keeps pictures pictures; degradation follows its equations in the mean."""

import pytest
import torch

from evidex.config import Config, DataConfig
from evidex.errors import ConfigError
from evidex.training.augment import augment, degrade


def _pictures(count: int = 16, size: int = 24) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_augmented_pictures_stay_in_range_and_differ() -> None:
    pictures = _pictures()
    varied = augment(pictures, torch.Generator().manual_seed(1))
    assert varied.shape == pictures.shape
    assert (varied >= 0).all()
    assert (varied <= 255).all()
    assert all((varied[i] - pictures[i].float()).abs().mean() > 1 for i in range(len(pictures)))


def test_the_generator_alone_decides() -> None:
    one = augment(_pictures(), torch.Generator().manual_seed(1))
    assert torch.equal(one, augment(_pictures(), torch.Generator().manual_seed(1)))
    assert not torch.equal(one, augment(_pictures(), torch.Generator().manual_seed(2)))


def test_a_flat_picture_stays_flat_up_to_colour() -> None:
    flat = torch.full((8, 3, 16, 16), 100, dtype=torch.uint8)
    varied = augment(flat, torch.Generator().manual_seed(0))
    assert varied.flatten(2).std(-1).max() < 1e-3
    assert varied[:, :, 0, 0].std() > 1


def test_degradation_touches_its_share_and_brightens_dark_scenes() -> None:
    dark = torch.zeros(400, 3, 16, 16, dtype=torch.uint8)
    hazy = degrade(dark, 0.25, torch.Generator().manual_seed(0))
    touched = hazy.flatten(1).mean(1) > 0
    assert 0.17 < touched.float().mean() < 0.33
    haze = hazy[touched].mean().item() / 255
    assert 0.17 < haze < 0.40  # (1 − t) · 0.85 with t in [0.55, 0.80], gain and bias around it
    assert torch.equal(degrade(dark, 0.0, torch.Generator().manual_seed(0)), dark.float())


def test_stripes_are_shared_along_rows() -> None:
    grey = torch.full((64, 3, 48, 48), 100, dtype=torch.uint8)
    striped = degrade(grey, 1.0, torch.Generator().manual_seed(3)) / 255
    rows = striped.mean((1, 3))
    columns = striped.mean((1, 2))
    assert rows.diff(dim=1).std() > 3 * columns.diff(dim=1).std()


def test_a_variation_of_what_is_not_varied_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"data\.variation = \"slight\" with data\.augment = false varies nothing"):
        Config(data=DataConfig(augment=False, variation="slight"))
