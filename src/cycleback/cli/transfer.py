"""`cycleback transfer`: carry labels or sound of one video over to others through the alignment."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.inputs import (
    PRETRAINED,
    check_choice,
    check_file,
    embed_inputs,
    list_inputs,
)
from cycleback.cli.options import (
    METHODS,
    Embeddings,
    Json,
    Method,
    NoPins,
    Overwrite,
    Pins,
    Repetitions,
    Run,
    Videos,
)
from cycleback.cli.output import print_result
from cycleback.cli.pins import check_no_pins, collect_pins
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.applications import TransferredLabels
    from cycleback.data import Pin

MAX_ROWS, MAX_NEXT = 20, 5
transfer = typer.Typer(
    name="transfer", help="Carry labels or sound over to other videos.", no_args_is_help=True
)


@transfer.command()
def labels(
    label_file: Annotated[Path, typer.Argument(metavar="LABELS", help="Labels of one or a few videos.")],
    videos: Videos = None,
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    method: Method = "auto",
    repetitions: Repetitions = False,
    pin: Pins = None,
    no_pins: NoPins = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Write this file; for elan and frames, a folder (default: LABELS-all)."
        ),
    ] = None,
    to_format: Annotated[
        str | None,
        typer.Option("--format", help="Write this format (default: by the output's name, or csv)."),
    ] = None,
    from_format: Annotated[
        str | None, typer.Option("--from", help="Set the format of LABELS, if its content does not tell.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Carry key events and segments of a few videos over to all, with a confidence for each.

    Pins between a labelled and another video, by --pin or in pins.csv, hold their alignment.
    Formats: csv, json, elan, label-studio, via, boris, boris-events, cvat, cvat-intervals, labelu,
    activitynet and frames.

    With --repetitions, labels of one repetition are carried over to all others, and written for the video.

    Example: cycleback transfer labels first.csv golf/ --run runs/golf --format elan -o golf-labels

    Example: cycleback transfer labels first.csv pushups.mp4 --repetitions
    """
    from cycleback.annotations import read_annotations, write_annotations
    from cycleback.annotations.formats import find_format
    from cycleback.applications import join_takes, judge, match_labels, transfer_labels
    from cycleback.files import check_output

    check_choice("alignment method", method, METHODS)
    to_format = to_format or _guess_format(output)
    chosen = find_format(to_format)
    ending = "" if chosen.one_video else chosen.suffixes[0]
    output = output or Path(f"{label_file.stem}-all{ending}")
    inputs = list_inputs(videos, label_file, run, embeddings=embeddings)
    if chosen.one_video and output.suffix not in chosen.suffixes:
        check_output(output, overwrite=True, inputs=[label_file])  # a folder: its files are checked later
    else:
        check_file(output, overwrite=overwrite, inputs=inputs)
    known = read_annotations(label_file, format=from_format)
    check_no_pins(repetitions, pin)
    embedding_set = embed_inputs(videos, run=run, embeddings=embeddings, repetitions=repetitions)
    events, segments = match_labels(known, embedding_set)
    pins = collect_pins(
        embedding_set,
        pin,
        videos=videos,
        is_file_used=not no_pins and not repetitions,
        labelled={*events, *segments},
    )
    result = transfer_labels(
        embedding_set,
        events,
        segments=segments,
        method=method,  # type: ignore[arg-type]
        pins=pins,
    )
    written = join_takes(embedding_set, list(result.videos.values()))
    path = write_annotations(
        output, written, format=to_format, overwrite=overwrite, inputs=inputs, only_own=True
    )
    if not as_json:
        _print_labels(result)
    facts = result.to_json() | {"label_next": list(result.label_next[:MAX_NEXT])}
    what = "takes" if repetitions else "videos"
    by_hand = len(result.videos) - len(result.label_next)
    verdict = None
    if by_hand:
        reference = next(name for name in result.videos if name not in result.label_next)
        verdict = judge(embedding_set, reference, result.label_next, are_takes=repetitions)
    print_result(
        {"labels": str(path), "format": to_format, "pins": len(pins), **facts},
        f"{len(result.label_next)} {what} labelled by the labels of {by_hand}: {path}",
        as_json=as_json,
        verdict=verdict,
    )


