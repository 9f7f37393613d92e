"""`cycleback progress`: measure how far the action has come at each frame."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cycleback.cli.inputs import (
    PRETRAINED,
    check_choice,
    check_file,
    check_table_and_picture,
    embed_alike,
    embed_inputs,
    find_reference,
    list_inputs,
)
from cycleback.cli.options import (
    METHODS,
    Embeddings,
    Json,
    Method,
    Overwrite,
    Picture,
    Repetitions,
    Run,
    Table,
    Videos,
)
from cycleback.cli.output import print_result
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.data.episodes import EpisodePlace


def progress(
    videos: Videos = None,
    reference: Annotated[
        str | None,
        typer.Option(
            help="Measure by this video, which shows the whole action (with --repetitions: a typical one)."
        ),
    ] = None,
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    method: Method = "auto",
    repetitions: Repetitions = False,
    goal: Annotated[
        Path | None,
        typer.Option(help="Add a reward for reaching where these videos end: a folder or embedding set."),
    ] = None,
    output: Table = Path("progress.csv"),
    frame_signals: Annotated[
        Path | None,
        typer.Option(help="Write LeRobot's frame signals of the episodes to this .parquet file, too."),
    ] = None,
    picture: Picture = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Measure progress from 0 to 1 by the clock of a reference; with a goal, a reward to learn from.

    Example: cycleback progress takes/ --reference takes/a.mp4 --goal takes/ --run runs/pouring

    Example: cycleback progress pushups.mp4 --repetitions

    Example: cycleback progress pusht/ --reference episode_000003 --frame-signals progress.parquet
    """
    from cycleback.applications import judge, measure_progress
    from cycleback.applications.frame_signals import write_frame_signals
    from cycleback.applications.plots import draw_progress
    from cycleback.applications.progress import find_typical
    from cycleback.files import write_bytes
    from cycleback.tables import write_table

    check_choice("alignment method", method, METHODS)
    if reference is None and not repetitions:
        raise UserError("no reference: give a video that shows the whole action with --reference")
    inputs = list_inputs(videos, reference, goal, run, embeddings=embeddings)
    check_table_and_picture(output, picture, overwrite=overwrite, inputs=inputs)
    places = _find_places(frame_signals, videos, repetitions, overwrite=overwrite, inputs=inputs)
    words: dict[str, Any] = {"run": run, "embeddings": embeddings, "repetitions": repetitions}
    if goal is None:
        embedding_set, reached = embed_inputs(videos, **words), None
    else:
        embedding_set, reached = embed_alike(videos, goal, **words)
    if reference is None:
        source, name = embedding_set, find_typical(embedding_set)
    else:
        source, name = find_reference(reference, embedding_set, run=run, embeddings=embeddings)
    report = measure_progress(embedding_set, name, source=source, goal=reached, method=method)  # type: ignore[arg-type]
    if picture is not None:
        write_bytes(picture, draw_progress(report), overwrite=overwrite)
    rows = report.rows()
    write_table(output, rows, overwrite=overwrite)
    files = f"{output}" if picture is None else f"{output}, curves in {picture}"
    if frame_signals is not None:
        write_frame_signals(frame_signals, report, places, overwrite=overwrite)
        files += f", frame signals in {frame_signals}"
    what = "takes" if repetitions else "videos"
    print_result(
        {"table": str(output), "reference": name, "videos": len(embedding_set), "frames": len(rows)}
        | ({} if frame_signals is None else {"frame_signals": str(frame_signals)}),
        f"progress of {len(embedding_set)} {what} by {name}, {len(rows)} frames: {files}",
        as_json=as_json,
        verdict=judge(embedding_set, name, source=source, are_takes=repetitions),
    )


def _find_places(
    output: Path | None,
    videos: list[str] | None,
    repetitions: bool,
    *,
    overwrite: bool,
    inputs: Sequence[Path],
) -> "Mapping[str, EpisodePlace]":
    """Return where the frames of the episodes are in their data set, before any work is done."""
    from cycleback.applications.frame_signals import SUFFIXES
    from cycleback.data.episodes import read_places

    if output is None:
        return {}
    check_file(output, overwrite=overwrite, suffixes=SUFFIXES, inputs=inputs)
    if repetitions:
        raise UserError("--frame-signals is for whole episodes: leave it out, or leave out --repetitions")
    if videos is None or len(videos) != 1 or not Path(videos[0]).is_dir():
        raise UserError("--frame-signals needs a LeRobot data set: name its folder, and no single videos")
    return read_places(Path(videos[0]))
