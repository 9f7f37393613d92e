"""`cycleback align`: which frame of B is which frame of A; of several videos, one clock for all."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cycleback.cli.checks import check_choice, one_line_errors
from cycleback.cli.inputs import PRETRAINED, check_one_action, embedded
from cycleback.cli.options import Embeddings, Json, Overwrite, Run
from cycleback.cli.output import print_json, print_next
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.alignment import Alignment
    from cycleback.embeddings import EmbeddingSet

METHODS = ("dtw", "nearest", "subsequence", "open-end", "overlap")


def align(
    videos: Annotated[
        list[str], typer.Argument(help="Two or more videos, a folder of them, or names in the embedding set.")
    ],
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    method: Annotated[
        str,
        typer.Option(
            help="dtw (ends joined), nearest (any order), subsequence (A somewhere in B), "
            "open-end (same start), overlap (a part in common)."
        ),
    ] = "dtw",
    band: Annotated[
        float | None, typer.Option(help="Share of B that dtw may stray from constant speed, as 0.2.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Table to write: .csv or .json (default: A-to-B.csv)."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Similarity of A and B to draw: .png, .svg or .pdf.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find each frame of A in B, with a confidence for every frame; needs no training.

    Three or more videos get one clock: a table with a row a tick and the frame of each video at it.

    Example: cycleback align a.mp4 b.mp4 --run runs/golf -o a-to-b.csv
    """
    from cycleback.applications.plots import FORMATS
    from cycleback.files import TABLE_SUFFIXES, check_output, write_table

    check_choice("alignment method", method, METHODS)
    if output is not None:
        check_output(output, overwrite=overwrite, suffixes=TABLE_SUFFIXES)
    if picture is not None:
        check_output(picture, overwrite=overwrite, suffixes=[f".{format}" for format in FORMATS])
    found, names = _embedded(videos, run=run, embeddings=embeddings)
    if output is None and not as_json:
        output = check_output(_default_name(names), overwrite=overwrite)
    with one_line_errors():
        if len(names) == 2:
            result = _pair(found, names, method=method, band=band, picture=picture, overwrite=overwrite)
        else:
            result = _clock(found, names, method=method, band=band, picture=picture)
    if output is not None:
        write_table(output, result["frames"], overwrite=overwrite)
    if as_json:
        print_json({key: value for key, value in result.items() if key != "summary"})
        return
    with_run = "" if run == PRETRAINED else f" --run {run}"
    follow = f"cycleback sync {' '.join(videos)}{with_run}" if embeddings is None else None
    print_next(f"{result['summary']}: {output}" + ("" if picture is None else f", {picture}"), follow)


def _embedded(
    videos: Sequence[str], *, run: str, embeddings: Path | None
) -> "tuple[EmbeddingSet, Sequence[str]]":
    """An embedding set with all videos, and their names in it."""
    from cycleback.data.selection import check_pair, name_files

    folder = embeddings is None and len(videos) == 1 and Path(videos[0]).is_dir()
    if not folder:
        check_pair("align", len(videos))
    found = embedded(videos, run=run, embeddings=embeddings)
    if folder:
        names: Sequence[str] = found.names
    else:
        names = videos if embeddings is not None else name_files([Path(video) for video in videos])
    check_pair("align", len(names))
    check_one_action(found)
    return found, names


def _pair(
    found: "EmbeddingSet",
    names: Sequence[str],
    *,
    method: str,
    band: float | None,
    picture: Path | None,
    overwrite: bool,
) -> dict[str, Any]:
    """The table of two videos, where each frame of A is in B, and its picture."""
    from cycleback.alignment import align as align_arrays
    from cycleback.applications import alignment_rows

    a, b = names
    alignment = align_arrays(found[a], found[b], method=method.replace("-", "_"), band=band)  # type: ignore[arg-type]
    rows = alignment_rows(alignment, times_a=found.times(a), times_b=found.times(b))
    sure = ~alignment.abstain
    for row, is_matched, is_sure in zip(rows, alignment.matched.tolist(), sure.tolist(), strict=True):
        row.update(matched=is_matched, sure=is_sure)
    mean, matched = float(alignment.confidence.mean()), int(alignment.matched.sum())
    summary = f"{matched} of {len(rows)} frames matched, {int(sure.sum())} of them surely"
    if picture is not None:
        _draw(found, names, alignment, picture, overwrite=overwrite)
    return {
        "a": a,
        "b": b,
        "method": method,
        "mean_confidence": mean,
        "frames": rows,
        "summary": f"{summary}, mean confidence {mean:.2f}",
    }


def _clock(
    found: "EmbeddingSet", names: Sequence[str], *, method: str, band: float | None, picture: Path | None
) -> dict[str, Any]:
    """The table of several videos: the frame of each at every tick of one clock."""
    from cycleback.alignment import align_many

    if method != "dtw" or band is not None or picture is not None:
        raise UserError(
            f"{len(names)} videos share a clock, which takes no --method, --band or --picture: "
            "leave these out, or align two videos"
        )
    together = align_many([found[name] for name in names])
    rows: list[dict[str, Any]] = [{"tick": tick} for tick in range(len(together.template))]
    for name, indices in zip(names, together.indices, strict=True):
        times = found.times(name)
        for row, frame in zip(rows, indices.tolist(), strict=True):
            row[f"{name} frame"], row[f"{name} seconds"] = frame, round(float(times[frame]), 6)
    return {
        "videos": list(names),
        "medoid": names[together.medoid],
        "frames": rows,
        "summary": f"{len(names)} videos on one clock of {len(rows)} ticks",
    }


def _default_name(names: Sequence[str]) -> Path:
    stems = [Path(name).stem for name in names]
    return Path(f"{stems[0]}-to-{stems[1]}.csv" if len(stems) == 2 else "shared-clock.csv")


def _draw(
    found: "EmbeddingSet", names: Sequence[str], alignment: "Alignment", picture: Path, *, overwrite: bool
) -> None:
    """The similarity of two videos, with the matches the alignment found."""
    import numpy as np

    from cycleback.applications.plots import similarity_picture
    from cycleback.files import write_bytes

    a, b = names
    path = alignment.path
    if path is None:  # nearest: a point a frame, in no order
        path = np.stack([np.arange(len(alignment.indices)), alignment.indices], axis=1)
    content = similarity_picture(
        {"": (found[a], found[b])}, path=path, names=(a, b), format=picture.suffix.lower().removeprefix(".")
    )
    write_bytes(picture, content, overwrite=overwrite)
