"""`cycleback timing`: compare when things happen in takes of one action."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.inputs import (
    PRETRAINED,
    check_table_and_picture,
    embed_inputs,
    find_reference,
    list_inputs,
)
from cycleback.cli.options import Embeddings, Json, Overwrite, Repetitions, Run, Table, Videos
from cycleback.cli.output import print_result

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet

GROUP = "group"


def timing(
    videos: Videos = None,
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    repetitions: Repetitions = False,
    reference: Annotated[
        str,
        typer.Option(help="Compare with this take, a path or a name, or with the typical take of the group."),
    ] = GROUP,
    labels: Annotated[
        Path | None,
        typer.Option(help="Use the labels of one or more takes (default: labels.csv of the folder)."),
    ] = None,
    phases: Annotated[
        int | None, typer.Option(help="Let the videos show so many phases; labels are ignored.", min=2)
    ] = None,
    zero: Annotated[
        str | None,
        typer.Option(help="Measure time from this moment (default: the first), or 'begin' for the clip."),
    ] = None,
    output: Table = Path("timing.csv"),
    picture: Annotated[
        Path | None, typer.Option(help="Draw the phases of all takes: .png, .svg or .pdf.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Tell what comes early or late in each take, and which phase is short or long; needs no training.

    Key moments are those of labels.csv, carried over to takes without labels. Without any labels, the phases
    that all takes share are found.

    Example: cycleback timing golf/ --reference golf/pro.mp4 --picture timing.png

    Example: cycleback timing takes/ --phases 4 --zero begin
    """
    from cycleback.applications import judge, measure_timing
    from cycleback.applications.plots import FORMATS, draw_timing
    from cycleback.files import write_bytes
    from cycleback.tables import write_table

    named = None if reference == GROUP else reference
    inputs = list_inputs(videos, named, labels, run, embeddings=embeddings)
    check_table_and_picture(output, picture, overwrite=overwrite, inputs=inputs, formats=FORMATS)
    takes = embed_inputs(videos, run=run, embeddings=embeddings, repetitions=repetitions)
    source, name = takes, named
    if named is not None:
        source, name = find_reference(named, takes, run=run, embeddings=embeddings)
    known = None if labels is None else _read_labels(labels, takes, source)
    report = measure_timing(takes, reference=name, source=source, labels=known, phases=phases, zero=zero)
    if picture is not None:
        drawn = draw_timing(report, format=picture.suffix.lower().removeprefix("."))
        write_bytes(picture, drawn, overwrite=overwrite)
    write_table(output, report.rows(), overwrite=overwrite)
    if not as_json:
        print("\n".join(map(report.describe, report.takes)))
    moments = "moments that all takes share" if report.is_discovered else "labelled moments"
    count = f"{len(report.takes)} takes, {len(report.moments)} {moments}"
    files = f"{output}" if picture is None else f"{output}, drawn in {picture}"
    print_result(
        {"table": str(output)} | report.to_json(),
        f"{count}, compared with {report.compared_with}: {files}",
        as_json=as_json,
        verdict=judge(takes, name or takes.names[0], source=source, are_takes=repetitions),
    )


def _read_labels(path: Path, takes: "EmbeddingSet", source: "EmbeddingSet") -> dict[str, dict[str, int]]:
    """Read the key events of takes, and of a reference of its own, from a file of labels."""
    from cycleback.annotations import read_annotations
    from cycleback.applications import match_labels

    annotations = read_annotations(path)
    apart = [each for each in annotations if source is not takes and each.video in source]
    others = [each for each in annotations if each not in apart]
    return match_labels(others, takes)[0] | match_labels(apart, source)[0]
