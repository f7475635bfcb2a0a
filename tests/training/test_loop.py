"""Whole runs: they learn, they are reproducible, and kill -9 costs nothing but time."""

import contextlib
import dataclasses
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from evidex.checked import to_table
from evidex.config import Config, LossConfig
from evidex.data.datasets import load_dataset
from evidex.encoders.towers import TowerEncoder
from evidex.errors import DataError, ModelError, TrainingError
from evidex.evaluation.protocol import evaluate
from evidex.training.batches import epoch_batches, step_generator
from evidex.training.loop import Report, Watcher, train
from tests.training.conftest import Whole

pytestmark = pytest.mark.slow
CPU = torch.device("cpu")


def _weights(config: Config) -> dict[str, torch.Tensor]:
    return load_file(Path(config.output) / "checkpoint.safetensors")


def _same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def _elsewhere(config: Config, name: str) -> Config:
    return dataclasses.replace(config, output=str(Path(config.output).parent / name))


class _Stopped(Exception):
    pass


def _stop_in(epoch: int) -> Watcher:
    """Break off in the middle of ``epoch``."""

    def watch(report: Report) -> None:
        if report.epoch == epoch and not report.epoch_summary:
            raise _Stopped

    return watch


def test_a_run_learns(config: Config) -> None:
    """Without the weight 1 − u, which grows as evidence does, the likelihood falls well below that of guessing."""
    longer = dataclasses.replace(
        config,
        data=dataclasses.replace(config.data, augment=False),
        loss=LossConfig(temperature=0.3, relation=False, uncertainty_weighting=False, kl=False, ucl=False),
        train=dataclasses.replace(config.train, epochs=30, learning_rate=3e-3, evaluate_every=30),
    )
    run = train(longer, device=CPU)
    guessing = 2 * math.log(config.train.batch_size)
    assert run.history[0]["loss"]["total"] > 0.95 * guessing
    assert run.history[-1]["loss"]["total"] < 0.9 * guessing


def test_a_run_leaves_what_it_promises(whole: Whole) -> None:
    run, reports = whole.run, whole.reports
    assert {path.name for path in run.model_path.parent.iterdir()} == {
        "checkpoint.safetensors", "experiment.json", "history.json", "model.safetensors", "sources.json",
    }  # fmt: skip
    best = max(entry["val_rsum"] for entry in run.history)
    assert run.model.card["val"]["rsum"] == pytest.approx(best)
    assert [report.epoch for report in reports if report.epoch_summary] == [0, 1, 2]
    assert set(reports[0].parts) == {"total", "edl", "kl", "ucl"}


def test_same_seed_same_bytes_other_seed_other_weights(config: Config) -> None:
    short = dataclasses.replace(config, train=dataclasses.replace(config.train, epochs=1))
    first, second = _elsewhere(short, "a"), _elsewhere(short, "b")
    other = dataclasses.replace(_elsewhere(short, "c"), seed=2)
    for each in (first, second, other):
        train(each, device=CPU)
    assert _same(_weights(first), _weights(second))
    assert not _same(_weights(first), _weights(other))


def test_an_interrupted_run_goes_on_bit_identically(config: Config, whole: Whole) -> None:
    broken = _elsewhere(config, "broken")
    with pytest.raises(_Stopped):
        train(broken, device=CPU, watch=_stop_in(1))
    run = train(broken, device=CPU)
    assert [entry["epoch"] for entry in run.history] == [1, 2, 3]
    assert _same(_weights(whole.config), _weights(broken))


def test_a_run_that_is_saved_less_often_repeats_what_was_not(config: Config) -> None:
    rarely = dataclasses.replace(config, train=dataclasses.replace(config.train, epochs=5, checkpoint_every=2))
    whole, broken = _elsewhere(rarely, "whole"), _elsewhere(rarely, "broken")
    train(whole, device=CPU)
    begun: list[int] = []

    with pytest.raises(_Stopped):
        train(broken, device=CPU, watch=_stop_in(3))
    often = dataclasses.replace(broken, train=dataclasses.replace(broken.train, checkpoint_every=1))
    run = train(often, device=CPU, watch=lambda report: begun.append(report.epoch))  # the pace may change
    assert begun[0] == 2
    assert [entry["epoch"] for entry in run.history] == [1, 2, 3, 4, 5]
    assert _same(_weights(whole), _weights(broken))
    models = [(Path(each.output) / "model.safetensors") for each in (whole, broken)]
    assert _same(load_file(models[0]), load_file(models[1]))


def test_kill_9_at_any_moment_is_survived(config: Config, whole: Whole, tmp_path: Path) -> None:
    killed = _elsewhere(config, "killed")
    path = tmp_path / "killed.toml"
    table = to_table(killed)
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items() if not isinstance(value, dict)]
    for section, values in table.items():
        if isinstance(values, dict):
            lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    path.write_text("\n".join(lines))
    checkpoint = Path(killed.output) / "checkpoint.safetensors"
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    for _ in range(2):
        seen = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        process = subprocess.Popen([sys.executable, "-m", "evidex.training", str(path)], env=environment)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            if checkpoint.exists() and checkpoint.stat().st_mtime_ns != seen:
                break
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    train(killed, device=CPU)
    assert _same(_weights(whole.config), _weights(killed))


