"""What earlier versions called things in files that outlive a version: read here, written nowhere."""

from __future__ import annotations

from typing import Any

_KEYS = {
    "reckoning": "learned_score",  # calibrations before format 5
    "knowing": "domain_digest",
    "signs": "signals",
    "home_signs": "home_signals",
    "reckoned": "learned",  # measurements of a benchmark
    "foreign_auroc": "out_of_domain_auroc",
}
_SCORES = {"reckoned": "learned"}
_TENSORS = {"acquaintance/": "domain/"}  # models before format 2


def with_new_keys(content: Any) -> Any:
    """A JSON table, and the tables in it, under the names of today."""
    if not isinstance(content, dict):
        return content
    return {_KEYS.get(key, key): with_new_keys(value) for key, value in content.items()}


def score_name(name: str) -> str:
    """What the score by which queries are judged is called today."""
    return _SCORES.get(name, name)


def tensor_name(name: str) -> str:
    """What a tensor of a model file is called today."""
    for old, new in _TENSORS.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name
