"""`cycleback progress`: how far the action has come at each frame."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.checks import METHODS, check_choice
from cycleback.cli.good_takes import check_comparable
from cycleback.cli.inputs import PRETRAINED, check_one_action, embedded, embedded_or_saved
from cycleback.cli.options import Embeddings, Json, Method, Overwrite, Picture, Run, Table, Videos
from cycleback.cli.output import print_json, print_next
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet


def progress(
    reference: Annotated[
        str, typer.Option(help="Video that shows the whole action, or a name among the videos.")
    ],
    videos: Videos = None,
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    method: Method = "dtw",
    goal: Annotated[
        Path | None,
        typer.Option(help="Videos that reach the goal, folder or embedding set: adds a reward."),
    ] = None,
    output: Table = Path("progress.csv"),
    picture: Picture = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Measure progress from 0 to 1 by the clock of a reference; with a goal, a reward to learn from.

    Example: cycleback progress takes/ --reference takes/a.mp4 --goal takes/ --run runs/pouring
    """
    from cycleback.applications import goal_of, progress_rows
    from cycleback.applications import progress as measure
    from cycleback.applications.curve_pictures import progress_picture
    from cycleback.files import TABLE_SUFFIXES, check_output, write_bytes, write_table

    check_choice("alignment method", method, METHODS)
    check_output(output, overwrite=overwrite, suffixes=TABLE_SUFFIXES)
    if picture is not None:
        check_output(picture, overwrite=overwrite, suffixes=[".png"])
    reached = None if goal is None else embedded_or_saved(goal, run=run)
    found = embedded(videos, run=run, embeddings=embeddings)
    source, name = _reference(reference, found, run=run, embeddings=embeddings)
    check_one_action(found, source.subset([name]))
    if reached is not None:
        check_comparable(reached, found)
    aim = None if reached is None else goal_of(reached)
    signals = {
        each: measure(found[each], source[name], times=source.times(name), method=method)  # type: ignore[arg-type]
        for each in found
    }
    rewards = {} if aim is None else {each: aim.reward(found[each]) for each in found}
    rows = [
        row
        for each, signal in signals.items()
        for row in progress_rows(each, signal, found.times(each), rewards=rewards.get(each))
    ]
    if picture is not None:
        curves = {each: (found.times(each), signal.progress) for each, signal in signals.items()}
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
    reference: str, found: "EmbeddingSet", *, run: str, embeddings: Path | None
) -> "tuple[EmbeddingSet, str]":
    """An embedding set that holds the reference, and its name there."""
    if reference in found:
        return found, reference
    if embeddings is None and not Path(reference).is_file():
        raise UserError(
            f"no reference {reference!r}: give the path of a video, or one of {', '.join(found.names[:5])}"
        )
    source = embedded([reference], run=run, embeddings=embeddings)
    return source, source.names[0]
