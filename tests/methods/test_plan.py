"""The plan that compares the methods: every one that trains is in it, and it runs from one command."""

import json
from pathlib import Path

import pytest

from evidex.evaluation.study.__main__ import main
from evidex.evaluation.study.plan import load_study
from evidex.evaluation.study.runs import expand
from evidex.methods.registry import ON_CLIP_ALONE, OURS, TRAINABLE

ROOT = Path(__file__).parents[2]
PLAN = ROOT / "configs" / "study" / "methods.toml"
ON_TOWERS = [name for name in (*OURS, *TRAINABLE) if name not in ON_CLIP_ALONE]
SMALL = [
    "encoder.kind=compact", "encoder.image_size=32", "encoder.dim=16", "train.epochs=1", "train.batch_size=10",
    "train.learning_rate=1e-3",
]  # fmt: skip


def test_every_method_that_trains_has_a_row_and_only_the_method_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    runs = expand(load_study(PLAN), tmp_path, "data/rsicd")
    configs = {run.name: run.config for run in runs if run.config is not None and run.config.seed == 0}
    assert {config.method_name for config in configs.values()} == set(ON_TOWERS)
    assert len(runs) == 3 * len(configs)
    assert len({(config.encoder, config.train, config.data) for config in configs.values()}) == 1


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
