"""`cycleback sync`: one video in which all play at the pace of a reference."""

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.checks import METHODS, check_choice, check_free, one_line_errors
from cycleback.cli.output import print_json, print_next
from cycleback.cli.progress import counter, progress_bars
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet
    from cycleback.video import Audio


def sync(
    videos: Annotated[
        list[str] | None, typer.Argument(help="Two or more videos, one folder of them, or names in a set.")
    ] = None,
    run: Annotated[str, typer.Option(help="Run folder, or 'pretrained'.")] = "pretrained",
    embeddings: Annotated[Path | None, typer.Option(help="Embedding set to use instead of a run.")] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Video to write.")] = Path("synced.mp4"),
    edits: Annotated[
        Path | None, typer.Option(help="Write only the edit decisions: .csv, .edl or .sh (ffmpeg).")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Video whose pace the others follow (default: the first).")
    ] = None,
    layout: Annotated[str, typer.Option(help="grid, row, overlay, tinted or switch.")] = "grid",
    switch_every: Annotated[int, typer.Option(help="Frames until 'switch' cuts to the next.", min=1)] = 30,
    method: Annotated[str, typer.Option(help="dtw or nearest.")] = "dtw",
    smoothing: Annotated[
        float, typer.Option(help="Seconds over which the pace is evened out; 0 for the raw match.", min=0)
    ] = 0.15,
    blend: Annotated[bool, typer.Option("--blend", help="Mix frames instead of taking the nearest.")] = False,
    fps: Annotated[float | None, typer.Option(help="Frames a second (default: the reference's).")] = None,
    columns: Annotated[int | None, typer.Option(help="Videos a row of a grid.", min=1)] = None,
    height: Annotated[int | None, typer.Option(help="Pixels a video is tall.", min=16)] = None,
    most: Annotated[int, typer.Option(help="Most videos to show from a folder or a set.", min=2)] = 9,
    captions: Annotated[
        bool, typer.Option("--captions/--no-captions", help="Names, times and progress bars.")
    ] = True,
    sound: Annotated[
        str | None, typer.Option(help="reference (default), none, or a file whose sound to play as it is.")
    ] = None,
    silent: Annotated[bool, typer.Option("--silent", help="The same as --sound none.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Play videos in sync: beside each other, on top of each other or in turns; needs no training.

    Example: cycleback sync a.mp4 b.mp4 c.mp4 --run runs/golf -o synced.mp4
    """
    from cycleback.applications import paths_of, smooth_pace, write_synced
    from cycleback.applications.edit_decisions import EDIT_SUFFIXES, write_edits
    from cycleback.applications.layouts import LAYOUTS
    from cycleback.video.writer import WRITE_SUFFIXES

    check_choice("layout", layout, LAYOUTS)
    check_choice("alignment method", method, METHODS)
    if fps is not None and not 0 < fps <= 1000:
        raise UserError(f"cannot play {fps:g} frames a second: expected --fps above 0, at most 1000")
    _check_place(edits or output, EDIT_SUFFIXES if edits else WRITE_SUFFIXES)
    check_free(edits or output, overwrite=overwrite)
    wanted = "none" if silent else sound
    track = _sound(wanted)
    found = _embedded(videos or [], run=run, embeddings=embeddings, reference=reference, most=most)
    names, files = list(found.names), paths_of(found, found.names)
    _warn_if_silent(files[0], wanted)
    with one_line_errors(), progress_bars() as bars:
        pace = smooth_pace(
            found,
            names,
            reference=names[0],
            method=method,  # type: ignore[arg-type]
            fps=fps,
            smoothing_s=smoothing,
        )
        if edits is not None:
            written = write_edits(
                edits,
                pace,
                files,
                layout=layout,
                switch_every=switch_every,
                columns=columns,
                height=height,
                sound=track is True,
                overwrite=overwrite,
            )
        else:
            path = write_synced(
                output,
                files,
                list(pace.positions),
                layout=layout,
                switch_every=switch_every,
                blend=blend,
                captions=names if captions else [],
                columns=columns,
                height=height,
                fps=pace.fps,
                sound=track,
                overwrite=overwrite,
                progress=counter(bars, "writing"),
            )
            written = [path]
    _report(written, files, kind="video" if edits is None else "edits", as_json=as_json)


def _report(written: list[Path], files: list[Path], *, kind: str, as_json: bool) -> None:
    """Say where the result is."""
    if as_json:
        listed = str(written[0]) if kind == "video" else [str(path) for path in written]
        print_json({kind: listed, "reference": str(files[0]), "videos": [str(path) for path in files]})
        return
    where = ", ".join(map(str, written[:3])) + (f" and {len(written) - 3} more" if len(written) > 3 else "")
    print_next(f"{len(files)} videos at the pace of {files[0].name}: {where}")


def _embedded(
    videos: list[str], *, run: str, embeddings: Path | None, reference: str | None, most: int
) -> "EmbeddingSet":
    """Embeddings of the videos to show, the reference first."""
    from cycleback.cli.inputs import embedded
    from cycleback.errors import DataError
    from cycleback.selection import videos_to_show

    if embeddings is None:
        from cycleback.runs import embed_videos

        if not videos:
            raise UserError("no videos given: name video files or a folder, or a set with --embeddings")
        paths = videos_to_show(videos, reference=reference, most=most)
        with progress_bars() as bars:
            return embed_videos(run, paths, progress=counter(bars, "embedding"))
    found = embedded(videos, embeddings=embeddings)
    names = list(found.names)
    if reference is not None:
        found[reference]  # says which names there are, if not this one
        names = [reference, *(name for name in names if name != reference)]
    if len(names) < 2:
        raise DataError(f"need at least two videos to play in sync, got {len(names)}")
    return found.subset(names[:most])


def _sound(wanted: str | None) -> "bool | Audio":
    """Whether to keep the reference's sound, or the sound of the file the user names."""
    from cycleback.video import read_audio

    if wanted in (None, "reference", "none"):
        return wanted != "none"
    return read_audio(wanted)


def _warn_if_silent(reference: Path, wanted: str | None) -> None:
    """Say so where the user asks for a sound that is not there."""
    from cycleback.video import probe

    if wanted == "reference" and not probe(reference).has_audio:
        warnings.warn(f"{reference} has no sound track: the result is silent", UserWarning, stacklevel=2)


def _check_place(path: Path, suffixes: tuple[str, ...]) -> None:
    """Refuse a place where nothing can be written before work is spent on it."""
    if path.suffix.lower() not in suffixes:
        raise UserError(f"cannot write {path}: expected a name ending in {', '.join(suffixes)}")
    if not path.parent.is_dir():
        raise UserError(f"cannot write {path}: folder {path.parent} does not exist; create it first")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"cannot write {path}: no permission to write in {path.parent}")