def _guess_format(output: Path | None) -> str:
    from cycleback.annotations import FORMATS

    suffix = "" if output is None else output.suffix.lower()
    return next((name for name, each in FORMATS.items() if suffix in each.suffixes), "csv")


def _print_labels(result: "TransferredLabels") -> None:
    """Print the least certain labels, and the videos to label next."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from cycleback.annotations import Event

    table = Table("video", "event", "time", "confidence")
    rows = [(name, label) for name in result.label_next for label in result.videos[name].labels]
    for name, label in rows[:MAX_ROWS]:
        ends = (label.at,) if isinstance(label, Event) else (label.start, label.end)
        when = "-".join(f"{result.videos[name].seconds(at):.2f}" for at in ends)
        table.add_row(escape(name), escape(label.name), f"{when} s", f"{label.confidence:.2f}")
    Console().print(table)
    if len(rows) > MAX_ROWS:
        print(f"... and {len(rows) - MAX_ROWS} more")
    if result.left_out:
        print(f"not labelled, as no labelled video shows their action: {', '.join(result.left_out)}")
    print(f"label this next: {', '.join(result.label_next[:MAX_NEXT])}")


@transfer.command()
def sound(
    source: Annotated[str, typer.Argument(help="Video with the sound, or its name in the embedding set.")],
    target: Annotated[str, typer.Argument(help="Video that gets it, or its name in the embedding set.")],
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    method: Annotated[str, typer.Option(help="Choose smooth, or blocks as in the paper.")] = "smooth",
    repetitions: Repetitions = False,
    pin: Pins = None,
    no_pins: NoPins = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write this video or .wav (default: TARGET-with-sound.mp4)."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Give a video the sound of another that shows the same action; needs no training.

    Pins, frames of SOURCE and TARGET, hold the alignment; those of pins.csv beside the videos are used, too.

    Example: cycleback transfer sound pour.mp4 silent.mp4 -o heard.mp4

    With --repetitions, each repetition of TARGET gets the sound of one of SOURCE; between them it is silent.

    Example: cycleback transfer sound pour.mp4 silent.mp4 --pin 12:30
    """
    from cycleback.applications import (
        judge,
        locate_videos,
        transfer_sound,
        transfer_sound_of_takes,
        write_with_sound,
    )
    from cycleback.applications.sound import SOUND_METHODS, SOUND_SUFFIXES, check_sound_pair
    from cycleback.data.folder import name_files
    from cycleback.embeddings import check_one_action

    check_choice("method of sound transfer", method, SOUND_METHODS)
    path = output or Path(f"{Path(target).stem}-with-sound.mp4")
    inputs = list_inputs([source, target], run, embeddings=embeddings)
    check_file(path, overwrite=overwrite, suffixes=SOUND_SUFFIXES, inputs=inputs)
    names = [source, target]
    if embeddings is None:
        check_sound_pair(Path(source), Path(target))
        names = name_files([Path(source), Path(target)])
    check_no_pins(repetitions, pin)
    if repetitions and method != "smooth":
        raise UserError("--repetitions needs --method smooth: leave out the method blocks")
    embedding_set = embed_inputs([source, target], run=run, embeddings=embeddings, repetitions=repetitions)
    check_one_action(embedding_set)
    pins: list[Pin] = []
    if repetitions:
        takes = [[name for name in embedding_set if embedding_set.source(name) == own] for own in names]
        heard = transfer_sound_of_takes(embedding_set, *takes)
        names = [own[0] for own in takes]
    else:
        pins = collect_pins(embedding_set, pin, videos=[source, target], is_file_used=not no_pins)
        heard = transfer_sound(embedding_set, *names, method=method, pins=pins)  # type: ignore[arg-type]
    write_with_sound(path, locate_videos(embedding_set, names)[1], heard.audio, overwrite=overwrite)
    confidence = float(heard.confidence.mean())
    print_result(
        {"output": str(path), "source": source, "target": target, "method": method}
        | {
            "pins": len(pins),
            "seconds": round(heard.audio.duration_s, 3),
            "mean_confidence": round(confidence, 4),
        },
        f"{target} with the sound of {source}, mean confidence {confidence:.2f}: {path}",
        as_json=as_json,
        verdict=judge(embedding_set, names[0], names[1:], are_takes=repetitions),
    )
