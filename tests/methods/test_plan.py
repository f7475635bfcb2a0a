"""The plan that compares the methods: every one that trains is in it, with rates that were chosen among several."""

import dataclasses
from pathlib import Path

import pytest

from evidex.config import Config, TrainConfig
from evidex.evaluation.report.plan import load_plan, training_config
from evidex.evaluation.study.plan import load_study
from evidex.evaluation.study.runs import expand
from evidex.methods.registry import GIVEN_OBJECTS, ON_CLIP_ALONE, OURS, TRAINABLE

ROOT = Path(__file__).parents[2]
PLAN = ROOT / "configs" / "benchmark_rsicd.toml"
RATES = ROOT / "configs" / "study" / "method_rates.toml"
ON_TOWERS = {name for name in TRAINABLE if name not in (*ON_CLIP_ALONE, *GIVEN_OBJECTS)}


@pytest.fixture
def configs(monkeypatch: pytest.MonkeyPatch) -> dict[str, Config]:
    """The training configurations of the benchmark's rows by their names."""
    monkeypatch.chdir(ROOT)
    plan = load_plan(PLAN)
    return {model.name: training_config(plan, model) for model in plan.model}


def test_only_the_method_and_its_rates_differ(configs: dict[str, Config]) -> None:
    assert {config.method_name for config in configs.values()} == {*OURS, *ON_TOWERS}
    assert len({(config.encoder, _but_rates(config.train), config.data) for config in configs.values()}) == 1
    begin = {config.method_name for config in configs.values() if config.loss.all_negatives_epochs}
    assert begin == {"vsepp", "poly", "vse_infty", "pe_rsitr"}


def test_rates_are_chosen_among_three_of_each_method(configs: dict[str, Config], tmp_path: Path) -> None:
    tried: dict[str, set[tuple[float, ...]]] = {}
    for run in expand(load_study(RATES), tmp_path, ""):
        assert run.config is not None
        tried.setdefault(run.config.method_name, set()).add(_rates(run.config.train))
    assert set(tried) - set(OURS) == ON_TOWERS
    assert all(len(tried[name]) >= 3 for name in ON_TOWERS)
    for name, config in configs.items():
        if config.method_name in ON_TOWERS:
            assert _rates(config.train) in tried[config.method_name], name


def _rates(config: TrainConfig) -> tuple[float, ...]:
    return (config.learning_rate, config.text_learning_rate, config.head_learning_rate, config.gradient_clip)


def _but_rates(config: TrainConfig) -> TrainConfig:
    """With the rates, and the bound of the gradient, of no method in particular."""
    return dataclasses.replace(
        config, learning_rate=1.0, text_learning_rate=1.0, head_learning_rate=1.0, gradient_clip=1.0
    )
