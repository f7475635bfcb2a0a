"""The experiment engine: tasks after what they need, trainings once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from evidex.config import Config, DataConfig
from evidex.errors import ConfigError
from evidex.evaluation.engine.digests import config_digest
from evidex.evaluation.engine.tasks import alone, results
from evidex.evaluation.engine.training import TRAINED, is_trained


@dataclass(frozen=True)
class _Task:
    key: str
    needs: tuple[str, ...] = ()


TASKS = [_Task("pupil", ("both", "gone")), _Task("both", ("a", "b")), _Task("a"), _Task("b"), _Task("alone")]


def _write(task: _Task, folder: Path) -> str:
    """Fails where something that the task needs is not there."""
    for need in task.needs:
        if need != "gone":
            (folder / need).read_text()
    (folder / task.key).write_text("done")
    return task.key


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_task_begins_when_all_it_needs_has_ended(tmp_path: Path, jobs: int) -> None:
    keys = list(results(TASKS, partial(_write, folder=tmp_path), jobs))
    assert sorted(keys) == sorted(task.key for task in TASKS)


def test_no_tasks_are_no_results() -> None:
    assert list(results([], partial(_write, folder=Path()), 2)) == []


def test_tasks_in_a_circle_are_refused_before_the_first_begins(tmp_path: Path) -> None:
    circle = [_Task("free"), _Task("a", ("b",)), _Task("b", ("c",)), _Task("c", ("a",))]
    with pytest.raises(ConfigError, match="needs itself"):
        list(results(circle, partial(_write, folder=tmp_path), 1))
    assert not list(tmp_path.iterdir())


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    with alone(tmp_path / "new"), pytest.raises(ConfigError, match="in use"), alone(tmp_path / "new"):
        pass
    with alone(tmp_path / "new"):
        pass


def test_a_digest_tells_settings_and_data_and_no_places() -> None:
    plain = config_digest(Config(), "data")
    assert config_digest(Config(output="elsewhere"), "data") == plain
    assert config_digest(Config(seed=1), "data") != plain
    assert config_digest(Config(), "other") != plain
    assert config_digest(Config(data=DataConfig(variation="slight")), "data") != plain


def test_a_training_under_another_digest_is_none(tmp_path: Path) -> None:
    assert not is_trained(tmp_path, "a")
    (tmp_path / TRAINED).write_text('{"digest": "a"}')
    assert is_trained(tmp_path, "a")
    assert not is_trained(tmp_path, "b")
    (tmp_path / TRAINED).write_text("{}")  # written before notes held one
    assert is_trained(tmp_path, "b")
