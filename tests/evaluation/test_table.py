from __future__ import annotations

import io
import re
from dataclasses import replace

import numpy as np
from rich.console import Console

from evidex.evaluation.protocol import evaluate_features
from evidex.evaluation.result import Evaluation
from evidex.evaluation.scene_names import SceneNames
from evidex.evaluation.table import print_evaluation


def printed(evaluation: Evaluation, width: int = 100) -> str:
    stream = io.StringIO()
    print_evaluation(evaluation, Console(file=stream, width=width, force_terminal=True, color_system="standard"))
    return stream.getvalue()


def evaluated(degraded: bool) -> Evaluation:
    rng = np.random.default_rng(0)
    images, texts = (rng.normal(size=(rows, 8)).astype(np.float32) for rows in (30, 60))
    images, texts = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (images, texts))
    mask = np.arange(30) < 15 if degraded else None
    return evaluate_features(images, texts, np.repeat(np.arange(30), 2), 0.1, mask)


def test_every_number_of_recall_is_shown() -> None:
    found = evaluated(False)
    text = printed(found)
    for value in (*found.recall.i2t.values(), *found.recall.t2i.values(), found.recall.rsum):
        assert f"{value:.2f}" in text


def test_the_best_score_of_a_column_is_bold() -> None:
    found = evaluated(False)
    bold = set(re.findall(r"\x1b\[1m([0-9.]+)\x1b", printed(found)))
    assert f"{max(quality.error_auroc[1] for quality in found.i2t.quality.values()):.3f}" in bold
    assert f"{min(quality.aurc[10] for quality in found.t2i.quality.values()):.3f}" in bold
    assert f"{min(quality.error_auroc[1] for quality in found.i2t.quality.values()):.3f}" not in bold


def test_what_was_not_measured_has_no_column() -> None:
    assert "degraded" not in printed(evaluated(False))
    assert "degraded" in printed(evaluated(True))


def test_the_tables_fit_a_terminal_of_eighty_columns() -> None:
    assert "…" not in printed(evaluated(True), width=80)


def test_what_asking_by_name_finds_is_said_with_the_worst() -> None:
    found = SceneNames({"port": 0.5, "park": 1.0, "pond": 0.9, "river": 0.8})
    text = re.sub(
        r"\x1b\[[0-9;]*m|\s+",
        lambda match: " " if match[0].isspace() else "",
        printed(replace(evaluated(False), scene_names=found)),
    )
    assert "each of the 4 scene labels, 80.0% have that label (least: port 50%, river 80%, pond 90%)." in text
    assert "Asked by name" not in printed(evaluated(False))
