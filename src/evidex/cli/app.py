"""The command ``evidex``: one verb a file, errors as one line."""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from typing import TYPE_CHECKING, Annotated, TextIO

import typer
from typer.core import TyperGroup

from evidex.cli import (
    benchmark,
    calibrate,
    degrade,
    duplicates,
    evaluate,
    export,
    index,
    locate,
    marks,
    methods,
    models,
    reindex,
    sample,
    search,
    serve,
    study,
    train,
    verify,
)
from evidex.cli.options import completed
from evidex.cli.verb import Verb
from evidex.cli.wrong_values import told
from evidex.errors import EvidexError, GalleryError, InputError, InputWarning, MissingPackageError, outcome
from evidex.visible import visible

# What evidex[train] brings and a plain install has not.
_OF_TRAINING = ("huggingface_hub", "matplotlib", "torch", "transformers")

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter


class _Verbs(TyperGroup):
    """The verbs with all of the sentence that tells of each."""

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.get_short_help_str(1000)) for name, verb in self.commands.items()])


app = typer.Typer(
    cls=_Verbs,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help in plain text, in half the time
    context_settings={"help_option_names": ["-h", "--help"]},
)

# The verbs' modules are light: each imports what it works with when it is called.
for verb in (
    index, reindex, search, locate, serve, verify, duplicates, marks, calibrate, models, sample, train, evaluate,
    export, benchmark, methods, degrade,
):  # fmt: skip
    app.command(name=verb.__name__.rpartition(".")[2], cls=Verb)(verb.command)
# Machines with torch alone run studies too, so their arguments are declared without typer.
app.command(
    name="study",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
)(study.command)


def _show_version(verbose: bool) -> None:
    from importlib.metadata import version

    typer.echo(f"evidex {version('evidex')}")
    if verbose:
        from evidex.encoders.engines import described

        for line in described():
            typer.echo(line)
    raise typer.Exit


@app.callback(invoke_without_command=True)
def about(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="With --version: what models run on here.")] = False,
) -> None:
    """Search remote-sensing archives by text or by image, and know when not to trust the answer."""
    if version:
        _show_version(verbose)
    if context.invoked_subcommand is None or verbose:
        raise typer.BadParameter("--verbose goes with --version" if verbose else "give a command")


def main() -> None:
    """Run the command line; an error of ours is one line on the error stream and its exit code."""
    warnings.showwarning = _note
    if sys.stdout is None:  # closed by whoever called us: what is printed is for nobody
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 (for as long as we run)
    try:
        code = app(completed(sys.argv[1:]) or ["--help"], prog_name="evidex", standalone_mode=False) or 0
        sys.stdout.flush()  # here it can be told that it cannot be written, later no more
        sys.exit(code)
    except EvidexError as error:
        _fail(error)
    except typer.Abort:
        sys.exit(1)
    except typer.TyperException as error:
        _refuse(error)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _OF_TRAINING:
            raise
        _fail(MissingPackageError(f"'evidex {' '.join(sys.argv[1:2])}'", package))
    except OSError as error:
        if error.errno in _NO_ROOM and error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nor can it be at the end
            _fail(InputError(f"what was asked for cannot be written ({error.strerror}); write it where there is room"))
        if "LanceError" not in str(error):
            if error.filename is None or error.strerror is None:
                raise
            from evidex.data.discover import printable

            place = printable(os.fsdecode(error.filename))
            _fail(
                InputError(f"'{place}' cannot be used ({error.strerror.lower()}); check the place and its permissions")
            )
        cause = str(error).partition("\n")[0][:200]
        _fail(GalleryError(f"the gallery's rows cannot be read ({cause}); restore them, or index into a new folder"))


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_SHORT_OPTION = re.compile(r"(?i)no such option: -\w$")
_show_warning = warnings.showwarning


def _note(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Ours is one line on the error stream; those of libraries are shown as ever."""
    if issubclass(category, InputWarning):
        sys.stderr.write(f"evidex: note: {visible(str(message))}\n")
    else:
        _show_warning(message, category, filename, lineno, file, line)


def _refuse(error: typer.TyperException) -> None:
    """What typer says of a wrong option, in one line like everything else."""
    said = (told(error) or error.format_message()).rstrip(".")
    context = getattr(error, "ctx", None)
    verb = "evidex" if context is None else context.command_path
    remedy = f"see '{verb} --help'"
    if verb == "evidex search" and _SHORT_OPTION.search(said):  # perhaps it was none: -clouds fields
        remedy = "put words that begin with a minus last, after --: evidex search --gallery G -- '-clouds fields'"
    _fail(InputError(f"{said[:1].lower()}{said[1:]}; {remedy}"))


def _fail(error: EvidexError) -> None:
    message = visible(" ".join(str(error).split()))
    sys.stderr.write(f"evidex: error: {message}\n")
    sys.exit(outcome(error).exit_code)


if __name__ == "__main__":
    main()
