"""`cycleback synth`: render videos of a pouring action, with labels and sound."""

from pathlib import Path
from typing import Annotated

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.inputs import check_choice, one_line_errors
from cycleback.cli.options import LEVELS, Json, Level, Overwrite, Seed
from cycleback.cli.output import print_result

MAX_VIDEOS = 100_000  # beyond, a folder is hard to work with


def synth(
    directory: Annotated[Path, typer.Argument(help="Folder to write.")],
    videos: Annotated[int, typer.Option(help="Render this many videos.", min=1, max=MAX_VIDEOS)] = 30,
    seed: Seed = 0,
    level: Level = "easy",
    size: Annotated[int, typer.Option(help="Set the side of a frame in pixels.")] = 112,
    anomalies: Annotated[
        int, typer.Option(help="Let this many videos go wrong: a spill, a missed glass, a hand withdrawn.")
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
        rendered = write_dataset(
            directory,
            videos=videos,
            seed=seed,
            level=level,
            size=size,
            anomalies=anomalies,
            overwrite=overwrite,
            progress=counter(bars, "rendering"),
        )
    frames = sum(video.num_frames for video in rendered)
    print_result(
        {"directory": str(directory), "videos": len(rendered), "frames": frames},
        f"{len(rendered)} videos, {frames} frames: {directory}",
        ["train", directory, "-o", f"runs/{directory.resolve().name}"],
        as_json=as_json,
    )
