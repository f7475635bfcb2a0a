"""The paper's configurations: the literal ones set every value that it states, the practical ones say what not."""

from pathlib import Path
from typing import Any

import pytest

from evidex.checked import to_table
from evidex.config import load_config
from evidex.documents import read_toml
from evidex.errors import ConfigError

CONFIGS = Path(__file__).parents[1] / "configs"

STATED: dict[str, dict[str, Any]] = {
    "data": {"epoch": "pairs"},  # Algorithm 1: mini-batches of image–text pairs
    "encoder": {"kind": "clip", "source": "openai/clip-vit-base-patch32", "dim": 512},  # Section IV-B
    "mentors": {"image": "weights/unicom_vit_b_32.pt", "text": "thenlper/gte-base", "center": False},  # III-D, Eq. 15
    "loss": {
        "temperature": 1.0,  # Eq. 2
        "relation_temperature": 1.0,  # Eq. 16
        "uncertainty_weighting": True,  # Eq. 5
        "detach_weight": False,  # Eq. 5
        "kl": True,  # Eq. 8
        "kl_reduction": "sum",  # Eq. 7
        "annealing": "epoch",  # Eq. 8
        "b1": 40.0,  # Section IV-B
        "ucl": True,  # Eq. 19
        "ucl_target": "vacuity",  # Eq. 12
        "ucl_start_epoch": 0.0,
        "ucl_ramp_epochs": 0.0,
        "b2": 1.0,  # Section IV-B
        "relation": True,  # Eq. 19
        "b3": 1.0,  # Section IV-B
        "mask_equal_captions": False,  # below Eq. 4
    },
    "train": {"epochs": 40, "batch_size": 128, "learning_rate": 1e-6, "weight_decay": 0.1, "warmup_steps": 0},  # IV-B
}


@pytest.mark.parametrize("name", ["rsicd", "rsitmd"])
def test_the_literal_configuration_sets_every_value_that_the_paper_states(name: str) -> None:
    config = load_config(CONFIGS / f"paper_{name}.toml")
    table = to_table(config)
    assert {section: {key: table[section][key] for key in keys} for section, keys in STATED.items()} == STATED
    assert config.method_name == "elc"
    assert config.data.path == f"data/{name}"


def test_stated_values_stand_in_the_file_and_are_no_defaults_of_ours() -> None:
    """A default may change; what the paper states may not change with it."""
    written = read_toml(CONFIGS / "paper_rsicd.toml", ConfigError)
    missing = [f"{section}.{key}" for section, keys in STATED.items() for key in keys if key not in written[section]]
    assert missing == []


@pytest.mark.parametrize("name", ["rsicd", "rsitmd"])
def test_the_practical_configuration_departs_only_where_it_gives_a_reason(name: str) -> None:
    literal, practical = (to_table(load_config(CONFIGS / f"paper_{name}{end}.toml")) for end in ("", "_practical"))
    departs = {
        f"{section}.{key}"
        for section, values in literal.items()
        if isinstance(values, dict)
        for key, value in values.items()
        if practical[section][key] != value
    }
    lines = (CONFIGS / "paper_rsicd_practical.toml").read_text().splitlines()
    explained = {line.split("=")[0].strip() for line in lines if "#" in line and "=" in line}
    assert {key.partition(".")[2] for key in departs} == explained
    assert departs
