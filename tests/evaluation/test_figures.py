from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy import stats

from evidex.errors import InputError
from evidex.evaluation import selective
from evidex.evaluation.figures import (
    Answers,
    Extremes,
    UncertaintyPanel,
    alignment_pairs,
    deferral_curve,
    degradation_steps,
    dirichlet_pair,
    gaussian_kde,
    image_query_examples,
    png_bytes,
    risk_coverage_curves,
    sample_sheet,
    save_figure,
    sensitivity_curves,
    text_query_examples,
    training_curve,
    uncertainty_extremes,
    uncertainty_histograms,
)
from evidex.evaluation.figures.simplex import _density_grid
from evidex.evaluation.figures.style import RIGHT, WRONG

RNG = np.random.default_rng(0)


def rendered(figure: Any) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(png_bytes(figure, dpi=60))).convert("RGB"))


def picture(colour: str = "steelblue") -> Image.Image:
    return Image.new("RGB", (32, 24), colour)


def history(epochs: int) -> list[dict[str, Any]]:
    return [
        {"epoch": e, "loss": {"total": 2 / e, "edl": 1 / e}, **({"val_rsum": 10.0 * e} if e % 2 else {})}
        for e in range(1, epochs + 1)
    ]


def test_training_curve_shows_every_part_and_the_best_epoch() -> None:
    figure = training_curve(history(9))
    losses, rsum = figure.axes
    assert {text.get_text() for text in losses.texts} == {"total", "edl"}
    np.testing.assert_allclose(np.asarray(losses.lines[0].get_ydata(), dtype=float), [2 / e for e in range(1, 10)])
    np.testing.assert_allclose(np.asarray(rsum.lines[0].get_xdata(), dtype=float), [1, 3, 5, 7, 9])
    assert [text.get_text() for text in rsum.texts] == ["best 90.0"]


@pytest.mark.parametrize("epochs", [1, 60])
def test_training_curve_of_any_length_renders(epochs: int) -> None:
    assert rendered(training_curve(history(epochs))).std() > 0


def test_an_empty_history_is_refused() -> None:
    with pytest.raises(InputError, match="empty"):
        training_curve([])


def test_answers_are_framed_by_right_and_wrong() -> None:
    example = Answers("two planes", [picture(), picture(), picture()], [False, True, False], 0.25)
    figure = text_query_examples([example])
    frames = [axes.spines["left"].get_edgecolor() for axes in figure.axes[1:]]
    expected = [matplotlib.colors.to_rgba(colour) for colour in (WRONG, RIGHT, WRONG)]
    assert frames == expected
    # The mark repeats what the colour says, for readers who cannot tell the colours apart.
    assert [axes.get_title(loc="left") for axes in figure.axes[1:]] == ["1 ✗", "2 ✓", "3 ✗"]
    assert rendered(figure).std() > 0


def test_several_methods_answer_a_query_that_is_shown_once() -> None:
    asked = picture()
    ours, rival = (Answers(asked, ["a pond", "a lake"], [True, False], 0.5, name) for name in ("ELC0", "InfoNCE"))
    figure = image_query_examples([ours, rival])
    assert [len(axes.images) for axes in figure.axes] == [1, 0, 0, 0]
    sentence = "two planes"
    figure = text_query_examples([Answers(sentence, [picture()], [True], 0.5, name) for name in ("ELC0", "InfoNCE")])
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert texts == ["two planes", "ELC0   u = 0.500", "InfoNCE   u = 0.500"]


def test_sentences_are_marked_by_right_and_wrong() -> None:
    figure = image_query_examples([Answers(picture(), ["a $5 pond", "a lake"], [True, False])])
    texts = {text.get_text(): text.get_color() for text in figure.axes[1].texts}
    assert texts["1 ✓"] == RIGHT
    assert texts["2 ✗"] == WRONG
    assert rendered(figure).std() > 0


@pytest.mark.parametrize("caption", ["", "$x_1$ \\frac{", "many " * 80, "渔港 ‮ harbour"])
def test_any_caption_can_be_drawn(caption: str) -> None:
    assert rendered(sample_sheet([picture()], [caption])).std() > 0
    assert rendered(image_query_examples([Answers(picture(), [caption] * 5, [True] * 5)])).std() > 0


def test_a_sheet_needs_a_caption_a_picture() -> None:
    with pytest.raises(InputError, match="one caption a picture"):
        sample_sheet([picture()], [])


