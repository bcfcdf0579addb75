"""The application that commands register with: exit codes, and what several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vitnas.cli.streams import complain, flush, say, settle_streams, told
from vitnas.cli.termination import terminations_interrupt
from vitnas.cores import launch
from vitnas.errors import VitnasError, printable, typed
from vitnas.hook import interrupts_wait_for

if TYPE_CHECKING:
    from vitnas.run import Run

RunFolder = Annotated[Path, typer.Argument(help="A results folder.")]
SpaceName = Annotated[str, typer.Argument(help="A space file, or a shipped one by name.")]
Images = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="Images in place of the space's own: a folder with train/<class>/<image>, a data set "
        "by name, name:folder, or a space file.",
    ),
]
NewFolder = Annotated[Path, typer.Option(help="Folder to write; new or empty.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
MOST = {
    "epochs": 100_000,
    "image": 10_000_000,
    "images": 10_000_000,
    "img_size": 16_384,
    "key_kernel": 1_000_000,
    "num_classes": 1_000_000,
    "num_heads": 1_000_000,
    "patch_size": 16_384,
    "points": 1_001,
    "reattention": 1_000,
    "samples": 10_000,
    "seed": 2**63 - 1,
    "seeds": 10_000,
    "threads": 1_024,
    "windows": 1_000_000,
    "workers": 10_000,
}
"""The greatest values of numbers on the command line; those of a search are in its options."""
_INTERRUPTED = 128 + 2  # as shells tell of a program that SIGINT ended
_RESUMABLE = ("search", "train", "tune", "calibrate", "confirm")

interrupts_wait_for("torch")

app = typer.Typer(
    name="vitnas",
    help="Search and design hybrid vision transformers: accuracy against exactly counted FLOPs.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    settle_streams()
    os.environ["MPLBACKEND"] = "agg"  # no command opens a window
    with terminations_interrupt() as terminations:
        code = _run(arguments)
    if code == _INTERRUPTED:
        code = 128 + terminations[-1] if terminations else code
        resumes = bool(arguments) and arguments[0] in _RESUMABLE
        rest = "; the same command resumes where it stopped" if resumes else ""
        if not launch().rank:
            complain(f"interrupted{rest}")
    sys.exit(flush(code))


def _run(arguments: list[str]) -> int:
    """Run a command and say what is wrong; the exit code."""
    try:
        _refuse_empty(arguments)
        code = app(args=arguments, standalone_mode=False)
    except VitnasError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return _INTERRUPTED
    except OSError as error:
        return told(error)
    except (ImportError, MemoryError) as error:
        return _lacking(error)
    except Exception as error:
        return _usage(error)
    return code if isinstance(code, int) else 0


def _refuse_empty(arguments: Sequence[str]) -> None:
    """Refuse an empty argument: as a path it would be the working directory, and commands take an
    empty text for an option that is not given.

    Raises:
        VitnasError: there is one.
    """
    for before, argument in zip(("vitnas", *arguments), arguments, strict=False):
        name, equals, value = argument.partition("=")
        is_open = name.startswith("--") and equals and not value
        if is_open or not argument:
            rule = "is empty, as a variable of the shell that is not set"
            raise VitnasError(f"what follows {name or before} {rule}")


def _lacking(error: ImportError | MemoryError) -> int:
    """Say in one line what this machine lacks: memory, or what a compiled library needs."""
    if isinstance(error, MemoryError):
        complain("not enough memory for this process")
    elif (error.path or "").endswith(tuple(EXTENSION_SUFFIXES)):
        complain(f"{error.path}: cannot be loaded: {error}")
    else:
        raise error
    return 2


def _usage(error: Exception) -> int:
    """Say an error of typer's in one line; raise any other. Their class moved between versions."""
    message = getattr(error, "format_message", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        say(message() if message else "")
    elif type(error).__name__ == "Abort":  # older typers' name for Ctrl-C; newer give 130
        return _INTERRUPTED
    elif message is None:
        raise error
    else:
        complain(printable(message()))
    return 2


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from vitnas import __version__

        say(f"vitnas {__version__}")
        raise typer.Exit


def one_of(what: str, value: str, known: Sequence[str]) -> None:
    """Make sure that an option has one of its values.

    Raises:
        ConfigError: it has not; names the nearest.
    """
    from vitnas.errors import ConfigError, nearest_name

    if value not in known:
        rule = f"must be {' or '.join(known)}"
        raise ConfigError(rule, address=what, value=value, nearest=nearest_name(value, known))


def print_folder(folder: Path) -> None:
    """Say how a folder with a network is loaded."""
    say(f"{folder}: load it with vitnas.load({str(folder)!r})")


def print_front(run: Run) -> None:
    """Print the front of a run as a table, where its report is, and what chooses from the front."""
    from vitnas.report import summary_text

    say(summary_text(run))
    say(f"report: {run.path / 'report.html'}")
    if run.front:
        say(f"to choose a network: vitnas pick {typed(run.path)}")
