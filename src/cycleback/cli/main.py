"""The `cycleback` command: one program with one sub-command per task.

A command parses its arguments, calls the library and prints. An error the user can fix is one line on stderr
and exit code 2.
"""

import io
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cycleback import __version__
from cycleback.cli.align import align
from cycleback.cli.anomalies import anomalies
from cycleback.cli.cache import cache
from cycleback.cli.compare import compare
from cycleback.cli.data import data
from cycleback.cli.demo import demo
from cycleback.cli.embed import embed
from cycleback.cli.evaluate import evaluate
from cycleback.cli.export import export
from cycleback.cli.find import find
from cycleback.cli.follow import follow
from cycleback.cli.info import info
from cycleback.cli.plot import plot
from cycleback.cli.progress import progress
from cycleback.cli.repetitions import repetitions
from cycleback.cli.search import search
from cycleback.cli.studio import studio
from cycleback.cli.sync import sync
from cycleback.cli.synth import synth
from cycleback.cli.timing import timing
from cycleback.cli.train import train
from cycleback.cli.transfer import transfer
from cycleback.errors import UserError, is_out_of_memory

MAX_MESSAGE = 1000
OUT_OF_MEMORY = "out of memory: lower the sizes in the settings, or take fewer or shorter videos at once"
PANELS = {
    "Learn": (demo, train, embed, export),
    "Use": (studio, align, sync, transfer, search, find, repetitions, timing, anomalies, progress, follow),
    "Measure": (evaluate, compare, plot),
    "Data": (data, synth, cache, info),
}


class Panels(TyperGroup):
    """List commands panel by panel."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return names in the order of `PANELS`; typer would list command groups first."""
        return [_name(command) for commands in PANELS.values() for command in commands]


def _name(command: Callable[..., None] | typer.Typer) -> str:
    return str(command.info.name) if isinstance(command, typer.Typer) else command.__name__


app = typer.Typer(
    name="cycleback",
    cls=Panels,
    help="Learn to align videos of the same action, without labels.",
    epilog="New here? Try: cycleback demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for panel, commands in PANELS.items():
    for command in commands:
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=_name(command), rich_help_panel=panel)
        else:
            app.command(rich_help_panel=panel)(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cycleback {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Learn to align videos of the same action, without labels."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code: 0, 2 for an error the user can fix, 130 on Ctrl-C."""
    warnings.showwarning = _print_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path need not be UTF-8
    try:
        status = app(args=list(argv) if argv is not None else None, standalone_mode=False)
    except typer.Exit as stop:
        return int(stop.exit_code)
    except UserError as error:
        print(f"error: {shorten(show(error))}", file=sys.stderr)
        return 2
    except OSError as error:  # a name that is too long, a folder that vanished, a disk that fails
        where = f"cannot use {error.filename}: " if error.filename is not None else ""
        print(f"error: {shorten(show(where + (error.strerror or str(error))))}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        print("Interrupted.", file=sys.stderr)
        return 130
    except Exception as error:
        if _is_usage_error(error):
            error.show()  # type: ignore[attr-defined]
            return 2
        if is_out_of_memory(error):
            print(f"error: {OUT_OF_MEMORY}", file=sys.stderr)
            return 2
        raise
    return status if isinstance(status, int) else 0


def show(message: object) -> str:
    """Return a message on one line: line breaks, and other control characters, are written as escapes."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(message))


def shorten(line: str) -> str:
    """Cut the middle out of a line that holds the content of a foreign file: the advice is at its end."""
    half = MAX_MESSAGE // 2
    return line if len(line) <= MAX_MESSAGE else f"{line[:half]} … {line[-half:]}"


def _is_usage_error(error: Exception) -> bool:
    """Tell whether the command line is malformed (typer keeps its own copy of click's classes)."""
    return any(kind.__name__ == "ClickException" for kind in type(error).__mro__)


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    print(f"warning: {show(message)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
