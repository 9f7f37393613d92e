"""`cycleback sync`: play videos at the pace of a reference, in one video."""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.inputs import (
    PRETRAINED,
    check_choice,
    check_file,
    embed_inputs,
    list_inputs,
    note_repetitions,
    one_line_errors,
    parse_videos,
)
from cycleback.cli.options import Embeddings, Json, NoPins, Overwrite, Pins, Repetitions, Run, Videos
from cycleback.cli.output import print_result
from cycleback.cli.pins import check_no_pins, collect_pins, load_pins
from cycleback.errors import UserError, one_of

if TYPE_CHECKING:
    from cycleback.data import Pin
    from cycleback.embeddings import EmbeddingSet
    from cycleback.video import Audio

MIN_CUT_S = 0.1  # less of a video that is not shown is not worth telling
METHODS = ("auto", "dtw", "nearest", "overlap", "subsequence")
SyncMethod = Annotated[
    str,
    typer.Option(
        "--method",
        help=f"Choose {one_of(METHODS)}.",
    ),
]
Smoothing = Annotated[
    float,
    typer.Option(
        "--smoothing-s",
        help="Smooth the pace over so many seconds; 0: raw match.",
        min=0,
        metavar="SECONDS",
    ),
]
Layout = Annotated[str, typer.Option(help="Choose grid, row, overlay, tinted or switch.")]
Sound = Annotated[
    str | None, typer.Option(help="Play the sound of the reference (default), none, or of this file.")
]
TransferSound = Annotated[
    str | None, typer.Option(help="Play the sound of this video at the pace of the reference.")
]
Edits = Annotated[
    Path | None, typer.Option(help="Write edit decisions only: .csv, .edl, .otio, .fcpxml or .sh (ffmpeg).")
]


