"""`cycleback synth`: render videos of a pouring action, with labels and sound."""

from pathlib import Path
from typing import Annotated

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.checks import LEVELS, check_choice, one_line_errors
from cycleback.cli.options import Json, Level, Overwrite, Seed
from cycleback.cli.output import print_json, print_next


def synth(
    directory: Annotated[Path, typer.Argument(help="Folder to write.")],
    videos: Annotated[int, typer.Option(help="Number of videos.", min=1)] = 30,
    seed: Seed = 0,
    level: Level = "easy",
    size: Annotated[int, typer.Option(help="Side of a frame in pixels.")] = 112,
    anomalies: Annotated[
        int, typer.Option(help="Number of videos with a spill, a missed glass or a hand that withdraws.")
    ] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Render videos of a person pouring a drink, with key events, sound and anomalies.

    Example: cycleback synth pouring --videos 84 --level hard
    """
    from cycleback.synth import write_dataset

    check_choice("level", level, LEVELS)
    with one_line_errors(), progress_bars() as bars:
        made = write_dataset(
            directory,
            videos=videos,
            seed=seed,
            level=level,
            size=size,
            anomalies=anomalies,
            overwrite=overwrite,
            progress=counter(bars, "rendering"),
        )
    frames = sum(video.num_frames for video in made)
    if as_json:
        print_json({"directory": str(directory), "videos": len(made), "frames": frames})
        return
    print_next(
        f"{len(made)} videos, {frames} frames: {directory}",
        f"cycleback train {directory} -o runs/{directory.name}",
    )
