"""Line up cameras that filmed one event: what `align` and `sync` do with --method offset and affine."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.inputs import check_choice, embed_inputs, one_line_errors, print_streams
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.applications import OffsetReport, Pace
    from cycleback.embeddings import EmbeddingSet

METHODS = ("offset", "affine")  # of one event filmed by several cameras
SOURCES = ("both", "pictures", "sound")
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="Use both (default), pictures or sound to find an offset, with --method offset or affine.",
    ),
]


def check_source(source: str | None, method: str, *, refused: dict[str, Any]) -> str | None:
    """Return what an offset is found by; None with other methods, which take no --from.

    Args:
        refused: options that only other methods take, by name; none may be set.
    """
    if method not in METHODS:
        if source is not None:
            raise UserError(f"--from is for --method offset or affine only, got {source} with {method}")
        return None
    for option, value in refused.items():
        if value:  # set, and not only to its default
            raise UserError(f"{option} does not go with --method {method}: leave it out")
    check_choice("source of an offset", source or "both", SOURCES)
    return source or "both"


def embed_cameras(videos: Sequence[str], *, run: str, embeddings: Path | None, source: str) -> "EmbeddingSet":
    """Embed videos of one event in the order given; for sound alone, only their times are read."""
    from cycleback.applications import read_clocks
    from cycleback.data.folder import name_files
    from cycleback.runs import embed_videos

    if embeddings is not None:
        return embed_inputs(videos, embeddings=embeddings)
    paths = [Path(video) for video in videos]
    if source == "sound":
        with one_line_errors():
            return read_clocks(dict(zip(name_files(paths), paths, strict=True)))
    with progress_bars() as bars:
        embedded = embed_videos(run, paths, one_event=True, progress=counter(bars, "embedding"))
    print_streams(embedded)
    return embedded


def report_offset(
    embedding_set: "EmbeddingSet", a: str, b: str, *, method: str, source: str
) -> "OffsetReport":
    """Find the offset of two videos, and print what to beware of on stderr."""
    from cycleback.applications import find_offset

    report = find_offset(embedding_set, a, b, source=source, method=method)  # type: ignore[arg-type]
    for note in report.notes:
        print(f"warning: {note}", file=sys.stderr)
    return report


def align_by_offset(
    embedding_set: "EmbeddingSet", names: Sequence[str], *, method: str, source: str
) -> tuple[dict[str, Any], str]:
    """Match the frames of two videos by the line between them; return the result and a summary in words."""
    from cycleback.applications import match_by_offset, tabulate_alignment

    a, b = names
    report = report_offset(embedding_set, a, b, method=method, source=source)
    rows = tabulate_alignment(
        match_by_offset(embedding_set, report),
        times_a=embedding_set.times(a),
        times_b=embedding_set.times(b),
        first_a=embedding_set.first_frame(a),
        first_b=embedding_set.first_frame(b),
    )
    facts = {"a": a, "b": b, "method": method, "offset": report.to_json(), "frames": rows}
    return facts, report.describe()


def pace_cameras(
    embedding_set: "EmbeddingSet", names: Sequence[str], *, method: str, source: str, fps: float | None
) -> "tuple[Pace, dict[str, Any]]":
    """Return what to show of videos of one event, the reference first, and the numbers for --json."""
    from cycleback.applications import pace_by_offset

    reports = [
        report_offset(embedding_set, names[0], name, method=method, source=source) for name in names[1:]
    ]
    lines = {report.b: report.offset.line for report in reports}
    for report in reports:
        print(report.describe() if len(reports) == 1 else f"{report.b}: {report.describe()}", file=sys.stderr)
    found = {report.b: report.to_json() for report in reports}
    return pace_by_offset(embedding_set, names, lines, fps=fps), {"offsets": found}
