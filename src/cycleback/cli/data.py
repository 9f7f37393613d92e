"""`cycleback data`: check a data set, find shot changes, or prepare a published data set."""

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
    frames_per_video: Annotated[int, typer.Option(help="Warn of videos with fewer frames.", min=1)] = 32,
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
        _next_command(directory, report) if report.ok else None,
        as_json=as_json,
    )
    raise typer.Exit(0 if report.ok else 1)


@data.command()
def shots(
    video: Annotated[Path, typer.Argument(help="An edited video.")],
    clips: Annotated[
        Path | None, typer.Option(help="Write each shot as a clip, with its sound, into this folder.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find the shot changes of a video, and cut it into its shots.

    Example: cycleback data shots edited.mp4 --clips shots
    """
    from cycleback.applications.clips import cut_clips, list_shots
    from cycleback.cli.inputs import check_clips_folder

    if clips is not None:
        check_clips_folder(clips, overwrite=overwrite, inputs=[video])
    with progress_bars() as bars:
        parts = list_shots(video, progress=counter(bars, "looking"))
        written: list[Path] = []
        if clips is not None:
            report = counter(bars, "cutting")
            written = cut_clips(video, parts, clips, overwrite=overwrite, progress=report)
    lines = [
        f"{number:3d}  {part.start_s:.2f} s to {part.end_s:.2f} s, frames {part.start} to {part.stop - 1}"
        for number, part in enumerate(parts, start=1)
    ]
    count = f"{len(parts)} shots" if len(parts) > 1 else "one shot, no cut"
    where = f": {clips}" if written else ""
    print_result(
        {"shots": [dataclasses.asdict(part) for part in parts], "clips": [str(path) for path in written]},
        "\n".join([*lines, f"{video.name}: {count}{where}"]),
        ["data", "shots", video, "--clips", "shots"] if clips is None and len(parts) > 1 else None,
        as_json=as_json,
    )


@data.command()
def prepare(
    name: Annotated[str, typer.Argument(help="pouring, penn-action, golfdb, penn-poses or lerobot.")],
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


def _next_command(directory: Path, report: "DatasetReport") -> list[object]:
    """Return the words that train on a data set; sequences of vectors need a recipe of their own."""
    recipe = ["--recipe", "poses"] if all(row.kind == "sequence" for row in report.rows) else []
    return ["train", directory, "-o", f"runs/{directory.resolve().name}", *recipe]


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
