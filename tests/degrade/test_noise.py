from __future__ import annotations

import numpy as np
from scipy import stats

from evidex.degrade.noise import NORMAL_STEP, standard_normal, uniform


def test_normal_values_are_quantiles_of_the_normal_distribution() -> None:
    values = standard_normal(np.random.default_rng(0), 200_000)
    assert stats.kstest(values, "norm").pvalue > 1e-6
    assert 4.0 < np.abs(values).max() < 4.5
    assert abs(stats.kurtosis(values)) < 4.9 * np.sqrt(24 / values.size) + 0.01


def test_normal_values_are_fixed_point_numbers() -> None:
    """Whole multiples of the step: the haze field counts on exact sums."""
    scaled = standard_normal(np.random.default_rng(1), 10_000).astype(np.float64) / NORMAL_STEP
    np.testing.assert_array_equal(scaled, np.rint(scaled))


def test_all_possible_values_have_mean_zero_and_variance_one() -> None:
    values = np.unique(standard_normal(np.random.default_rng(2), 4_000_000)).astype(np.float64)
    np.testing.assert_array_equal(values, -values[::-1])
    table = stats.norm.ppf((np.arange(65536) + 0.5) / 65536)
    assert abs(np.std(table) - 1) < 1e-4  # what is lost with the tails is what the table puts right
    assert values.max() > table.max()


def test_uniform_values_fill_their_range() -> None:
    values = uniform(np.random.default_rng(3), -0.03, 0.03, 50_000)
    assert values.dtype == np.float32
    assert stats.kstest(values, stats.uniform(-0.03, 0.06).cdf).pvalue > 1e-6
