"""`cycleback align`: which frame of B is which frame of A."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.checks import METHODS, check_choice, check_free
from cycleback.cli.output import print_json, print_next
from cycleback.cli.progress import counter, progress_bars

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet


def align(
    a: Annotated[str, typer.Argument(help="Video file, or a name in the embedding set.")],
    b: Annotated[str, typer.Argument(help="Video file, or a name in the embedding set.")],
    run: Annotated[str, typer.Option(help="Run folder, or 'pretrained'.")] = "pretrained",
    embeddings: Annotated[Path | None, typer.Option(help="Embedding set that holds both videos.")] = None,
    method: Annotated[str, typer.Option(help="dtw or nearest.")] = "dtw",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Table to write: .csv or .json.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as one JSON object.")] = False,
) -> None:
    """Find each frame of A in B, with a confidence for every frame; works with no training at all.

    Example: cycleback align a.mp4 b.mp4 --run runs/golf -o a-to-b.csv
    """
    from cycleback.alignment import align as align_arrays
    from cycleback.applications import alignment_rows, write_table

    check_choice("alignment method", method, METHODS)
    if output is not None:
        check_free(output, overwrite=overwrite)
    found, first, second = _embed_pair(a, b, run=run, embeddings=embeddings)
    alignment = align_arrays(found[first], found[second], method=method)  # type: ignore[arg-type]
    rows = alignment_rows(alignment, times_a=found.times(first), times_b=found.times(second))
    sure = float(alignment.confidence.mean())
    if as_json:
        if output is not None:
            write_table(output, rows, overwrite=overwrite)
        print_json({"a": a, "b": b, "method": method, "mean_confidence": sure, "frames": rows})
        return
    path = write_table(output or Path(f"{Path(a).stem}-to-{Path(b).stem}.csv"), rows, overwrite=overwrite)
    with_run = "" if run == "pretrained" else f" --run {run}"
    print_next(
        f"{len(rows)} frames matched, mean confidence {sure:.2f}: {path}",
        f"cycleback sync {a} {b}{with_run}" if embeddings is None else None,
    )


def _embed_pair(a: str, b: str, *, run: str, embeddings: Path | None) -> "tuple[EmbeddingSet, str, str]":
    """An embedding set with both videos, and their names in it."""
    from cycleback.embeddings import EmbeddingSet
    from cycleback.runs import embed_videos
    from cycleback.selection import file_names

    if embeddings is not None:
        return EmbeddingSet.load(embeddings), a, b
    with progress_bars() as bars:
        found = embed_videos(run, [a, b], progress=counter(bars, "embedding"))
    first, second = file_names([Path(a), Path(b)])
    return found, first, second
