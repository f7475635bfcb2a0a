"""The benchmark of a plan: trainings, measurements and one report with every table and figure."""

from evidex.evaluation.report.plan import Plan, load_plan
from evidex.evaluation.report.runner import FinishedReport, run_benchmark

__all__ = ["FinishedReport", "Plan", "load_plan", "run_benchmark"]
