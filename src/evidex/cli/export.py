"""evidex export: any model as the one file that is searched with, where neither torch nor a hub is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evidex.cli.terminal import say


def command(
    model: Annotated[str, typer.Argument(help="Model file, run folder, folder of a CLIP, or hub name.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    half: Annotated[bool, typer.Option("--half", help="Store the weights in half precision: half the size.")] = False,
    text_in_bytes: Annotated[
        bool,
        typer.Option("--text-in-bytes", help="Round the text tower's layers to bytes: texts are faster."),
    ] = False,
) -> None:
    """Write a model as one file that runs without torch, and check that it gives the same vectors."""
    from evidex.encoders.export import export_model
    from evidex.files import check_target

    check_target(out, "weights")
    done = export_model(model, out, half=half, text_in_bytes=text_in_bytes)
    say(f"{out}: {done.bytes / 1e6:.1f} MB, vectors at most {done.difference:.1e} from those of torch")
