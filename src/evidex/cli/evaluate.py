"""evidex evaluate: how well a model retrieves on a split, and what its uncertainty is worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evidex.cli.terminal import say

if TYPE_CHECKING:
    from evidex.data.datasets import Dataset
    from evidex.encoders.model import Model
    from evidex.evaluation.deferral import Refinements
    from evidex.evaluation.result import Evaluation


def command(
    dataset: Annotated[Path, typer.Option(help="Dataset folder, or its captions file.")],
    model: Annotated[str, typer.Option(help="Model file, run folder or name.")] = "compact",
    tokenizer: Annotated[
        str, typer.Option(help="Any CLIP's folder or hub name, for a model file of open_clip or OpenAI.")
    ] = "",
    activation: Annotated[
        str, typer.Option(help="Of such a file: quick_gelu (OpenAI's) or gelu (open_clip's plain names, RemoteCLIP).")
    ] = "quick_gelu",
    split: Annotated[str, typer.Option(help="Which split; choose everything on val, use test once.")] = "val",
    noisy: Annotated[bool, typer.Option("--noisy", help="Degrade half of the images and their captions.")] = False,
    noisy_seed: Annotated[int, typer.Option(min=0, help="Which half, and how; same seed, same split.")] = 0,
    defer: Annotated[
        list[float] | None,
        typer.Option(min=0.0, max=1.0, help="Refine this share of the most uncertain queries; may be repeated."),
    ] = None,
    defer_by: Annotated[
        Literal["vacuity", "belief"], typer.Option(help="Which uncertainty chooses what --defer refines.")
    ] = "vacuity",
    absent: Annotated[bool, typer.Option(help="Ask for scenes taken away and for what is out of domain, too.")] = True,
    twins: Annotated[bool, typer.Option(help="Compare captions with twins that have one thing exchanged, too.")] = True,
    batch_size: Annotated[int, typer.Option(min=1, help="Items encoded at once.")] = 64,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; the accelerator if there is one.")] = None,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Draw curves and example answers into this folder.")] = None,
    questions: Annotated[
        Path | None,
        typer.Option(help="Instead: ask the pictures the questions of this table and judge hits and verdicts."),
    ] = None,
    half: Annotated[
        str, typer.Option(help="Which questions: those to 'tune' on, those 'held' back for one look, or 'both'.")
    ] = "tune",
) -> None:
    """Measure recall in both directions, and each uncertainty score beside its baselines."""
    from evidex.cli.console import output_console
    from evidex.data.datasets import load_dataset
    from evidex.evaluation.table import print_evaluation

    _check(json_path, figures)
    refinements = _refinements(defer, defer_by)
    data = load_dataset(dataset, split)
    if questions is not None:
        _ask(questions, half, model, data, batch_size, device, json_path)
        return
    seed = noisy_seed if noisy else None
    found = _measured(
        _model(model, tokenizer, activation, device),
        data,
        twins=twins,
        noisy_seed=seed,
        refinements=refinements,
        absent=absent,
        batch_size=batch_size,
    )
    print_evaluation(found, output_console())
    _write({"model": model, **found.to_json()}, json_path)
    if figures is not None:
        _draw(found, data, seed, figures)


def _refinements(shares: list[float] | None, by: Literal["vacuity", "belief"]) -> Refinements:
    from evidex.errors import InputError
    from evidex.evaluation.deferral import Refinements

    if not shares and by != "vacuity":
        raise InputError(f"--defer-by {by} chooses queries to refine, and none are asked for; add --defer 0.1")
    return Refinements(tuple(shares or ()), by=by)


def _measured(model: Model, data: Dataset, *, twins: bool, **choices: Any) -> Evaluation:
    """All that is measured of ``model``; ``choices`` are those of the protocol."""
    from evidex.cli.console import progress_bar
    from evidex.evaluation.protocol import evaluate, with_fine_grain

    with progress_bar("Evaluating") as progress:
        found = evaluate(model, data, progress=progress, **choices)
    return with_fine_grain(found, model, data) if twins else found


def _check(json_path: Path | None, figures: Path | None) -> None:
    """Refuse places that cannot be written before anything is measured."""
    from evidex.files import check_folder, check_target

    if json_path is not None:
        check_target(json_path, "json")
    if figures is not None:
        check_folder(figures)


def _write(figures: dict[str, Any], path: Path | None) -> None:
    from evidex.files import write_json_atomic

    if path is not None:
        write_json_atomic(path, figures)
        say(f"all figures: {path}", err=True)


def _draw(found: Evaluation, data: Dataset, noisy_seed: int | None, folder: Path) -> None:
    from evidex.evaluation.figure_files import write_figures
    from evidex.evaluation.noisy import NoisySplit

    paths = write_figures(found, data if noisy_seed is None else NoisySplit(data, noisy_seed), folder)
    say(f"{len(paths)} pictures: {folder}", err=True)


def _model(name: str, tokenizer: str, activation: str, device: str | None) -> Model:
    """The model that ``name`` means, or the published CLIP whose ``tokenizer`` is named beside it."""
    if tokenizer:
        from evidex.encoders.clip_file import load_clip_file

        return load_clip_file(name, tokenizer=tokenizer, activation=activation, device=device)
    from evidex.encoders.model import load_model

    return load_model(name, device=device)


def _ask(
    questions: Path,
    half: str,
    model: str,
    data: Dataset,
    batch_size: int,
    device: str | None,
    json_path: Path | None,
) -> None:
    """What people would see who ask in their own words."""
    from evidex.cli.console import output_console, progress_bar
    from evidex.encoders.model import load_model
    from evidex.evaluation.questions.asking import ask
    from evidex.evaluation.questions.bench import read_subjects
    from evidex.evaluation.questions.figures import result_of
    from evidex.evaluation.questions.table import print_result

    subjects = read_subjects(questions, half)  # type: ignore[arg-type]
    encoder = load_model(model, device=device)
    with progress_bar("Encoding") as progress:
        replies = ask(encoder, data, subjects, source=model, batch_size=batch_size, progress=progress)
    result = result_of(replies)
    title = f"{len(replies.asked)} questions ({half}): {data.name} {data.split}, {model}"
    print_result(result, output_console(), title)
    subject = {"model": model, "dataset": data.name, "split": data.split, "half": half}
    _write({**subject, **result.to_json()}, json_path)
