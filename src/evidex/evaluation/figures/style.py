"""One look for all figures: dark on white, few lines, colours that colour-blind readers can tell apart."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from evidex.files import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Parameters = ParamSpec("Parameters")

INK = "#222222"
MUTED = "#6b6b6b"
GRID = "#e4e4e4"
# Okabe and Ito's palette, darkest first; right and wrong differ in lightness too and always carry a mark.
BLUE, ORANGE, GREEN, PURPLE, SKY, RED, GOLD = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#B8A200",
)
CYCLE = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, INK)
RIGHT, WRONG = GREEN, RED
CLEAN, DEGRADED = BLUE, RED

_RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.0,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


def styled(draw: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Let a function draw in the common style, whatever the caller's matplotlib settings are."""

    @wraps(draw)
    def inner(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Figure:
        with style():
            return draw(*args, **kwargs)

    return inner


@contextmanager
def style() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches, outside pyplot so that nothing global keeps it alive."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png_bytes(figure: Figure, dpi: int = 150) -> bytes:
    """The figure as PNG; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    with style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)  # foreign scripts become boxes
        figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()


def save_figure(figure: Figure, path: Path, dpi: int = 150) -> Path:
    write_atomic(path, png_bytes(figure, dpi))
    return path


def bare(axes: Axes) -> None:
    """Take away ticks, grid and frame, as pictures and texts want it."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def framed(axes: Axes, colour: str, width: float = 3.0) -> None:
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color(colour)
        spine.set_linewidth(width)


def label_ends(axes: Axes, lines: Sequence[tuple[float, float, str, str]]) -> None:
    """Write names (x, y, name, colour) right of where their lines end, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    gap = (high - low) * 0.055
    placed: list[float] = []
    for x, y, name, colour in sorted(lines, key=lambda line: line[1]):
        height = max([y, *(other + gap for other in placed[-1:])])
        placed.append(height)
        axes.annotate(
            name,
            (x, height),
            xytext=(6, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            annotation_clip=False,
        )
