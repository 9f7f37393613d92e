"""`cycleback progress`: how far the action has come at each frame."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.checks import METHODS, check_choice, check_free
from cycleback.cli.good_takes import good_takes
from cycleback.cli.inputs import embedded
from cycleback.cli.output import print_json, print_next
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet


def progress(
    videos: Annotated[list[str], typer.Argument(help="Videos, a folder of them, or names in the set.")],
    reference: Annotated[
        str, typer.Option(help="A video that shows the whole action, or a name among the videos.")
    ],
    goal: Annotated[
        Path | None,
        typer.Option(help="Takes that reach the goal, folder or embedding set: adds a reward."),
    ] = None,
    run: Annotated[str, typer.Option(help="Run folder, or 'pretrained'.")] = "pretrained",
    embeddings: Annotated[Path | None, typer.Option(help="Embedding set that holds all videos.")] = None,
    method: Annotated[str, typer.Option(help="dtw (never back) or nearest.")] = "dtw",
    output: Annotated[Path, typer.Option("-o", "--output", help="Table to write: .csv or .json.")] = Path(
        "progress.csv"
    ),
    picture: Annotated[Path | None, typer.Option(help="Picture of the curves to write: .png.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Progress from 0 to 1 by the clock of a reference and, with a goal, a reward for a robot to learn from.

    Example: cycleback progress takes/ --reference takes/a.mp4 --goal takes/ --run runs/pouring
    """
    from cycleback.applications import write_table
    from cycleback.applications.curve_pictures import progress_picture
    from cycleback.applications.progress_signal import goal_of, progress_rows
    from cycleback.applications.progress_signal import progress as measure
    from cycleback.files import write_bytes

    check_choice("alignment method", method, METHODS)
    for path in filter(None, (output, picture)):
        check_free(path, overwrite=overwrite)
    takes = embedded(videos, run=run, embeddings=embeddings)
    source, name = _reference(reference, takes, run=run, embeddings=embeddings)
    aim = None if goal is None else goal_of(good_takes(goal, takes, run=run))
    signals = {
        each: measure(takes[each], source[name], times=source.times(name), method=method)  # type: ignore[arg-type]
        for each in takes.names
    }
    rewards = {} if aim is None else {each: aim.reward(takes[each]) for each in takes.names}
    rows = [
        row
        for each, signal in signals.items()
        for row in progress_rows(each, signal, takes.times(each), rewards=rewards.get(each))
    ]
    if picture is not None:
        curves = {each: (takes.times(each), signal.progress) for each, signal in signals.items()}
        write_bytes(picture, progress_picture(curves, rewards=rewards), overwrite=overwrite)
    write_table(output, rows, overwrite=overwrite)
    if as_json:
        print_json(
            {"table": str(output), "reference": reference, "videos": len(signals), "frames": len(rows)}
        )
        return
    shown = "" if picture is None else f", curves in {picture}"
    print_next(f"progress of {len(signals)} videos, {len(rows)} frames: {output}{shown}")


def _reference(
    reference: str, takes: "EmbeddingSet", *, run: str, embeddings: Path | None
) -> "tuple[EmbeddingSet, str]":
    """An embedding set that holds the reference, and its name there."""
    if reference in takes:
        return takes, reference
    if embeddings is not None:
        found = embedded([reference], embeddings=embeddings)
    elif Path(reference).is_file():
        found = embedded([reference], run=run)
    else:
        raise UserError(
            f"no reference {reference!r}: give the path of a video, or one of {', '.join(takes.names[:5])}"
        )
    return found, found.names[0]
