"""An epoch of pairs shows every pair once; one of images every image once."""

from pathlib import Path

import numpy as np
import pytest

from evidex.config import Config, DataConfig
from evidex.data.datasets import load_dataset
from evidex.data.sources import load_sources
from evidex.errors import ConfigError
from evidex.training.batches import epoch_batches
from evidex.training.material import mix_of


@pytest.mark.parametrize(("epoch", "steps"), [("images", 62 // 8), ("pairs", 310 // 8)])
def test_what_an_epoch_shows(archive: Path, epoch: str, steps: int) -> None:
    config = Config(data=DataConfig(path=str(archive), epoch=epoch))  # type: ignore[arg-type]
    dataset, mix = load_dataset(archive, "train"), mix_of(load_sources(config.data), config)
    assert mix.steps(8) == steps
    each = epoch == "pairs"
    batches = list(epoch_batches(dataset, batch_size=8, pairings=1, seed=0, epoch=3, mix=mix, each=each))
    captions = np.concatenate([batch.captions[0] for batch in batches])
    images = np.concatenate([batch.images for batch in batches])
    assert [batch.step for batch in batches] == list(range(3 * steps, 4 * steps))
    assert np.array_equal(dataset.image_of_caption[captions], images)
    assert len(np.unique(captions)) == len(captions) == 8 * steps  # no pair twice
    assert np.bincount(images).max() == (5 if each else 1)
    assert mix.repeats is each  # then the captions of one image are no negatives of one another


def test_pairs_and_several_captions_at_once_are_refused() -> None:
    with pytest.raises(ConfigError, match="captions_per_image"):
        Config(data=DataConfig(epoch="pairs", captions_per_image=2))
