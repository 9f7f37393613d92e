"""`cycleback data`: check a data set, or prepare a published one."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.options import Json, Overwrite
from cycleback.cli.output import print_result

if TYPE_CHECKING:
    from cycleback.data import DatasetReport

data = typer.Typer(name="data", help="Check a data set, or prepare a published one.", no_args_is_help=True)


@data.command()
def check(
    directory: Annotated[Path, typer.Argument(help="Folder of videos, frame folders or .npz sequences.")],
    frames_per_video: Annotated[int, typer.Option(help="Warn of videos with fewer frames.")] = 32,
    as_json: Json = False,
) -> None:
    """Check every video, label and split of a folder; exit with code 1 if something must be fixed.

    Example: cycleback data check golf/
    """
    from cycleback.data import check_dataset, read_dataset

    dataset = read_dataset(directory)
    with progress_bars() as bars:
        progress = counter(bars, "checking")
        report = check_dataset(dataset, frames_per_video=frames_per_video, progress=progress)
    if not as_json:
        _print_report(report)
    print_result(
        dataclasses.asdict(report) | {"ok": report.ok},
        f"{directory}: {'ready to train' if report.ok else 'fix the errors above first'}",
        ["train", directory, "-o", f"runs/{directory.name}"] if report.ok else None,
        as_json=as_json,
    )
    raise typer.Exit(0 if report.ok else 1)


@data.command()
def prepare(
    name: Annotated[str, typer.Argument(help="pouring, penn-action, golfdb or penn-poses.")],
    source: Annotated[Path, typer.Argument(help="Folder or file of the data set as distributed.")],
    destination: Annotated[Path, typer.Argument(help="Folder to write.")],
    options: Annotated[
        list[str] | None, typer.Argument(help="Options of this data set, as key=value.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Convert a published data set to a plain folder, and report missing videos.

    Example: cycleback data prepare golfdb downloads/golfdb golf
    """
    from cycleback.config import parse_override
    from cycleback.prepare import prepare as prepare_dataset

    chosen = {".".join(path): value for path, value in map(parse_override, options or [])}
    with progress_bars() as bars:
        report = prepare_dataset(
            name, source, destination, overwrite=overwrite, progress=counter(bars, "reading"), options=chosen
        )
    lines = [
        f"{action or 'videos'}: " + ", ".join(f"{count} {split}" for split, count in splits.items())
        for action, splits in report.videos.items()
    ]
    lines += [f"missing: {line}" for line in report.missing]
    lines += [f"warning: {line}" for line in report.warnings]
    print_result(
        dataclasses.asdict(report) | {"directory": str(report.directory)},
        "\n".join([*lines, f"{report.total} videos, {report.labelled} labelled: {destination}"]),
        ["data", "check", destination],
        as_json=as_json,
    )


def _print_report(report: "DatasetReport") -> None:
    """Print one row per video and one line per problem."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("video", "action", "kind", "frames", "fps", "size", "seconds", "labels")
    for row in report.rows:
        fps, seconds = row.fps, row.duration_s
        size = f"{row.size[0]} features" if len(row.size) == 1 else "x".join(map(str, row.size[::-1]))
        table.add_row(
            escape(row.name),
            escape(row.action) or "-",
            row.kind,
            str(row.num_frames or "-"),
            f"{fps:.2f}" if fps else "-",
            size or "-",
            f"{seconds:.2f}" if seconds else "-",
            str(row.labels),
        )
    console = Console()
    console.print(table)
    for problem in report.problems:
        colour = "red" if problem.level == "error" else "yellow"
        where = f"{problem.video}: " if problem.video else ""
        console.print(
            f"[{colour}]{problem.level}[/{colour}] {escape(where + problem.message)}", highlight=False
        )