def sync(
    videos: Videos = None,
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    reference: Annotated[
        str | None, typer.Option(help="Follow the pace of this video (default: the first).")
    ] = None,
    method: SyncMethod = "auto",
    smoothing: Smoothing = 0.15,
    repetitions: Repetitions = False,
    pin: Pins = None,
    no_pins: NoPins = False,
    layout: Layout = "grid",
    switch_every: Annotated[
        int, typer.Option(help="Cut to the next video after so many frames ('switch').", min=1)
    ] = 30,
    columns: Annotated[int | None, typer.Option(help="Set the videos per row of a grid.", min=1)] = None,
    height: Annotated[int | None, typer.Option(help="Set the height of a video in pixels.", min=16)] = None,
    most: Annotated[int, typer.Option(help="Show at most so many videos of a folder or set.", min=2)] = 9,
    blend: Annotated[bool, typer.Option("--blend", help="Mix frames instead of taking the nearest.")] = False,
    fps: Annotated[
        float | None, typer.Option(help="Set the frames per second (default: as the reference).")
    ] = None,
    no_captions: Annotated[
        bool, typer.Option("--no-captions", help="Leave out names, times and progress bars.")
    ] = False,
    sound: Sound = None,
    transfer_sound: TransferSound = None,
    edits: Edits = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Write this video.")] = Path("synced.mp4"),
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Play videos in sync: beside each other, on top of each other or in turns; needs no training.

    What a video shows before the reference begins, or after it ends, is cut; the summary tells how much.
    Methods: auto leaves out lead-ins and lead-outs; dtw joins both ends; nearest ignores order; overlap joins
    the part in common; subsequence finds the reference somewhere in longer videos.

    Pins correct the match of two videos by hand; those of pins.csv in the folder of the videos are used, too.

    Example: cycleback sync a.mp4 b.mp4 c.mp4 --run runs/golf -o synced.mp4

    Example: cycleback sync a.mp4 b.mp4 --pin 12:30 --pin 1.5s:2.4s

    Example: cycleback sync pushups.mp4 --repetitions --layout overlay
    """
    from cycleback.applications import locate_videos, smooth_pace, write_edits, write_synced
    from cycleback.applications.edits import EDIT_SUFFIXES
    from cycleback.applications.sync import LAYOUTS
    from cycleback.video import probe
    from cycleback.video.writer import WRITE_SUFFIXES

    check_choice("layout", layout, LAYOUTS)
    check_choice("alignment method", method, METHODS)
    suffixes = WRITE_SUFFIXES if edits is None else EDIT_SUFFIXES
    _check_options(fps, sound, transfer_sound, is_edits=edits is not None)
    check_no_pins(repetitions, pin)
    if repetitions and transfer_sound is not None:
        raise UserError("--transfer-sound is for whole videos: leave it out, or leave out --repetitions")
    inputs = list_inputs(videos, reference, sound, transfer_sound, run, embeddings=embeddings)
    check_file(edits or output, overwrite=overwrite, suffixes=suffixes, inputs=inputs)
    track = _read_sound(sound)
    if repetitions:
        embedding_set = _embed_takes(videos, run, embeddings, reference=reference, max_takes=most)
    else:
        embedding_set = _embed(videos, run=run, embeddings=embeddings, reference=reference, max_videos=most)
        note_repetitions(embedding_set)
    names, files = list(embedding_set.names), locate_videos(embedding_set, embedding_set.names)
    pins = collect_pins(embedding_set, pin, videos=videos, is_file_used=not no_pins and not repetitions)
    if transfer_sound is not None:
        target = names[0] if embeddings else str(files[0])
        track = _transfer(transfer_sound, target, run, embeddings, pins=pins, is_file_used=not no_pins)
    if sound == "reference" and not probe(files[0]).has_audio:
        warnings.warn(f"{files[0]} has no sound track: the result is silent", UserWarning, stacklevel=1)
    style: dict[str, Any] = {"layout": layout, "switch_every": switch_every, "columns": columns}
    style |= {"height": height, "overwrite": overwrite}
    with one_line_errors(), progress_bars() as bars:
        pace = smooth_pace(
            embedding_set,
            names,
            reference=names[0],
            method=method,  # type: ignore[arg-type]
            fps=fps,
            smoothing_s=smoothing,
            pins=pins,
        )
        if edits is not None:
            written = write_edits(edits, pace, files, sound=track is True, **style)
        else:
            style |= {"blend": blend, "captions": [] if no_captions else names, "sound": track}
            style |= {"fps": pace.fps, "progress": counter(bars, "writing")}
            written = [write_synced(output, files, list(pace.positions), **style)]
    facts = {"video": str(written[0])} if edits is None else {"edits": [str(path) for path in written]}
    where = ", ".join(map(str, written[:3])) + (f" and {len(written) - 3} more" if len(written) > 3 else "")
    cuts, words = _tell_cuts(names if repetitions else files, pace.cuts)
    what = f"takes at the pace of {names[0]}" if repetitions else f"videos at the pace of {files[0].name}"
    print_result(
        {**facts, "reference": str(files[0]), "videos": [str(path) for path in files]}
        | ({"takes": names} if repetitions else {})
        | {"pins": len(pins), "cuts": cuts},
        f"{len(files)} {what}{words}: {where}",
        as_json=as_json,
    )


def _tell_cuts(
    files: Sequence[Path | str], cuts: Sequence[tuple[float, float]]
) -> tuple[list[dict[str, Any]], str]:
    """Return which videos are not shown whole, and the same in words."""
    told: list[dict[str, Any]] = [
        {"video": str(path), "before_s": round(before, 2), "after_s": round(after, 2)}
        for path, (before, after) in zip(files, cuts, strict=True)
        if max(before, after) >= MIN_CUT_S
    ]
    words = ""
    for cut in told:
        ends = {"first": cut["before_s"], "last": cut["after_s"]}
        missing = " and ".join(f"{end} {cut_s:g} s" for end, cut_s in ends.items() if cut_s >= MIN_CUT_S)
        words += f"; {Path(cut['video']).name} without its {missing}"
    return told, words


def _embed(
    videos: list[str] | None, *, run: str, embeddings: Path | None, reference: str | None, max_videos: int
) -> "EmbeddingSet":
    """Return embeddings of the videos to show, the reference first."""
    from cycleback.data.folder import check_pair, pick_videos
    from cycleback.data.usable import can_be_read
    from cycleback.embeddings import check_one_action

    if embeddings is None:
        parse_videos(videos)
        paths = pick_videos(videos or [], reference=reference, max_videos=max_videos, is_usable=can_be_read)
        return embed_inputs(list(map(str, paths)), run=run)
    embedding_set = embed_inputs(videos, run=run, embeddings=embeddings)
    names = list(embedding_set.names)
    if reference is not None:
        embedding_set[reference]  # raises with the known names, if this is none of them
        names = [reference, *(name for name in names if name != reference)]
    check_pair("play in sync", len(names))
    chosen = embedding_set.subset(names[:max_videos])
    check_one_action(chosen)
    return chosen


def _embed_takes(
    videos: list[str] | None, run: str, embeddings: Path | None, *, reference: str | None, max_takes: int
) -> "EmbeddingSet":
    """Return embeddings of the repetitions to show, the reference first."""
    from cycleback.embeddings import check_one_action

    takes = embed_inputs(videos, run=run, embeddings=embeddings, repetitions=True)
    check_one_action(takes)
    names = list(takes.names)
    if reference is not None:
        video = Path(reference).stem
        first = reference if reference in takes else next((n for n in names if takes.source(n) == video), "")
        takes[first or reference]  # raises with the known names, if this is none of them
        names = [first, *(name for name in names if name != first)]
    if len(names) > max_takes:
        print(f"shown: {max_takes} of {len(names)} takes (--most {len(names)} shows all)", file=sys.stderr)
    return takes.subset(names[:max_takes])


def _read_sound(wanted: str | None) -> "bool | Audio":
    """Return whether to keep the reference's sound, or the sound of the named file."""
    from cycleback.video import read_audio

    return wanted != "none" if wanted in (None, "reference", "none") else read_audio(wanted)


def _transfer(
    source: str,
    reference: str,
    run: str,
    embeddings: Path | None,
    *,
    pins: "Sequence[Pin]",
    is_file_used: bool,
) -> "Audio":
    """Return the sound of `source` at the pace of the reference."""
    from cycleback.applications import transfer_sound
    from cycleback.embeddings import check_one_action

    pair = embed_inputs([source, reference], run=run, embeddings=embeddings)
    check_one_action(pair)
    own = load_pins(pair, videos=None) if is_file_used else []
    return transfer_sound(pair, pair.names[0], pair.names[-1], pins=[*pins, *own]).audio


def _check_options(
    fps: float | None, sound: str | None, transfer_sound: str | None, *, is_edits: bool
) -> None:
    """Refuse options that contradict each other."""
    if fps is not None and not 0 < fps <= 1000:
        raise UserError(f"cannot play {fps:g} frames per second: expected --fps above 0, at most 1000")
    if sound is not None and transfer_sound is not None:
        raise UserError(f"two sounds, {sound} and {transfer_sound}: give --sound or --transfer-sound")
    if is_edits and (transfer_sound is not None or sound not in (None, "reference", "none")):
        raise UserError("edit decisions have the sound of the reference or none: leave out the other sound")
