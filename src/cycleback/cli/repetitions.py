"""`cycleback repetitions`: find, count and cut the repetitions of an action in one video."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.inputs import check_clips_folder, check_table_and_picture, embed_inputs, list_inputs
from cycleback.cli.options import Embeddings, Json, Overwrite, Table, Videos
from cycleback.cli.output import print_result

if TYPE_CHECKING:
    from cycleback.applications import Drift, Repetitions
    from cycleback.embeddings import EmbeddingSet


def repetitions(
    videos: Videos = None,
    embeddings: Embeddings = None,
    clips: Annotated[
        Path | None, typer.Option(help="Write each whole repetition as a clip into this folder.")
    ] = None,
    output: Table = Path("repetitions.csv"),
    picture: Annotated[
        Path | None,
        typer.Option(help="Draw the video with most repetitions, with cuts and periods: .png, .svg or .pdf."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find, count and cut repetitions, such as ten push-ups in one video; needs no training.

    The table has one row per repetition, also for a part of one at the beginning or end (whole: 0), with its
    duration, size, speed and difference from the others. Videos in which nothing repeats have no rows. Trends
    over three or more repetitions are told, such as slower and smaller ones at the end.

    Example: cycleback repetitions pushups.mp4 --clips takes --picture pushups.png

    Example: cycleback sync pushups.mp4 --repetitions
    """
    from cycleback.applications import find_repetitions, measure_drift
    from cycleback.applications.drift import DRIFT_COLUMNS
    from cycleback.applications.plots import FORMATS, draw_repetitions
    from cycleback.applications.repetitions import COLUMNS, EQUAL_STREAMS
    from cycleback.files import write_bytes
    from cycleback.tables import write_table

    inputs = list_inputs(videos, embeddings=embeddings)
    check_table_and_picture(output, picture, overwrite=overwrite, inputs=inputs, formats=FORMATS)
    if clips is not None:
        check_clips_folder(clips, overwrite=overwrite, inputs=inputs)
    embedding_set = embed_inputs(videos, embeddings=embeddings, streams=EQUAL_STREAMS)
    found = {n: find_repetitions(embedding_set[n], embedding_set.times(n)) for n in embedding_set}
    drifts = {name: measure_drift(embedding_set[name], each) for name, each in found.items()}
    if picture is not None:
        most = max(found, key=lambda name: found[name].count)
        format = picture.suffix.lower().removeprefix(".")
        drawn = draw_repetitions(
            embedding_set[most], found[most], drift=drifts[most], name=most, format=format
        )
        write_bytes(picture, drawn, overwrite=overwrite)
    written = _write_clips(embedding_set, found, clips, overwrite=overwrite) if clips is not None else []
    rows = [row for name, each in found.items() for row in _add_drift(each.rows(name), drifts[name])]
    write_table(output, rows, columns=(*COLUMNS, *DRIFT_COLUMNS), overwrite=overwrite)
    if not as_json:
        _print_counts(found, drifts)
    counted = sum(each.count > 0 for each in found.values())
    files = [str(path) for path in (output, picture, clips if written else None) if path is not None]
    print_result(
        {"table": str(output), "clips": [str(path) for path in written]}
        | {
            "videos": {
                name: each.to_json() | {"drift": drift.to_json() if (drift := drifts[name]) else None}
                for name, each in found.items()
            }
        },
        f"repetitions in {counted} of {len(found)} videos: {', '.join(files)}",
        _next_command(videos, embeddings, clips, written=len(written), is_counted=counted > 0),
        as_json=as_json,
    )


def _write_clips(
    embedding_set: "EmbeddingSet", found: "dict[str, Repetitions]", folder: Path, *, overwrite: bool
) -> list[Path]:
    """Write the whole repetitions of all videos into one folder."""
    from cycleback.applications import locate_videos, write_clips

    written: list[Path] = []
    names = [name for name, each in found.items() if each.count]
    with progress_bars() as bars:
        for name, video in zip(names, locate_videos(embedding_set, names), strict=True):
            report = counter(bars, f"cutting {name}")
            stem = name.replace("/", "-")
            written += write_clips(
                video,
                found[name],
                folder,
                name=stem,
                overwrite=overwrite,
                only_own=True,
                progress=report,
            )
    return written


def _add_drift(rows: list[dict[str, Any]], drift: "Drift | None") -> list[dict[str, Any]]:
    """Add the measures of whole repetitions to their rows; other cells stay empty."""
    columns = {} if drift is None else drift.columns()
    for row in rows:
        for name, values in columns.items():
            value = float(values[row["repetition"] - 1]) if row["whole"] else math.nan
            row[name] = "" if math.isnan(value) else round(value, 4)
    return rows


def _print_counts(found: "dict[str, Repetitions]", drifts: "dict[str, Drift | None]") -> None:
    """Print one line per video, and one on how its repetitions change."""
    from cycleback.applications.drift import describe_drift

    for name, each in found.items():
        if not each.count:
            print(f"{name}: nothing repeats (confidence of repetitions {each.confidence:.2f})")
            continue
        facts, parts = each.to_json(), len(each.segments) - each.count
        incomplete = f", and {parts} incomplete at the ends" if parts else ""
        period = "" if facts["period_s"] is None else f" of about {facts['period_s']:.2f} s"
        print(f"{name}: {each.count} repetitions{period}{incomplete}, confidence {each.confidence:.2f}")
        if (drift := drifts[name]) is not None:
            print(f"  {describe_drift(drift)}")


def _next_command(
    videos: list[str] | None, embeddings: Path | None, clips: Path | None, *, written: int, is_counted: bool
) -> list[object] | None:
    """Return the words of what to do next: compare the clips, or cut them."""
    if clips is not None:
        return ["sync", clips] if written > 1 else None
    known = [] if embeddings is None else ["--embeddings", embeddings]
    cut = ["repetitions", *(videos or ()), *known, "--clips", "takes", "--overwrite"]
    return cut if is_counted else None