def test_density_estimate_equals_scipy() -> None:
    values, grid = RNG.gamma(3.0, size=500), np.linspace(-1, 12, 77)
    np.testing.assert_allclose(gaussian_kde(values, grid), stats.gaussian_kde(values)(grid), rtol=1e-10)


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 2.0]])
def test_density_needs_spread(values: list[float]) -> None:
    with pytest.raises(InputError, match="spread"):
        gaussian_kde(values, [0.0, 1.0])


def test_histograms_report_the_separation() -> None:
    panel = UncertaintyPanel("Images", np.array([0.1, 0.2, 0.3]), np.array([0.25, 0.4, 0.5]))
    figure = uncertainty_histograms([panel])
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == "AUROC 0.89"
    assert [text.get_text() for text in legend.get_texts()] == ["clean (3)", "degraded (3)"]


def test_histograms_survive_degenerate_groups() -> None:
    constant = UncertaintyPanel("constant", np.full(5, 0.3), np.full(5, 0.3))
    none = UncertaintyPanel("none degraded", RNG.random(30), np.array([]))
    assert rendered(uncertainty_histograms([constant, none, none])).std() > 0


def test_simplex_density_equals_scipy() -> None:
    alpha = np.array([2.0, 3.5, 6.0])
    x, y, density = _density_grid(alpha, points=41)
    height = np.sqrt(3) / 2
    checked = 0
    for j in range(41):
        for i in range(41):
            third = y[j] / height
            second = x[i] - third / 2
            p = np.array([1 - second - third, second, third])
            if (p > 1e-9).all():
                assert density[j, i] == pytest.approx(stats.dirichlet.pdf(p / p.sum(), alpha), rel=1e-9)
                checked += 1
            elif (p < -1e-9).any():
                assert density[j, i] == 0.0
    assert checked > 500


def test_the_two_dirichlets_must_be_equally_uncertain() -> None:
    assert rendered(dirichlet_pair()).std() > 0
    with pytest.raises(InputError, match="equal uncertainty"):
        dirichlet_pair((1, 1, 1), (2, 2, 2))


def test_sensitivity_shows_mean_and_choice() -> None:
    figure = sensitivity_curves({"b1": {40: [200.0, 210.0], 10: [190.0, 190.0]}, "b2": {1.0: 200.0}}, {"b1": 40})
    np.testing.assert_allclose(np.asarray(figure.axes[0].lines[0].get_ydata(), dtype=float), [190.0, 205.0])
    np.testing.assert_allclose(np.asarray(figure.axes[0].lines[1].get_ydata(), dtype=float), [205.0])
    assert len(figure.axes[1].lines) == 1


def test_other_figures_render() -> None:
    correct = RNG.random(60) < 0.4
    result = selective(RNG.random(60), correct)
    figures = [
        deferral_curve({"ELC": {0: 175.0, 0.1: [178.0, 179.0]}, "generic": {0: 175.0, 0.1: 174.0}}),
        risk_coverage_curves({"Image queries": {"vacuity": result}, "Text queries": {"margin": result}}),
        risk_coverage_curves({"one": {"vacuity": selective([0.1], [True])}}),
        uncertainty_extremes(
            [
                Extremes("Images", [(picture(), 0.1)] * 2, [(picture("tan"), 0.6)] * 3),
                Extremes("Texts", [("a pond .", 0.1)], [("many trees .", 0.5)]),
            ]
        ),
        degradation_steps([[("original", picture()), ("haze", picture("grey"))], [("original", picture())]]),
        degradation_steps([[("original", picture()), ("haze", picture("grey"))]], ["a $5 pond\nmany " * 9]),
        alignment_pairs(),
    ]
    for figure in figures:
        assert rendered(figure).std() > 0


def test_the_callers_settings_neither_leak_in_nor_change() -> None:
    plain = png_bytes(training_curve(history(4)), dpi=50)
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30.0}):
        assert png_bytes(training_curve(history(4)), dpi=50) == plain
        assert matplotlib.rcParams["font.size"] == 30.0


def test_a_saved_figure_is_a_png(tmp_path: Path) -> None:
    path = save_figure(training_curve(history(3)), tmp_path / "deep" / "curve.png")
    with Image.open(path) as image:
        assert image.format == "PNG"
