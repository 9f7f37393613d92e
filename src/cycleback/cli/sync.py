"""`cycleback sync`: one video in which all play at the pace of a reference."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.checks import METHODS, check_choice, one_line_errors
from cycleback.cli.inputs import PRETRAINED, check_one_action, embedded, given_videos
from cycleback.cli.options import Embeddings, Json, Method, Overwrite, Run, Videos
from cycleback.cli.output import print_json, print_next
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.embeddings import EmbeddingSet
    from cycleback.video import Audio

Reference = Annotated[
    str | None, typer.Option(help="Video whose pace the others follow (default: the first).")
]
Smoothing = Annotated[
    float, typer.Option(help="Seconds over which the pace is evened out; 0 for the raw match.", min=0)
]
NoCaptions = Annotated[bool, typer.Option("--no-captions", help="Leave out names, times and progress bars.")]
Sound = Annotated[
    str | None, typer.Option(help="reference (default), none, or a file whose sound to play as it is.")
]
TransferSound = Annotated[
    str | None, typer.Option(help="Video whose sound is moved to the pace of the reference.")
]
Edits = Annotated[
    Path | None, typer.Option(help="Write only the edit decisions: .csv, .edl or .sh (ffmpeg).")
]


def sync(
    videos: Videos = None,
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    reference: Reference = None,
    method: Method = "dtw",
    smoothing: Smoothing = 0.15,
    layout: Annotated[str, typer.Option(help="grid, row, overlay, tinted or switch.")] = "grid",
    switch_every: Annotated[int, typer.Option(help="Frames until 'switch' cuts to the next.", min=1)] = 30,
    columns: Annotated[int | None, typer.Option(help="Videos a row of a grid.", min=1)] = None,
    height: Annotated[int | None, typer.Option(help="Pixels a video is tall.", min=16)] = None,
    most: Annotated[int, typer.Option(help="Most videos to show from a folder or a set.", min=2)] = 9,
    blend: Annotated[bool, typer.Option("--blend", help="Mix frames instead of taking the nearest.")] = False,
    fps: Annotated[float | None, typer.Option(help="Frames a second (default: the reference's).")] = None,
    no_captions: NoCaptions = False,
    sound: Sound = None,
    transfer_sound: TransferSound = None,
    edits: Edits = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Video to write.")] = Path("synced.mp4"),
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Play videos in sync: beside each other, on top of each other or in turns; needs no training.

    Example: cycleback sync a.mp4 b.mp4 c.mp4 --run runs/golf -o synced.mp4
    """
    from cycleback.applications import paths_of, smooth_pace, write_edits, write_synced
    from cycleback.applications.layouts import LAYOUTS

    check_choice("layout", layout, LAYOUTS)
    check_choice("alignment method", method, METHODS)
    _check_place(edits, output, overwrite=overwrite)
    _check_words(fps, sound, transfer_sound, is_edits=edits is not None)
    track = _sound(sound)
    found = _embedded(videos, run=run, embeddings=embeddings, reference=reference, most=most)
    names, files = list(found.names), paths_of(found, found.names)
    if transfer_sound is not None:
        track = _transferred(transfer_sound, names[0] if embeddings else str(files[0]), run, embeddings)
    _warn_if_silent(files[0], sound)
    look: dict[str, Any] = {"layout": layout, "switch_every": switch_every, "columns": columns}
    look |= {"height": height, "overwrite": overwrite}
    pacing: dict[str, Any] = {"method": method, "fps": fps, "smoothing_s": smoothing}
    with one_line_errors(), progress_bars() as bars:
        pace = smooth_pace(found, names, reference=names[0], **pacing)
        if edits is not None:
            written = write_edits(edits, pace, files, sound=track is True, **look)
        else:
            look |= {"blend": blend, "captions": [] if no_captions else names, "sound": track}
            show = counter(bars, "writing")
            written = [write_synced(output, files, list(pace.positions), fps=pace.fps, progress=show, **look)]
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
    videos: list[str] | None, *, run: str, embeddings: Path | None, reference: str | None, most: int
) -> "EmbeddingSet":
    """Embeddings of the videos to show, the reference first."""
    from cycleback.data.selection import check_pair, pick_videos

    if embeddings is None:
        given_videos(videos)
        paths = pick_videos(videos or [], reference=reference, max_videos=most)
        return embedded(list(map(str, paths)), run=run)
    found = embedded(videos, run=run, embeddings=embeddings)
    names = list(found.names)
    if reference is not None:
        found[reference]  # says which names there are, if not this one
        names = [reference, *(name for name in names if name != reference)]
    check_pair("play in sync", len(names))
    shown = found.subset(names[:most])
    check_one_action(shown)
    return shown


def _sound(wanted: str | None) -> "bool | Audio":
    """Whether to keep the reference's sound, or the sound of the file the user names."""
    from cycleback.video import read_audio

    if wanted in (None, "reference", "none"):
        return wanted != "none"
    return read_audio(wanted)


def _transferred(source: str, reference: str, run: str, embeddings: Path | None) -> "Audio":
    """The sound of `source` at the pace of the reference."""
    from cycleback.applications import transfer_sound

    pair = embedded([source, reference], run=run, embeddings=embeddings)
    check_one_action(pair)
    return transfer_sound(pair, pair.names[0], pair.names[-1]).audio


def _warn_if_silent(reference: Path, wanted: str | None) -> None:
    """Say so where the user asks for a sound that is not there."""
    from cycleback.video import probe

    if wanted == "reference" and not probe(reference).has_audio:
        warnings.warn(f"{reference} has no sound track: the result is silent", UserWarning, stacklevel=2)


def _check_words(fps: float | None, sound: str | None, transfer_sound: str | None, *, is_edits: bool) -> None:
    """Refuse what does not go together."""
    if fps is not None and not 0 < fps <= 1000:
        raise UserError(f"cannot play {fps:g} frames a second: expected --fps above 0, at most 1000")
    if sound is not None and transfer_sound is not None:
        raise UserError(f"two sounds, {sound} and {transfer_sound}: give --sound or --transfer-sound")
    if is_edits and (transfer_sound is not None or sound not in (None, "reference", "none")):
        raise UserError("edit decisions have the sound of the reference or none: leave the other out")


def _check_place(edits: Path | None, output: Path, *, overwrite: bool) -> None:
    from cycleback.applications.edit_decisions import EDIT_SUFFIXES
    from cycleback.files import check_output
    from cycleback.video.writer import WRITE_SUFFIXES

    suffixes = WRITE_SUFFIXES if edits is None else EDIT_SUFFIXES
    check_output(edits or output, overwrite=overwrite, suffixes=suffixes)
