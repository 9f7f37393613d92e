"""`cycleback demo`: see it work, in minutes, on videos it renders itself."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cycleback.cli.bars import progress_bars, progress_callbacks
from cycleback.cli.checks import LEVELS, check_choice
from cycleback.cli.options import Json, Level, Overwrite, Seed
from cycleback.cli.output import print_json, print_next, print_reports


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", "--out", help="Folder to make.")] = Path("demo"),
    seed: Seed = 0,
    videos: Annotated[int, typer.Option(help="How many videos to render.", min=8)] = 72,
    level: Level = "easy",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Render pouring videos, learn to align them without labels, and show the result on a web page.

    Example: cycleback demo -o demo --seed 1
    """
    check_choice("level", level, LEVELS)
    from cycleback.comparison import TrainingStopped, run_demo

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
    if as_json:
        print_json(report.to_json())
        return
    print_reports(report.rows)
    print_next(
        f"{report.seconds:.0f} s; open {output / 'report.html'} in a browser",
        f"cycleback sync {output / 'videos'} --run {output / 'run'} -o synced.mp4",
    )
