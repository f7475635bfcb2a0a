"""Measurements of several seeds as mean and spread, row by row of the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evidex.config import Config
from evidex.documents import read_json
from evidex.errors import DataError
from evidex.evaluation.judge import OWN
from evidex.evaluation.query_uncertainty import SCORE_NAMES
from evidex.evaluation.report.jobs import Job, Measure, Work
from evidex.evaluation.report.plan import WHOLE, Plan
from evidex.evaluation.report.work import ReportPlace
from evidex.old_names import with_new_keys
from evidex.retrieval.certainty.learned_score import LEARNED

RECALL_COLUMNS = ("i2t_1", "i2t_5", "i2t_10", "t2i_1", "t2i_5", "t2i_10", "rsum")
Reader = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Number:
    """Mean of the seeds and their standard deviation (n - 1); no spread of one seed, no mean of none."""

    mean: float | None
    spread: float | None = None
    seeds: int = 1

    @staticmethod
    def of(values: Iterable[float | None]) -> Number:
        known = [value for value in values if value is not None]
        if not known:
            return Number(None, None, 0)
        mean = math.fsum(known) / len(known)
        if len(known) == 1:
            return Number(mean)
        return Number(mean, math.sqrt(math.fsum((x - mean) ** 2 for x in known) / (len(known) - 1)), len(known))


@dataclass(frozen=True)
class RecallRow:
    """A row of recalls in per cent: R@1, R@5, R@10 image to text, text to image, RSUM."""

    name: str
    cells: tuple[Number, ...]
    seeds: int
    ours: bool = False
    parts: tuple[bool, ...] = ()
    note: str = ""
    """Where the loss departs from the paper's, beside the name."""


@dataclass(frozen=True)
class ScoreRow:
    """What one uncertainty score is worth, by column of ``SCORE_COLUMNS``."""

    model: str
    condition: str
    direction: str
    score: str
    cells: tuple[Number, ...]


SCORE_COLUMNS: Mapping[str, Reader] = {
    "error_auroc_1": lambda quality: quality["error_auroc"]["1"],
    "error_auroc_10": lambda quality: quality["error_auroc"]["10"],
    "degraded_auroc": lambda quality: quality["degraded_auroc"],
    "removed_class_auroc": lambda quality: quality["removed_class_auroc"],
    "out_of_domain_auroc": lambda quality: quality["out_of_domain_auroc"],
    "aurc_1": lambda quality: quality["aurc"]["1"],
    "aurc_10": lambda quality: quality["aurc"]["10"],
}
PARTS = ("EDL", "UW", "KL", "RL", "UCL")


