"""`cycleback transfer labels`: label one video, and have all of them labelled."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cycleback.cli.checks import METHODS, check_choice
from cycleback.cli.inputs import PRETRAINED, embedded
from cycleback.cli.options import Embeddings, Json, Method, Overwrite, Run, Videos
from cycleback.cli.output import console, print_json, print_next
from cycleback.errors import DataError

if TYPE_CHECKING:
    from cycleback.annotations import Annotation
    from cycleback.applications.label_transfer import TransferredLabels

FORMATS = "csv, json, elan, label-studio, via, boris, boris-events, labelu, activitynet or frames"
SHOWN_ROWS, SHOWN_NEXT = 20, 5


def labels(
    given: Annotated[Path, typer.Argument(metavar="LABELS", help="Labels of one or a few of the videos.")],
    videos: Videos = None,
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    method: Method = "dtw",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="File to write; for elan and frames, a folder (default: LABELS-all)."
        ),
    ] = None,
    to_format: Annotated[
        str | None,
        typer.Option("--format", help=f"{FORMATS} (default: what the output's name says, or csv)."),
    ] = None,
    from_format: Annotated[
        str | None, typer.Option("--from", help="Format of LABELS, where its content does not tell.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Carry key events and segments of a few videos over to all, with a confidence for each.

    Example: cycleback transfer labels first.csv golf/ --run runs/golf --format elan -o golf-labels
    """
    from cycleback.annotations import read_annotations, write_annotations
    from cycleback.annotations.registry import format_named
    from cycleback.applications import labels_in_frames, transfer_labels
    from cycleback.files import check_output

    check_choice("alignment method", method, METHODS)
    chosen = format_named(to_format or _format_of(output))
    ending = "" if chosen.one_video else chosen.suffixes[0]
    output = output or Path(f"{given.stem}-all{ending}")
    check_output(output, overwrite=overwrite)
    known = read_annotations(given, format=from_format)
    found = embedded(videos, run=run, embeddings=embeddings)
    events, segments = labels_in_frames(known, found)
    result = transfer_labels(found, events, segments=segments, method=method)  # type: ignore[arg-type]
    _check_found(result)
    path = write_annotations(output, list(result.videos.values()), format=chosen.name, overwrite=overwrite)
    if as_json:
        print_json(_summary(result, path, chosen.name))
        return
    _print(result)
    by_hand = len(result.videos) - len(result.label_next)
    print_next(f"{len(result.label_next)} videos labelled by the labels of {by_hand}: {path}")


def _format_of(output: Path | None) -> str:
    from cycleback.annotations import FORMATS

    suffix = "" if output is None else output.suffix.lower()
    return next((each.name for each in FORMATS.values() if suffix in each.suffixes), "csv")


def _check_found(result: "TransferredLabels") -> None:
    if result.label_next:
        return
    if result.left_out:
        raise DataError(
            f"nothing to label: the labelled videos show another action than {', '.join(result.left_out[:3])}"
        )
    raise DataError("nothing to label: every video has labels already. Add videos without labels.")


def _summary(result: "TransferredLabels", path: Path, format: str) -> dict[str, Any]:
    return {
        "labels": str(path),
        "format": format,
        "label_next": list(result.label_next[:SHOWN_NEXT]),
        "left_out": list(result.left_out),
        "videos": {name: _video(video) for name, video in result.videos.items()},
    }


def _video(video: "Annotation") -> dict[str, Any]:
    events = [
        {
            "name": event.name,
            "frame": event.at.frame,
            "seconds": event.at.seconds,
            "confidence": event.confidence,
        }
        for event in video.events
    ]
    segments = [
        {
            "name": each.name,
            "start_frame": each.start.frame,
            "start_seconds": each.start.seconds,
            "end_frame": each.end.frame,
            "end_seconds": each.end.seconds,
            "confidence": each.confidence,
        }
        for each in video.segments
    ]
    return {"events": events, "segments": segments}


def _print(result: "TransferredLabels") -> None:
    """The least certain labels, and which video to label next."""
    from rich.table import Table

    from cycleback.annotations import Event

    table = Table("video", "event", "time", "confidence")
    rows = [(name, label) for name in result.label_next for label in result.videos[name].labels]
    for name, label in rows[:SHOWN_ROWS]:
        ends = (label.at,) if isinstance(label, Event) else (label.start, label.end)
        when = "-".join(f"{result.videos[name].seconds(at):.2f}" for at in ends)
        table.add_row(name, label.name, f"{when} s", f"{label.confidence:.2f}")
    console().print(table)
    if len(rows) > SHOWN_ROWS:
        print(f"... and {len(rows) - SHOWN_ROWS} more")
    if result.left_out:
        print(f"not labelled, as no labelled video shows their action: {', '.join(result.left_out)}")
    print(f"label this next: {', '.join(result.label_next[:SHOWN_NEXT])}")
