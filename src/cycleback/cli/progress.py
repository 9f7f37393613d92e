"""`cycleback progress`: measure how far the action has come at each frame."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cycleback.cli.inputs import (
    PRETRAINED,
    check_choice,
    check_table_and_picture,
    embed_alike,
    embed_inputs,
    find_reference,
    list_inputs,
    note_repetitions,
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
    picture: Picture = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Measure progress from 0 to 1 by the clock of a reference; with a goal, a reward to learn from.

    Example: cycleback progress takes/ --reference takes/a.mp4 --goal takes/ --run runs/pouring

    Example: cycleback progress pushups.mp4 --repetitions
    """
    from cycleback.applications import measure_progress
    from cycleback.applications.plots import draw_progress
    from cycleback.applications.progress import find_typical
    from cycleback.files import write_bytes
    from cycleback.tables import write_table

    check_choice("alignment method", method, METHODS)
    if reference is None and not repetitions:
        raise UserError("no reference: give a video that shows the whole action with --reference")
    inputs = list_inputs(videos, reference, goal, run, embeddings=embeddings)
    check_table_and_picture(output, picture, overwrite=overwrite, inputs=inputs)
    words: dict[str, Any] = {"run": run, "embeddings": embeddings, "repetitions": repetitions}
    if goal is None:
        embedding_set, reached = embed_inputs(videos, **words), None
    else:
        embedding_set, reached = embed_alike(videos, goal, **words)
    if not repetitions:
        note_repetitions(embedding_set)
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
    what = "takes" if repetitions else "videos"
    print_result(
        {"table": str(output), "reference": name, "videos": len(embedding_set), "frames": len(rows)},
        f"progress of {len(embedding_set)} {what} by {name}, {len(rows)} frames: {files}",
        as_json=as_json,
    )
