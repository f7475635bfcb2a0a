"""Augmentation keeps pictures pictures; degradation follows its equations in the mean."""

import torch

from evidex.training.augment import augment, degrade, erase, mask_words


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


def test_erasing_blanks_one_rectangle_of_its_share_of_pictures() -> None:
    pictures = _pictures(count=300, size=20)
    erased = erase(pictures, 0.4, torch.Generator().manual_seed(3))
    changed = (erased != pictures.float()).any(1)
    touched = changed.flatten(1).any(1)
    assert 0.3 < touched.float().mean() < 0.5
    for index in touched.nonzero().flatten().tolist():
        rows, columns = changed[index].any(1), changed[index].any(0)
        inside = rows[:, None] & columns
        mean = pictures[index].float().mean((1, 2))
        assert torch.equal(erased[index][:, inside], mean[:, None].expand(-1, int(inside.sum())))
        assert torch.equal(erased[index][:, ~inside], pictures[index].float()[:, ~inside])
        assert 3 <= rows.sum() <= 11  # a fifth to a half of 20, give or take a pixel
        assert 3 <= columns.sum() <= 11


def test_hidden_words_are_inside_a_text_and_as_many_as_asked() -> None:
    lengths = torch.randint(3, 20, (500,), generator=torch.Generator().manual_seed(0))
    attention = (torch.arange(20) < lengths[:, None]).long()
    ids = attention * 7
    hidden = mask_words({"input_ids": ids, "attention_mask": attention}, 0.2, 99, torch.Generator().manual_seed(1))
    masked = hidden["input_ids"] == 99
    assert torch.equal(hidden["attention_mask"], attention)
    assert torch.equal(hidden["input_ids"][~masked], ids[~masked])
    assert not masked[:, 0].any()
    assert not masked[torch.arange(500), lengths - 1].any()
    assert not masked[attention == 0].any()
    assert 0.17 < masked.sum() / (lengths - 2).sum() < 0.23


def test_a_smaller_crop_shows_less_of_the_scene() -> None:
    ramp = torch.linspace(0, 255, 64).expand(200, 3, 64, 64)
    spans = []
    for smallest in (0.9, 0.4):
        varied = augment(ramp, torch.Generator().manual_seed(0), smallest_crop=smallest)
        spans.append((varied.flatten(2).amax(-1) - varied.flatten(2).amin(-1)).mean())
    assert spans[1] < 0.9 * spans[0]
