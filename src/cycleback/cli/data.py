"""`cycleback data check`: every problem of a data set, before training finds it."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.output import console, print_json, print_next

if TYPE_CHECKING:
    from cycleback.data import DatasetReport

data = typer.Typer(help="Look at a data set.", no_args_is_help=True)


@data.callback()
def options() -> None:
    """Look at a data set."""


@data.command()
def check(
    directory: Annotated[Path, typer.Argument(help="Folder of videos, frame folders or .npz sequences.")],
    frames_per_video: Annotated[int, typer.Option(help="Frames a training step needs from each video.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List videos, lengths, labels and every problem; exit code 1 when something must be fixed.

    Example: cycleback data check golf/
    """
    from cycleback.data import check_dataset, read_dataset

    report = check_dataset(read_dataset(directory), frames_per_video=frames_per_video)
    if as_json:
        print_json(dataclasses.asdict(report) | {"ok": report.ok})
    else:
        _print(report)
        print_next(
            f"{directory}: {'ready to train' if report.ok else 'fix the errors above first'}",
            f"cycleback train {directory} -o runs/{directory.name}" if report.ok else None,
        )
    raise typer.Exit(0 if report.ok else 1)


def _print(report: "DatasetReport") -> None:
    from rich.table import Table

    table = Table("video", "action", "kind", "frames", "fps", "size", "seconds", "labels")
    for row in report.rows:
        fps, size, seconds = row.fps, row.size, row.duration_s
        table.add_row(
            row.name,
            row.action or "-",
            row.kind,
            str(row.num_frames or "-"),
            f"{fps:.2f}" if fps else "-",
            str(size or "-"),
            f"{seconds:.2f}" if seconds else "-",
            str(row.labels),
        )
    out = console()
    out.print(table)
    for problem in report.problems:
        colour = "red" if problem.level == "error" else "yellow"
        where = f"{problem.video}: " if problem.video else ""
        out.print(f"[{colour}]{problem.level}[/{colour}] {where}{problem.message}", highlight=False)
