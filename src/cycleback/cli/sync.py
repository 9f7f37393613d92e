"""`cycleback sync`: one video in which all play at the pace of a reference."""

from pathlib import Path
from typing import Annotated

import typer

from cycleback.cli.checks import METHODS, check_choice, check_free
from cycleback.cli.output import print_json, print_next
from cycleback.cli.progress import counter, progress_bars


def sync(
    videos: Annotated[list[str], typer.Argument(help="Two or more videos, or one folder of them.")],
    run: Annotated[str, typer.Option(help="Run folder, or 'pretrained'.")] = "pretrained",
    output: Annotated[Path, typer.Option("-o", "--output", help="Video to write.")] = Path("synced.mp4"),
    reference: Annotated[
        str | None, typer.Option(help="Video whose pace the others follow (default: the first).")
    ] = None,
    method: Annotated[str, typer.Option(help="dtw (smooth) or nearest.")] = "dtw",
    columns: Annotated[int | None, typer.Option(help="Videos a row.", min=1)] = None,
    height: Annotated[int | None, typer.Option(help="Pixels a video is tall.", min=16)] = None,
    most: Annotated[int, typer.Option(help="Most videos to show from a folder.", min=2)] = 9,
    sound: Annotated[bool, typer.Option("--sound/--silent", help="Keep the reference's sound.")] = True,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Play videos in sync, side by side or in a grid; works with no training at all.

    Example: cycleback sync a.mp4 b.mp4 c.mp4 --run runs/golf -o synced.mp4
    """
    from cycleback.applications import paths_of, reference_pace, write_synced
    from cycleback.runs import embed_videos
    from cycleback.selection import videos_to_show

    check_choice("alignment method", method, METHODS)
    check_free(output, overwrite=overwrite)
    paths = videos_to_show(videos, reference=reference, most=most)
    with progress_bars() as bars:
        embeddings = embed_videos(run, paths, progress=counter(bars, "embedding"))
        names = list(embeddings.names)
        indices = reference_pace(embeddings, names, reference=names[0], method=method)  # type: ignore[arg-type]
        path = write_synced(
            output,
            paths_of(embeddings, names),
            indices,
            columns=columns,
            height=height,
            sound=sound,
            overwrite=overwrite,
            progress=counter(bars, "writing"),
        )
    if as_json:
        print_json({"video": str(path), "reference": str(paths[0]), "videos": [str(item) for item in paths]})
        return
    print_next(f"{len(paths)} videos at the pace of {paths[0].name}: {path}")