def test_a_checkpoint_of_another_configuration_is_refused(config: Config) -> None:
    short = dataclasses.replace(config, train=dataclasses.replace(config.train, epochs=1))
    train(short, device=CPU)
    changed = dataclasses.replace(short, loss=dataclasses.replace(short.loss, b2=0.7))
    with pytest.raises(ModelError, match=r"loss\.b2 was 0\.1, is 0\.7"):
        train(changed, device=CPU)
    train(changed, device=CPU, restart=True)


def test_a_checkpoint_of_other_captions_is_refused(config: Config, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(config.data.path, data)
    own = dataclasses.replace(
        config,
        data=dataclasses.replace(config.data, path=str(data)),
        train=dataclasses.replace(config.train, epochs=1),
    )
    model = train(own, device=CPU).model_path
    before = model.read_bytes()
    train(own, device=CPU)  # there is nothing left to do
    captions = data / "captions.json"
    captions.write_text(captions.read_text().replace(" river", " lake"))
    with pytest.raises(ModelError, match="belongs to other data"):
        train(own, device=CPU)
    assert model.read_bytes() == before


def test_a_checkpoint_with_switches_that_are_gone_opens_if_they_were_off(config: Config) -> None:
    short = dataclasses.replace(config, train=dataclasses.replace(config.train, epochs=1))
    train(short, device=CPU)
    path = Path(short.output) / "checkpoint.safetensors"
    for share, refusal in ((0.0, None), (0.5, r"data\.erase was 0\.5")):
        with safe_open(path, framework="pt") as stream:
            description = json.loads(stream.metadata()["evidex"])
        description["config"]["data"] |= {"smallest_crop": 0.75, "erase": share, "mask_words": 0.0}
        description["config"]["loss"] |= {"soft_targets": "none", "softness": 0.3, "soft_temperature": 0.1}
        save_file(_weights(short), path, {"evidex": json.dumps(description)})
        with pytest.raises(ModelError, match=refusal) if refusal else contextlib.nullcontext():
            assert len(train(short, device=CPU).history) == 1


def test_a_diverging_run_stops_with_its_step(config: Config) -> None:
    wild = dataclasses.replace(
        config, train=dataclasses.replace(config.train, learning_rate=1e30, gradient_clip=0.0, ema_decay=0.0)
    )
    with pytest.raises(TrainingError, match=r"^step \d+ \(epoch \d+\): the loss is not finite"):
        train(wild, device=CPU)


def test_a_batch_larger_than_the_split_is_refused(config: Config) -> None:
    large = dataclasses.replace(config, train=dataclasses.replace(config.train, batch_size=4096))
    with pytest.raises(DataError, match="fewer than batch_size = 4096"):
        train(large, device=CPU)


def test_how_far_pictures_are_varied_is_a_setting(config: Config) -> None:
    data = config.data
    slight, none = dataclasses.replace(data, variation="slight"), dataclasses.replace(data, augment=False)
    losses = set()
    for number, shown in enumerate((data, slight, none)):
        varied = dataclasses.replace(
            config,
            output=f"{config.output}-{number}",
            data=shown,
            train=dataclasses.replace(config.train, epochs=1),
        )
        losses.add(train(varied, device=CPU).history[0]["loss"]["total"])
    assert len(losses) == 3


def test_an_epoch_shows_each_image_once_with_its_own_captions(config: Config) -> None:
    from evidex.data.datasets import load_dataset

    dataset = load_dataset(Path(config.data.path), "train")
    batches = list(epoch_batches(dataset, batch_size=8, pairings=2, seed=0, epoch=4))
    shown = [image for batch in batches for image in batch.images.tolist()]
    assert len(shown) == len(set(shown)) == len(dataset) // 8 * 8
    for batch in batches:
        assert (dataset.image_of_caption[batch.captions] == batch.images).all()
        assert (batch.captions[0] != batch.captions[1]).all()
    again = next(epoch_batches(dataset, batch_size=8, pairings=2, seed=0, epoch=5))
    assert again.images.tolist() != batches[0].images.tolist()


def test_steps_have_generators_of_their_own() -> None:
    draws = {
        tuple(torch.rand(3, generator=step_generator(seed, step)).tolist()) for seed in (0, 1) for step in range(50)
    }
    assert len(draws) == 100


def test_what_is_kept_is_whitened_and_what_is_trained_is_not(config: Config, whole: Whole) -> None:
    flat = dataclasses.replace(config, train=dataclasses.replace(config.train, whiten=0.1))
    run = train(flat, device=CPU)
    assert _same(_weights(whole.config), _weights(flat))
    pictures, encoder = load_dataset(Path(config.data.path), "train"), run.model.encoder
    assert isinstance(encoder, TowerEncoder)
    prepared = [torch.from_numpy(encoder.prepare_image(pictures.open_image(i))) for i in range(len(pictures))]
    images = encoder.image_projection(torch.stack(prepared))
    assert images.mean(0).norm() < 1e-3 * images.norm(dim=1).mean(), "the mean training picture must be the origin"
    measured = evaluate(run.model, load_dataset(Path(config.data.path), "val"), absent=False)
    assert measured.recall.rsum == pytest.approx(max(epoch["val_rsum"] for epoch in run.history), abs=0.5)
