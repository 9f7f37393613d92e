"""`cycleback sync`: play videos at the pace of a reference, in one video."""

import sys
import warnings
from collections.abc import Sequence
from itertools import compress
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
    one_line_errors,
    parse_videos,
)
from cycleback.cli.offsets import From, check_source, embed_cameras, pace_cameras
from cycleback.cli.options import Embeddings, Json, NoPins, Overwrite, Pins, Repetitions, Run, Videos
from cycleback.cli.output import print_result
from cycleback.cli.pins import check_no_pins, collect_pins, load_pins
from cycleback.cli.playback import Mirror, Playback, Slow, SlowAround, Still, Trim
from cycleback.errors import UserError, one_of

if TYPE_CHECKING:
    from cycleback.applications import Pace, Verdict
    from cycleback.data import Pin
    from cycleback.embeddings import EmbeddingSet
    from cycleback.video import Audio

MIN_CUT_S = 0.1  # less of a video that is not shown is not worth telling
MIN_FPS, MAX_FPS = 0.1, 1000
MAX_SMOOTHING_S = 3600
METHODS = ("auto", "dtw", "nearest", "overlap", "subsequence", "offset", "affine")
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
        max=MAX_SMOOTHING_S,
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
    source: From = None,
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
    trim: Trim = None,
    slow: Slow = 1.0,
    slow_around: SlowAround = None,
    mirror: Mirror = "auto",
    still: Still = None,
    sound: Sound = None,
    transfer_sound: TransferSound = None,
    edits: Edits = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Write this video, .rrd or picture (default: synced.mp4, still.png)."
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Play videos in sync: beside each other, on top of each other or in turns; needs no training.

    What a video shows before the reference begins, or after it ends, is cut; the summary tells how much.
    Methods: auto leaves out lead-ins and lead-outs; dtw joins both ends; nearest ignores order; overlap joins
    the part in common; subsequence finds the reference somewhere in longer videos. Of one event filmed by
    several cameras, offset shifts the videos, and affine corrects the drift of their clocks, too.

    Pins correct the match of two videos by hand; those of pins.csv in the folder of the videos are used, too.

    Example: cycleback sync a.mp4 b.mp4 c.mp4 --run runs/golf -o synced.mp4

    Example: cycleback sync a.mp4 b.mp4 --pin 12:30 --pin 1.5s:2.4s

    Example: cycleback sync left.mp4 right.mp4 --method offset --from sound

    Example: cycleback sync pushups.mp4 --repetitions --layout overlay

    Example: cycleback sync a.mp4 b.mp4 --trim top:finish --slow 0.25 --slow-around impact

    Example: cycleback sync a.mp4 b.mp4 --still impact -o impact.png
    """
    from cycleback.applications import judge, locate_videos
    from cycleback.applications.sync import LAYOUTS
    from cycleback.video import probe

    check_choice("layout", layout, LAYOUTS)
    check_choice("alignment method", method, METHODS)
    refused = {"--pin": pin, "--repetitions": repetitions, "--transfer-sound": transfer_sound}
    found_by = check_source(source, method, refused=refused)
    playback = Playback(trim, slow, slow_around, mirror, still)
    playback.check(is_edits=edits is not None)
    target, suffixes = _choose_output(output, edits, is_still=still is not None)
    _check_options(fps, sound, transfer_sound, is_edits=edits is not None)
    check_no_pins(repetitions, pin)
    if repetitions and transfer_sound is not None:
        raise UserError("--transfer-sound is for whole videos: leave it out, or leave out --repetitions")
    inputs = list_inputs(videos, reference, sound, transfer_sound, run, embeddings=embeddings)
    check_file(target, overwrite=overwrite, suffixes=suffixes, inputs=inputs)
    track = _read_sound(sound)
    chosen: dict[str, Any] = {"run": run, "embeddings": embeddings, "reference": reference, "most": most}
    embedding_set = (
        _embed_takes(videos, **chosen) if repetitions else _embed(videos, **chosen, source=found_by)
    )
    names, files = list(embedding_set.names), locate_videos(embedding_set, embedding_set.names)
    is_file_used = not (no_pins or repetitions or found_by)
    pins = collect_pins(embedding_set, pin, videos=videos, is_file_used=is_file_used)
    if transfer_sound is not None and still is None:
        heard = names[0] if embeddings else str(files[0])
        track = _transfer(transfer_sound, heard, run, embeddings, pins=pins, is_file_used=not no_pins)
    if sound == "reference" and not probe(files[0]).has_audio:
        warnings.warn(f"{files[0]} has no sound track: the result is silent", UserWarning, stacklevel=1)
    flipped = playback.choose_flipped(embedding_set, names, layout=layout, is_edits=edits is not None)
    style: dict[str, Any] = {"layout": layout, "columns": columns, "height": height, "overwrite": overwrite}
    verdict = None if found_by else judge(embedding_set, names[0], names, are_takes=repetitions)
    with one_line_errors(), progress_bars() as bars:
        options = {"method": method, "fps": fps, "smoothing_s": smoothing, "pins": pins}
        pace, offsets = _choose_pace(embedding_set, found_by, options)
        if still is not None:
            style |= {"captions": [] if no_captions else names, "mirrored": flipped}
            return _write_still(target, pace, files, playback, verdict=verdict, as_json=as_json, **style)
        cuts, words = _tell_cuts(names if repetitions else files, pace.cuts if trim is None else ())
        pace, changes = playback.change(pace, files[0])
        track = playback.change_sound(track, pace, files[0])
        style |= {"switch_every": switch_every}
        if edits is None:
            style |= {"blend": blend, "captions": [] if no_captions else names, "mirrored": flipped}
            style |= {"progress": counter(bars, "writing")}
        written = _write(target, pace, embedding_set, track=track, is_edits=edits is not None, **style)
    facts = {"video": str(written[0])} if edits is None else {"edits": [str(path) for path in written]}
    where = ", ".join(map(str, written[:3])) + (f" and {len(written) - 3} more" if len(written) > 3 else "")
    what = f"takes at the pace of {names[0]}" if repetitions else f"videos at the pace of {files[0].name}"
    print_result(
        {**facts, "reference": str(files[0]), "videos": [str(path) for path in files]}
        | ({"takes": names} if repetitions else {})
        | {"pins": len(pins), "cuts": cuts, "flipped": list(compress(names, flipped))}
        | offsets,
        f"{len(files)} {what}{changes}{words}: {where}",
        as_json=as_json,
        verdict=verdict,
    )


def _choose_output(output: Path | None, edits: Path | None, *, is_still: bool) -> tuple[Path, Sequence[str]]:
    """Return the file to write, and the endings it may have."""
    from cycleback.applications.edits import EDIT_SUFFIXES
    from cycleback.applications.recordings import RECORDING_SUFFIXES, require_rerun
    from cycleback.applications.sync import STILL_SUFFIXES
    from cycleback.video.writer import WRITE_SUFFIXES

    if edits is not None:
        return edits, EDIT_SUFFIXES
    if is_still:
        return output or Path("still.png"), STILL_SUFFIXES
    target = output or Path("synced.mp4")
    if target.suffix.lower() in RECORDING_SUFFIXES:
        require_rerun()
    return target, (*WRITE_SUFFIXES, *RECORDING_SUFFIXES)


def _write(
    target: Path,
    pace: "Pace",
    embedding_set: "EmbeddingSet",
    *,
    track: "bool | Audio",
    is_edits: bool,
    **style: Any,
) -> list[Path]:
    """Write the video, the recording or the edit decisions."""
    from cycleback.applications import locate_videos, write_edits, write_synced
    from cycleback.applications.recordings import RECORDING_SUFFIXES, write_recording

    files = locate_videos(embedding_set, embedding_set.names)
    if is_edits:
        return write_edits(target, pace, files, sound=track is True, **style)
    if target.suffix.lower() in RECORDING_SUFFIXES:
        return [write_recording(target, embedding_set, pace, files, overwrite=style["overwrite"])]
    return [write_synced(target, files, list(pace.positions), fps=pace.fps, sound=track, **style)]


def _write_still(
    target: Path,
    pace: "Pace",
    files: Sequence[Path],
    playback: Playback,
    *,
    verdict: "Verdict | None",
    as_json: bool,
    **style: Any,
) -> None:
    """Write one picture of all videos at a moment, and say which frame of each it shows."""
    from cycleback.applications.sync import write_still

    positions, second = playback.find_still(pace, files[0])
    write_still(target, files, positions, **style)
    facts = {"picture": str(target), "reference": str(files[0]), "second": round(second, 6)}
    facts |= {"videos": [str(path) for path in files], "frames": [round(place) for place in positions]}
    words = f"{len(files)} videos at {second:.2f} s of {files[0].name}: {target}"
    print_result(facts, words, as_json=as_json, verdict=verdict)


def _choose_pace(
    embedding_set: "EmbeddingSet", found_by: str | None, options: dict[str, Any]
) -> "tuple[Pace, dict[str, Any]]":
    """Return what is shown when, by a match or by an offset, and what --json tells of the offsets."""
    from cycleback.applications import smooth_pace

    names = embedding_set.names
    if found_by is None:
        return smooth_pace(embedding_set, names, reference=names[0], **options), {}
    method, fps = options["method"], options["fps"]
    return pace_cameras(embedding_set, names, method=method, source=found_by, fps=fps)


def _tell_cuts(
    files: Sequence[Path | str], cuts: Sequence[tuple[float, float]]
) -> tuple[list[dict[str, Any]], str]:
    """Return which videos are not shown whole, and the same in words."""
    told: list[dict[str, Any]] = [
        {"video": str(path), "before_s": round(before, 2), "after_s": round(after, 2)}
        for path, (before, after) in zip(files, cuts or [(0.0, 0.0)] * len(files), strict=True)
        if max(before, after) >= MIN_CUT_S
    ]
    words = ""
    for cut in told:
        ends = {"first": cut["before_s"], "last": cut["after_s"]}
        missing = " and ".join(f"{end} {cut_s:g} s" for end, cut_s in ends.items() if cut_s >= MIN_CUT_S)
        words += f"; {Path(cut['video']).name} without its {missing}"
    return told, words


def _embed(
    videos: list[str] | None,
    *,
    run: str,
    embeddings: Path | None,
    reference: str | None,
    most: int,
    source: str | None = None,
) -> "EmbeddingSet":
    """Return embeddings of the videos to show, the reference first; `source` is that of an offset."""
    from cycleback.data.folder import check_pair, pick_videos
    from cycleback.data.usable import can_be_read
    from cycleback.embeddings import check_one_action

    if embeddings is None:
        parse_videos(videos)
        paths = pick_videos(videos or [], reference=reference, max_videos=most, is_usable=can_be_read)
        if source is not None:
            return embed_cameras(list(map(str, paths)), run=run, embeddings=None, source=source)
        return embed_inputs(list(map(str, paths)), run=run)
    embedding_set = embed_inputs(videos, run=run, embeddings=embeddings)
    names = list(embedding_set.names)
    if reference is not None:
        embedding_set[reference]  # raises with the known names, if this is none of them
        names = [reference, *(name for name in names if name != reference)]
    check_pair("play in sync", len(names))
    chosen = embedding_set.subset(names[:most])
    check_one_action(chosen)
    return chosen


def _embed_takes(
    videos: list[str] | None, *, run: str, embeddings: Path | None, reference: str | None, most: int
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
    if len(names) > most:
        print(f"shown: {most} of {len(names)} takes (--most {len(names)} shows all)", file=sys.stderr)
    return takes.subset(names[:most])


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
    if fps is not None and not MIN_FPS <= fps <= MAX_FPS:
        raise UserError(f"cannot play {fps:g} frames per second: expected --fps from {MIN_FPS} to {MAX_FPS}")
    if sound is not None and transfer_sound is not None:
        raise UserError(f"two sounds, {sound} and {transfer_sound}: give --sound or --transfer-sound")
    if is_edits and (transfer_sound is not None or sound not in (None, "reference", "none")):
        raise UserError("edit decisions have the sound of the reference or none: leave out the other sound")
