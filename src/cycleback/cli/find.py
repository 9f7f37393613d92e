"""`cycleback find`: find every place where a long recording shows an action."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.bars import counter, progress_bars
from cycleback.cli.inputs import check_clips_folder, check_table_and_picture, one_line_errors
from cycleback.cli.options import Json, Overwrite, Table
from cycleback.cli.output import print_result
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.applications import Occurrences

MAX_STRETCH, MIN_CONFIDENCE = 2.0, 0.5  # by default
MAX_PRINTED = 30  # occurrences; the table has all


def find(
    reference: Annotated[
        Path, typer.Argument(help="A video of the action, or a folder of several takes, which find more.")
    ],
    recording: Annotated[Path, typer.Argument(help="The long video to look through.")],
    part: Annotated[
        str | None,
        typer.Option(
            help="Take only this part of REFERENCE: frames 12:80, seconds 1.5s:3s, or labelled events."
        ),
    ] = None,
    max_stretch: Annotated[
        float, typer.Option(help="Let the action be at most so many times slower or faster.", min=1, max=8)
    ] = MAX_STRETCH,
    min_confidence: Annotated[
        float, typer.Option(help="Set how sure a find must be, from 0 to 1.", min=0, max=1)
    ] = MIN_CONFIDENCE,
    clips: Annotated[
        Path | None, typer.Option(help="Write each occurrence as a clip, with its sound, into this folder.")
    ] = None,
    output: Table = Path("occurrences.csv"),
    picture: Annotated[
        Path | None, typer.Option(help="Draw the recording over time: .png, .svg or .pdf.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find every place where a recording of minutes or hours shows an action; needs no training.

    The references should show the action and little else; --part cuts one out, also of the recording itself.
    The recording is read once, and memory does not grow with it. No occurrence reaches across a shot change.
    That there is none is an answer, too: the table is then empty.

    Example: cycleback find swing.mp4 training-day.mp4 --clips swings --picture swings.png

    Example: cycleback find training-day.mp4 training-day.mp4 --part 83.2s:85.1s
    """
    from cycleback.applications import cut_clips, find_action
    from cycleback.applications.find import COLUMNS
    from cycleback.applications.plots import FORMATS, draw_occurrences
    from cycleback.files import write_bytes
    from cycleback.tables import write_table

    inputs = [reference, recording]
    check_table_and_picture(output, picture, overwrite=overwrite, inputs=inputs, formats=FORMATS)
    if clips is not None:
        check_clips_folder(clips, overwrite=overwrite, inputs=inputs)
    takes = _list_takes(reference)
    span = None if part is None else _read_span(takes, part)
    with one_line_errors(), progress_bars() as bars:
        found = find_action(
            takes,
            recording,
            span=span,
            max_stretch=max_stretch,
            min_confidence=min_confidence,
            progress=counter(bars, "looking"),
        )
        written: list[Path] = []
        if clips is not None and found.found:
            report = counter(bars, "cutting")
            written = cut_clips(
                recording, found.found, clips, overwrite=overwrite, only_own=True, progress=report
            )
    if picture is not None:
        title = f"{recording.name}: {_count(found)} of {reference.name}"
        format = picture.suffix.lower().removeprefix(".")
        write_bytes(
            picture, draw_occurrences(found, recording, title=title, format=format), overwrite=overwrite
        )
    write_table(output, found.rows(), columns=COLUMNS, overwrite=overwrite)
    if not as_json:
        _print_found(found, min_confidence)
    files = [str(path) for path in (output, picture, clips if written else None) if path is not None]
    facts = {"table": str(output), "clips": [str(path) for path in written], "recording": str(recording)}
    print_result(
        facts | {"references": [str(take) for take in takes]} | found.to_json(),
        f"{_count(found)} in {recording.name}: {', '.join(files)}",
        _next_command(reference, recording, part=part, found=found, clips=clips),
        as_json=as_json,
    )


def _list_takes(reference: Path) -> list[Path]:
    """Return the reference, or all videos of its folder."""
    from cycleback.data.folder import select_records

    records, _ = select_records(reference if reference.is_dir() else [reference])
    takes = [record.path for record in records if record.kind == "video"]
    if not takes:
        raise UserError(f"{reference} holds no video files, and only they can be looked for")
    if len({record.action for record in records}) > 1:
        raise UserError(f"{reference} holds several actions: name the folder of one")
    return takes


def _read_span(takes: Sequence[Path], part: str) -> tuple[int, int]:
    """Return the first and the last frame of the part of the only reference."""
    from cycleback.applications.live import read_events
    from cycleback.cli.moments import parse_span
    from cycleback.video import frame_times

    if len(takes) > 1:
        raise UserError(f"--part {part} is for one reference, but there are {len(takes)}: name one video")
    return parse_span(part, frame_times(takes[0]), events=read_events(takes[0]), video=takes[0].name)


def _count(found: "Occurrences") -> str:
    count = len(found.found)
    return f"{count or 'no'} occurrence{'' if count == 1 else 's'}"


def _print_found(found: "Occurrences", min_confidence: float) -> None:
    """Print one line per occurrence; without any, the best place that was too doubtful."""
    for number, each in enumerate(found.found[:MAX_PRINTED], start=1):
        frames = f"frames {each.start} to {each.stop - 1}"
        speed = f"{each.speed:.2g} times the speed"
        where = f"{_clock(each.start_s)} to {_clock(each.end_s)}"
        print(f"{number:3d}  {where}  {frames}, confidence {each.confidence:.2f}, {speed}")
    if len(found.found) > MAX_PRINTED:
        print(f"     and {len(found.found) - MAX_PRINTED} more in the table")
    best = max(found.doubtful, key=lambda each: each.confidence, default=None)
    if not found.found:
        near = (
            "nothing comes near"
            if best is None
            else f"the best, {best.confidence:.2f}, is at {_clock(best.start_s)}"
        )
        print(f"nothing reaches a confidence of {min_confidence:.2f}; {near}")
    if found.cuts:
        times = ", ".join(map(_clock, found.cuts_s[:5])) + (", ..." if len(found.cuts) > 5 else "")
        print(f"{len(found.cuts)} shot changes: {times}")


def _clock(second: float) -> str:
    """Format seconds as 0:12.34, or as 1:02:03.45 from an hour on."""
    hours, rest = divmod(second, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{int(hours)}:{int(minutes):02d}:{seconds:05.2f}" if hours else f"{int(minutes)}:{seconds:05.2f}"


def _next_command(
    reference: Path, recording: Path, *, part: str | None, found: "Occurrences", clips: Path | None
) -> list[object] | None:
    """Return the words of what to do next: compare the clips, or cut them."""
    if clips is not None and len(found.found) > 1:
        return ["sync", clips]
    if found.found and clips is None:
        return ["find", reference, recording, *(() if part is None else ("--part", part)), "--clips", "clips"]
    return None
