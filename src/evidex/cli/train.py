"""``evidex train CONFIG``: train, watch it live, keep the best model on val and a picture of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evidex.cli.terminal import say

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from evidex.training.loop import Report


def command(
    config: Annotated[Path, typer.Argument(help="The experiment as TOML, e.g. configs/sample.toml.")],
    override: Annotated[
        list[str] | None, typer.Option("--set", "-s", help="Change one key: section.key=value. May be repeated.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Folder of the run; overrides the file's.")] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Start anew instead of going on where the run stopped.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train the model that CONFIG describes.

    A run that was interrupted goes on from its last finished epoch. The run's folder holds the best model on
    val (model.safetensors), history.json, sources.json (what it learned from) and training_curve.png.
    """
    from evidex.config import load_config

    overrides = [*(override or []), *([f"output={output}"] if output else [])]
    settings = load_config(config, overrides)

    from evidex.cli.console import output_console, print_json, progress_bar
    from evidex.evaluation.figures import save_figure, training_curve
    from evidex.training.loop import train

    with _LiveRun() as live, progress_bar("preparing") as preparing:
        run = train(settings, restart=restart, watch=live, progress=preparing)
    curve = run.model_path.parent / "training_curve.png"
    save_figure(training_curve(run.history), curve)
    best = max((entry for entry in run.history if "val_rsum" in entry), key=lambda entry: float(entry["val_rsum"]))
    if as_json:
        sources = run.model.card.get("sources", [])
        print_json(
            {
                "model": str(run.model_path),
                "curve": str(curve),
                "best": best,
                "sources": sources,
                "history": run.history,
            }
        )
        return
    console = output_console()
    console.print(f"best on val: RSUM {best['val_rsum']:.2f} in epoch {best['epoch']} of {settings.train.epochs}")
    for line in _sources(run.model.card.get("sources", [])):
        say(line)
    say(f"model:       {run.model_path}")
    say(f"curve:       {curve}")


def _sources(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line for each source of several, and for one whose val part had to be drawn."""
    from evidex.data.val_part import RULE

    for row in rows:
        if len(rows) == 1 and not row["val_drawn"]:
            return
        learned = f"{row['captions']:,} captions" if row["role"] == "captions" else "labels"
        drawn = f", drawn: {RULE}" if row["val_drawn"] else ""
        found = f"RSUM {row['val_rsum']:.2f}" if "val_rsum" in row else f"{row['val_names']:.1%} of names"
        val = f"{found} on {row['val_images']:,} of val{drawn}"
        yield f"source:      {row['name']}, {row['images']:,} images, {learned}; {val}"


class _LiveRun:
    """A bar with the loss parts under way, and a line for each epoch that was evaluated."""

    def __init__(self) -> None:
        from evidex.cli.console import error_console

        self._console = error_console()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> _LiveRun:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, report: Report) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        if self._bar is None and self._console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("training", total=report.total_steps)
            self._bar.start()
        parts = "  ".join(f"{name} {value:.3f}" for name, value in report.parts.items())
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=report.step, description=f"epoch {report.epoch + 1}  {parts}")
        if report.epoch_summary:
            rsum = report.epoch_summary.get("val_rsum")
            measured = "" if rsum is None else f"  val RSUM {rsum:.2f}"
            self._console.print(f"epoch {report.epoch + 1}  {parts}{measured}", highlight=False, soft_wrap=True)
