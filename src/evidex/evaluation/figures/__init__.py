"""The figures of a report. Every function returns a matplotlib figure; ``save_figure`` and ``png_bytes`` render it."""

from evidex.evaluation.figures.curves import deferral_curve, risk_coverage_curves, sensitivity_curves, training_curve
from evidex.evaluation.figures.distributions import UncertaintyPanel, gaussian_kde, uncertainty_histograms
from evidex.evaluation.figures.examples import (
    Answers,
    Extremes,
    degradation_steps,
    image_query_examples,
    sample_sheet,
    text_query_examples,
    uncertainty_extremes,
)
from evidex.evaluation.figures.simplex import alignment_pairs, dirichlet_pair
from evidex.evaluation.figures.style import png_bytes, save_figure

__all__ = [
    "Answers",
    "Extremes",
    "UncertaintyPanel",
    "alignment_pairs",
    "deferral_curve",
    "degradation_steps",
    "dirichlet_pair",
    "gaussian_kde",
    "image_query_examples",
    "png_bytes",
    "risk_coverage_curves",
    "sample_sheet",
    "save_figure",
    "sensitivity_curves",
    "text_query_examples",
    "training_curve",
    "uncertainty_extremes",
    "uncertainty_histograms",
]
