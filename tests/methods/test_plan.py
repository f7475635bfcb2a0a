"""The plan that compares the methods: every one that trains is in it, and it runs from one command."""

import dataclasses
import json
from pathlib import Path

import pytest

from evidex.config import TrainConfig
from evidex.evaluation.report.plan import load_plan, training_config
from evidex.evaluation.study.__main__ import main
from evidex.evaluation.study.plan import load_study
from evidex.evaluation.study.runs import expand
from evidex.methods.registry import GIVEN_OBJECTS, ON_CLIP_ALONE, OURS, TRAINABLE

ROOT = Path(__file__).parents[2]
PLAN = ROOT / "configs" / "study" / "methods.toml"
ON_TOWERS = [name for name in (*OURS, *TRAINABLE) if name not in (*ON_CLIP_ALONE, *GIVEN_OBJECTS)]
SMALL = [
    "encoder.kind=compact", "encoder.image_size=32", "encoder.dim=16", "train.epochs=1", "train.batch_size=10",
    "train.learning_rate=1e-3",
]  # fmt: skip


def test_every_method_that_trains_has_a_row_and_only_the_method_and_its_rates_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    runs = expand(load_study(PLAN), tmp_path, "data/rsicd")
    configs = {run.name: run.config for run in runs if run.config is not None and run.config.seed == 0}
    assert {config.method_name for config in configs.values()} == set(ON_TOWERS)
    assert len(runs) == 3 * len(configs)
    assert len({(config.encoder, _but_rates(config.train), config.data) for config in configs.values()}) == 1
    assert configs["elc"].train == configs["infonce"].train  # the recipe's, which was tuned with these two
    begin = {config.method_name for config in configs.values() if config.loss.all_negatives_epochs}
    assert begin == {"vsepp", "poly", "vse_infty", "pe_rsitr"}


def test_the_benchmark_has_the_rates_of_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    study = {run.config.method_name: run.config for run in expand(load_study(PLAN), tmp_path, "") if run.config}
    plan = load_plan(ROOT / "configs" / "benchmark_rsicd.toml")
    for model in plan.model:
        config = training_config(plan, model)
        if config.method_name not in OURS:
            assert config.train == study[config.method_name].train, model.name
            assert config.loss.all_negatives_epochs == study[config.method_name].loss.all_negatives_epochs, model.name


def test_rates_are_chosen_among_three_of_each_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    tried: dict[str, set[tuple[float, ...]]] = {}
    for run in expand(load_study(PLAN.with_name("method_rates.toml")), tmp_path, ""):
        assert run.config is not None
        tried.setdefault(run.config.method_name, set()).add(_rates(run.config.train))
    assert set(tried) == set(ON_TOWERS) - set(OURS)
    assert all(len(rates) >= 3 for rates in tried.values())
    for run in expand(load_study(PLAN), tmp_path, ""):
        if run.config is not None and run.config.method_name not in OURS:
            assert _rates(run.config.train) in tried[run.config.method_name], run.name


def _rates(config: TrainConfig) -> tuple[float, ...]:
    return (config.learning_rate, config.text_learning_rate, config.head_learning_rate, config.gradient_clip)


def _but_rates(config: TrainConfig) -> TrainConfig:
    """With the rates, and the bound of the gradient, of no method in particular."""
    return dataclasses.replace(
        config, learning_rate=1.0, text_learning_rate=1.0, head_learning_rate=1.0, gradient_clip=1.0
    )


@pytest.mark.slow
def test_the_plan_runs(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("EVIDEX_CACHE", str(tmp_path / "cache"))
    words = [str(PLAN), *SMALL, "--dataset", str(archive), "--output", str(tmp_path / "runs")]
    chosen = [f"{name}-s0" for name in ON_TOWERS]
    assert main([*words, "--only", *chosen]) == 0
    lines = [json.loads(line) for line in (tmp_path / "runs" / "results.jsonl").read_text().splitlines()]
    assert {line["name"] for line in lines} == set(chosen)
    pau = next(line for line in lines if line["name"] == "pau-s0")
    assert "own" in json.dumps(pau)
