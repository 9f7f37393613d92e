"""`cycleback demo`: see it work, in minutes, on videos it renders itself."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cycleback.cli.bars import progress_bars, progress_callbacks
from cycleback.cli.inputs import check_choice
from cycleback.cli.options import LEVELS, Json, Level, Overwrite, Seed
from cycleback.cli.output import print_reports, print_result
from cycleback.cli.synth import MAX_VIDEOS


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", "--out", help="Make this folder.")] = Path("demo"),
    seed: Seed = 0,
    videos: Annotated[int, typer.Option(help="Render this many videos.", min=8, max=MAX_VIDEOS)] = 72,
    level: Level = "easy",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Render pouring videos, learn to align them without labels, and show the result on a web page.

    Example: cycleback demo -o demo --seed 1
    """
    from cycleback.comparison import TrainingStopped, run_demo

    check_choice("level", level, LEVELS)
    try:
        with progress_bars() as display:
            report = run_demo(
                output,
                seed=seed,
                videos=videos,
                level=level,
                overwrite=overwrite,
                progress=progress_callbacks(display),
            )
    except TrainingStopped:
        print("Interrupted. Rerun the same command with --overwrite to start again.", file=sys.stderr)
        raise typer.Exit(130) from None
    if not as_json:
        print_reports(report.rows)
    print_result(
        report.to_json(),
        f"{report.seconds:.0f} s; open {output / 'report.html'} in a browser",
        ["sync", output / "videos", "--run", output / "run", "-o", "synced.mp4"],
        as_json=as_json,
    )