class Results:
    """Reads what the jobs measured."""

    def __init__(self, plan: Plan, work: Work, place: ReportPlace) -> None:
        self.plan, self.work, self.place = plan, work, place
        self._read: dict[str, dict[str, Any]] = {}

    def measured(self, digest: str, name: str) -> dict[str, Any]:
        """The JSON of measurement ``name`` of job ``digest``."""
        job = self.work.jobs[digest]
        measure = next(measure for measure in job.measures if measure.name == name)
        path = str(self.place.measured(job, measure))
        if path not in self._read:
            self._read[path] = with_new_keys(read_json(path, DataError))
        return self._read[path]

    def our_jobs(self) -> tuple[Job, ...]:
        return tuple(self.work.jobs[digest] for digest in self.work.comparison[self.plan.ours])

    def kept_measure(self, model: str, name: str) -> tuple[Job, Measure]:
        """The measurement of the first seed of ``model``, ours or its rival, whose features are kept."""
        job = self.work.jobs[self.work.comparison[model][0]]
        return job, next(measure for measure in job.measures if measure.name == name)

    def comparison(self, condition: str) -> list[RecallRow]:
        """Rows of Table I (``clean``) or II (``noisy``), the refined row after ours."""
        rows = []
        for name, digests in self.work.comparison.items():
            ours = name == self.plan.ours
            found = [self.measured(digest, condition) for digest in digests]
            config = self.work.jobs[digests[0]].config
            note = "" if config is None else departures(config)
            rows.append(replace(recall_row(name, [entry["recall"] for entry in found], ours=ours), note=note))
            if ours:
                refined = [step_at(entry, self.plan.refinement.ratio)["recall"] for entry in found]
                rows.append(replace(recall_row(self.plan.refinement.name, refined, ours=True), note=note))
        return rows

    def ablation(self, condition: str) -> list[RecallRow]:
        key = "clean_recall" if condition == "clean" else "recall"
        rows = []
        for name, digests in self.work.ablation.items():
            config = self.work.jobs[digests[0]].config
            assert config is not None
            loss = config.loss
            parts = (True, loss.uncertainty_weighting, loss.kl, loss.relation, loss.ucl)
            found = [self.measured(digest, "noisy")[key] for digest in digests]
            rows.append(recall_row(name, found, ours=name == WHOLE, parts=parts))
        return rows

    def refinement(self) -> list[RecallRow]:
        """Rows of Tables V and VI: without refinement, RS-TTA, generic."""
        plan = self.plan.refinement
        digests = self.work.comparison[self.plan.ours]
        noisy = [self.measured(digest, "noisy") for digest in digests]
        rows = [
            recall_row(self.plan.ours, [entry["recall"] for entry in noisy]),
            recall_row(plan.name, [step_at(entry, plan.ratio)["recall"] for entry in noisy], ours=True),
        ]
        if plan.generic:
            found = [step_at(self.measured(digest, "generic"), plan.ratio)["recall"] for digest in digests]
            rows.append(recall_row(plan.generic_name, found))
        return rows

    def deferral(self) -> dict[str, dict[float, list[float]]]:
        """RSUM of every seed by kind of refinement and ratio (Fig. 11)."""
        kinds = {"RS-TTA": "noisy"} | ({"generic": "generic"} if self.plan.refinement.generic else {})
        curves: dict[str, dict[float, list[float]]] = {}
        for title, name in kinds.items():
            curve = curves.setdefault(title, {})
            for job in self.our_jobs():
                for step in self.measured(job.digest, name)["deferral"]:
                    curve.setdefault(float(step["ratio"]), []).append(float(step["recall"]["rsum"]))
        return curves

    def sensitivity(self, condition: str) -> dict[str, dict[float, list[float]]]:
        """RSUM of every seed by loss weight and value (Figs. 9 and 10)."""
        key = "clean_recall" if condition == "clean" else "recall"
        return {
            name: {
                value: [float(self.measured(digest, "noisy")[key]["rsum"]) for digest in digests]
                for value, digests in points.items()
            }
            for name, points in self.work.sensitivity.items()
        }

    def scores(self) -> list[ScoreRow]:
        """Every uncertainty score of every compared model, clean and noisy, in both directions."""
        rows = []
        for model, digests in self.work.comparison.items():
            for condition in ("clean", "noisy"):
                found = [self.measured(digest, condition)["uncertainty"] for digest in digests]
                for direction in ("i2t", "t2i"):
                    for score in (*SCORE_NAMES, OWN, LEARNED):
                        qualities = [entry[direction]["scores"].get(score) for entry in found]
                        if None in qualities:
                            continue  # the learned score needs enough right and wrong answers
                        cells = [Number.of(read(quality) for quality in qualities) for read in SCORE_COLUMNS.values()]
                        rows.append(ScoreRow(model, condition, direction, score, tuple(cells)))
        return rows


def departures(config: Config) -> str:
    """Where ELC's loss is not that of Eqs. 12 and 19 with b2 = b3 = 1, as short as a name; empty if it is."""
    if config.method_name != "elc":
        return ""
    loss = config.loss
    ucl = [f"UCL by {loss.ucl_target}"] if loss.ucl_target != "vacuity" else []
    ucl += [f"b2 = {loss.b2:g}"] if loss.b2 != 1 else []
    relation = [f"b3 = {loss.b3:g}"] if loss.b3 != 1 else []
    return ", ".join([*(ucl if loss.ucl else ["no UCL"]), *(relation if loss.relation else ["no RL"])])


def recall_row(
    name: str, recalls: Sequence[Mapping[str, Any]], *, ours: bool = False, parts: tuple[bool, ...] = ()
) -> RecallRow:
    cells = tuple(Number.of(values) for values in zip(*(recall_values(recall) for recall in recalls), strict=True))
    return RecallRow(name, cells, len(recalls), ours, parts)


def recall_values(recall: Mapping[str, Any]) -> list[float]:
    by_cutoff = [recall[side][k] for side in ("i2t", "t2i") for k in ("1", "5", "10")]
    return [float(value) for value in (*by_cutoff, recall["rsum"])]


def step_at(measured: Mapping[str, Any], ratio: float) -> Mapping[str, Any]:
    """The deferral step at ``ratio``."""
    step: Mapping[str, Any] = next(step for step in measured["deferral"] if step["ratio"] == ratio)
    return step
