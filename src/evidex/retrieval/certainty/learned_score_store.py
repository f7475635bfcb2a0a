"""A learned score as JSON: names and numbers, and the past queries in half precision as base64.

At most 512 past queries of `dim` half-precision numbers, about 0.7 MB of text at 512 dimensions; the rest is a few
kilobytes. Nothing in it is executed.
"""

from __future__ import annotations

import base64
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.retrieval.certainty.frequency import Frequency
from evidex.retrieval.certainty.learned_score import HOME_NAMES, LEARNED_NAMES, MOST_PAST_QUERIES, LearnedScore
from evidex.retrieval.certainty.logistic import Logistic
from evidex.retrieval.certainty.signals import Surroundings

_FORMAT = 1
_SIGNAL_FIELDS = ("low", "high", "mean", "scale", "weights")
_HOME_FIELDS = ("usual", "spread")
_FREQUENCY_FIELDS = tuple(field.name for field in fields(Frequency))


def learned_score_json(learned_score: LearnedScore) -> dict[str, Any]:
    """What `learned_score_from_json` reads."""
    return {
        "format": _FORMAT,
        "top": learned_score.top,
        "signals": list(LEARNED_NAMES),
        "low": learned_score.low.tolist(),
        "high": learned_score.high.tolist(),
        "mean": learned_score.mean.tolist(),
        "scale": learned_score.scale.tolist(),
        "weights": learned_score.logistic.weights.tolist(),
        "intercept": learned_score.logistic.intercept,
        "home_signals": list(HOME_NAMES),
        "usual": learned_score.usual.tolist(),
        "spread": learned_score.spread.tolist(),
        "frequency": asdict(learned_score.frequency),
        "middle": _text(learned_score.around.middle.astype("<f4")),
        "dim": learned_score.around.queries.shape[1],
        "past_queries": _text(learned_score.around.queries.astype("<f2")),
    }


def learned_score_from_json(content: Any) -> LearnedScore:
    """The learned score; ValueError, KeyError or TypeError for anything else."""
    if content["format"] != _FORMAT:
        raise ValueError(f"learned score format {content['format']!r}, this version reads {_FORMAT}")
    if content["signals"] != list(LEARNED_NAMES) or content["home_signals"] != list(HOME_NAMES):
        raise ValueError("the learned score was learned from other signals")
    numbers = {name: _numbers(content[name], len(LEARNED_NAMES), name) for name in _SIGNAL_FIELDS}
    home = {name: _numbers(content[name], len(HOME_NAMES), name) for name in _HOME_FIELDS}
    if not ((numbers["scale"] > 0).all() and (home["spread"] > 0).all()):
        raise ValueError("the learned score has a scale of zero or less")
    dim = int(content["dim"])
    middle = np.frombuffer(_bytes(content["middle"]), "<f4").astype(np.float32)
    past = np.frombuffer(_bytes(content["past_queries"]), "<f2").astype(np.float32)
    if dim < 1 or len(middle) != dim or not 0 < len(past) <= MOST_PAST_QUERIES * dim or len(past) % dim:
        raise ValueError(f"the learned score's vectors do not have {dim} dimensions")
    if not (np.isfinite(middle).all() and np.isfinite(past).all()):
        raise ValueError("the learned score's vectors are infinite or no numbers")
    intercept = _numbers([content["intercept"]], 1, "intercept")[0]
    frequency = content["frequency"]
    _numbers([frequency[name] for name in _FREQUENCY_FIELDS], len(_FREQUENCY_FIELDS), "frequencies")
    return LearnedScore(
        Surroundings(past.reshape(-1, dim), middle),
        numbers["low"],
        numbers["high"],
        numbers["mean"],
        numbers["scale"],
        Logistic(numbers["weights"], float(intercept)),
        home["usual"],
        home["spread"],
        Frequency(**{name: float(frequency[name]) for name in _FREQUENCY_FIELDS}),
        int(content["top"]),
    )


def _numbers(values: Any, count: int, name: str) -> NDArray[np.float64]:
    array = np.array(values, np.float64)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise ValueError(f"{name} of the learned score are not {count} finite numbers")
    return array


def _text(values: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def _bytes(text: Any) -> bytes:
    return base64.b64decode(text, validate=True)
