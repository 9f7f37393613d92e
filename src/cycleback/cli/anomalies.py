"""`cycleback anomalies`: find the takes that went wrong, and where."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.inputs import (
    PRETRAINED,
    check_table_and_picture,
    embed_alike,
    embed_inputs,
    list_inputs,
    note_repetitions,
)
from cycleback.cli.options import Embeddings, Json, Overwrite, Picture, Repetitions, Run, Table, Videos
from cycleback.cli.output import print_result
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.applications import AnomalyReport
    from cycleback.embeddings import EmbeddingSet


def anomalies(
    videos: Videos = None,
    good: Annotated[
        Path | None,
        typer.Option(
            help="Give at least 5 good takes: a folder or a set (with --repetitions, default: the others)."
        ),
    ] = None,
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    appearance: Annotated[
        bool,
        typer.Option(
            "--appearance",
            "--looks",
            help="Add untrained features to the embeddings of a run. Their parts are always compared.",
        ),
    ] = False,
    repetitions: Repetitions = False,
    false_alarms: Annotated[
        float, typer.Option(help="Set the share of good frames that may be flagged.", min=0.001, max=0.5)
    ] = 0.05,
    output: Table = Path("anomalies.csv"),
    picture: Picture = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find where videos differ from good takes: a score per frame, a picture of the oddest video.

    Example: cycleback anomalies new/ --good good/ --run runs/pouring --picture odd.png

    Example: cycleback anomalies pushups.mp4 --repetitions
    """
    from cycleback.applications import compare_takes, find_anomalies
    from cycleback.applications.plots import draw_oddest
    from cycleback.files import write_bytes
    from cycleback.tables import write_table

    if good is None and not repetitions:
        raise UserError("no good takes: give at least 5 takes that went well with --good")
    inputs = list_inputs(videos, good, run, embeddings=embeddings)
    check_table_and_picture(output, picture, overwrite=overwrite, inputs=inputs)
    if appearance and (embeddings is not None or (good is not None and (good / "index.json").is_file())):
        raise UserError("--appearance needs the videos: give folders of videos instead of embedding sets")
    ways: list[dict[str, Any]] = [{"run": run, "embeddings": embeddings, "repetitions": repetitions}]
    if appearance and run != PRETRAINED:
        ways.append({"run": PRETRAINED, "streams": {"appearance": 1.0}, "repetitions": repetitions})
    if good is None:
        takes = [embed_inputs(videos, **way) for way in ways]
        own = _embed_cells(takes[0])
        report = compare_takes(*takes, false_alarms=false_alarms, cells=own[0] if own else None)
    else:
        views, known = zip(*(embed_alike(videos, good, **way) for way in ways), strict=True)
        if not repetitions:
            note_repetitions(views[0])
        both = _embed_cells(views[0], known[0])
        cells = (both[0], both[1]) if both else None
        report = find_anomalies(views, known, false_alarms=false_alarms, cells=cells)
        _note_training_takes(known[0], run)
    if picture is not None:
        write_bytes(picture, draw_oddest(report), overwrite=overwrite)
    write_table(output, report.rows(), overwrite=overwrite)
    if not as_json:
        _print_verdicts(report, against="good takes" if good is not None else "the others")
    odd = sum(each.verdict != "typical" for each in report.scores.values())
    files = f"{output}" if picture is None else f"{output}, the oddest in {picture}"
    print_result(
        {"table": str(output), "good_takes": len(report.good), "videos": report.to_json()},
        f"{odd} of {len(report.scores)} "
        + (f"videos differ from {len(report.good)} good takes" if good is not None else "takes differ")
        + f": {files}",
        as_json=as_json,
    )


def _embed_cells(*sets: "EmbeddingSet") -> "list[dict[str, EmbeddingSet]]":
    """Describe the cells of the frames of some sets by stream; nothing if not all videos are there."""
    from cycleback.embeddings import check_one_action
    from cycleback.runs.cells import embed_cells, has_videos

    check_one_action(*sets)
    if not has_videos(*sets):
        told = "not all videos are there, so only their embeddings are compared, not motion and appearance"
        print(f"note: {told}", file=sys.stderr)
        return []
    with_pose = sets[-1].streams.get("pose", 0) > 0
    with progress_bars() as display:
        return [
            embed_cells(
                each, with_pose=with_pose, progress=counter(display, "looking at the parts of frames")
            )
            for each in sets
        ]


def _note_training_takes(good: "EmbeddingSet", run: str) -> None:
    """Print a note when the run was trained on these takes: they then look more alike than new ones do."""
    from cycleback.runs import VIDEOS_FILE, find_run, run_split

    if run == PRETRAINED or not (find_run(run) / VIDEOS_FILE).is_file():
        return
    same = len(set(good.names) & set(run_split(run)["train"]))
    if same:
        print(
            f"note: {same} good takes are named like videos {run} was trained on. If they are the same, "
            "expect more false alarms than stated; takes the run has not seen give a better threshold.",
            file=sys.stderr,
        )


def _print_verdicts(report: "AnomalyReport", *, against: str) -> None:
    """Print one line per video, and one per oddity where something differs, in frames of the file."""
    for name, each in report.scores.items():
        peak = float(each.scores.max())
        normal = f"{against} stay below {each.peak_threshold:.1f}"
        print(f"{name}: {each.verdict} (highest score {peak:.1f}, {normal})")
        if each.verdict == "something differs":
            start = report.videos.first_frame(name)
            for oddity, text in zip(each.oddities, report.describe(name), strict=True):
                print(f"  frames {start + oddity.first}-{start + oddity.last}  {text}")
