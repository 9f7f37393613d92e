"""`cycleback align`: find each frame of A in B; put several videos on one clock."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cycleback.cli.inputs import (
    PRETRAINED,
    check_choice,
    check_file,
    check_table_and_picture,
    embed_inputs,
    list_inputs,
    one_line_errors,
)
from cycleback.cli.offsets import From, align_by_offset, check_source, embed_cameras
from cycleback.cli.options import Embeddings, Json, NoPins, Overwrite, Pins, Repetitions, Run
from cycleback.cli.output import print_result
from cycleback.cli.pins import check_no_pins, collect_pins, save_pins
from cycleback.cli.sync import METHODS as SYNC_METHODS
from cycleback.errors import UserError, one_of

if TYPE_CHECKING:
    from cycleback.applications import Verdict
    from cycleback.data import Pin
    from cycleback.embeddings import EmbeddingSet

MAX_STRETCH = 2.5  # by default
METHODS = ("auto", "dtw", "nearest", "subsequence", "open-end", "overlap", "offset", "affine")


def align(
    videos: Annotated[
        list[str], typer.Argument(help="Two or more videos, a folder of them, or names in the embedding set.")
    ],
    run: Run = PRETRAINED,
    embeddings: Embeddings = None,
    method: Annotated[str, typer.Option(help=f"Choose {one_of(METHODS)}.")] = "auto",
    band: Annotated[
        float | None, typer.Option(help="Limit how far dtw strays from constant speed, as a share of B.")
    ] = None,
    source: From = None,
    repetitions: Repetitions = False,
    time_prior: Annotated[
        float,
        typer.Option(help="Set how much a match at the same share of both videos is preferred; 1 is weak."),
    ] = 0.0,
    max_stretch: Annotated[
        float,
        typer.Option(help="Let B be at most so many times slower or faster than A, with subsequence.", min=1),
    ] = MAX_STRETCH,
    pin: Pins = None,
    no_pins: NoPins = False,
    keep_pins: Annotated[
        bool,
        typer.Option("--save-pins", help="Add the pins of --pin to pins.csv in the folder of the videos."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the table to this .csv or .json (default: A-to-B.csv)."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the similarity of A and B: .png, .svg or .pdf.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find each frame of A in B, with a confidence per frame; needs no training.

    Three or more videos get one clock: a table with one row per tick and the frame of each video at it.
    Methods: auto leaves out what only one video shows before and after the action; dtw joins both ends;
    nearest ignores order; subsequence finds A somewhere in B, at up to 2.5 times its pace either way;
    open-end joins only the start; overlap joins the part that A and B have in common. Of one event filmed by
    two cameras, offset finds the constant shift, and affine a drift of the clocks, too.

    A pin corrects a match by hand, and everything between two pins follows. Pins of pins.csv are used, too.

    Example: cycleback align a.mp4 b.mp4 --run runs/golf -o a-to-b.csv

    Example: cycleback align a.mp4 b.mp4 --pin 12:30 --pin 1.5s:2.4s --save-pins

    Example: cycleback align left.mp4 right.mp4 --method affine --from sound

    Example: cycleback align pushups.mp4 --repetitions
    """
    from cycleback.applications.plots import FORMATS
    from cycleback.tables import write_table

    method = method.replace("_", "-")  # Python writes open_end
    check_choice("alignment method", method, METHODS)
    if max_stretch != MAX_STRETCH and method != "subsequence":
        raise UserError(f"--max-stretch is for --method subsequence only, got {max_stretch:g} with {method}")
    refused = {"--band": band, "--time-prior": time_prior, "--pin": pin, "--repetitions": repetitions}
    source = check_source(source, method, refused=refused | {"--picture": picture})
    is_offset = source is not None
    inputs = list_inputs(videos, run, embeddings=embeddings)
    check_table_and_picture(output, picture, overwrite=overwrite, inputs=inputs, formats=FORMATS)
    if keep_pins and not pin:
        raise UserError("no pins to save: add them with --pin, such as --pin 12:30")
    check_no_pins(repetitions, pin)
    chosen: dict[str, Any] = {"repetitions": repetitions, "source": source}
    embedding_set, names = _embed(videos, run=run, embeddings=embeddings, **chosen)
    if output is None and not as_json:
        stems = [Path(name).stem for name in names]
        default = f"{stems[0]}-to-{stems[1]}.csv" if len(stems) == 2 else "shared-clock.csv"
        output = check_file(Path(default), overwrite=overwrite, inputs=inputs)
    is_file_used = not (no_pins or repetitions or is_offset)
    pins = collect_pins(embedding_set, pin, videos=videos, is_file_used=is_file_used)
    with one_line_errors():
        verdict = None  # an offset has a confidence of its own
        if source is not None:
            result, summary = align_by_offset(embedding_set, names, method=method, source=source)
        elif len(names) == 2:
            result, summary, verdict = _align_pair(
                embedding_set,
                names,
                options={"method": method.replace("-", "_"), "band": band, "time_prior": time_prior},
                max_stretch=max_stretch,
                pins=pins,
                picture=picture,
                overwrite=overwrite,
                are_takes=repetitions,
            )
        elif method != "auto" or band is not None or time_prior or picture is not None:
            raise UserError(
                f"{len(names)} videos share a clock, which takes no --method, --band, --time-prior or "
                "--picture: leave these out, or align two videos"
            )
        else:
            result, summary, verdict = _align_many(embedding_set, names, pins, are_takes=repetitions)
    if keep_pins:
        summary += f", pins in {save_pins(embedding_set, pins, videos=videos)}"
    if output is not None:
        write_table(output, result["frames"], overwrite=overwrite)
    extra = [] if run == PRETRAINED else ["--run", run]
    extra += ["--method", method] if method in SYNC_METHODS and method != "auto" else []
    extra += ["--repetitions"] if repetitions else []
    extra += ["--no-pins"] if no_pins else []
    extra += ["--from", source] if source is not None else []
    extra += [] if keep_pins else [word for text in pin or () for word in ("--pin", text)]
    can_play = embeddings is None and len(set(names)) > 1 and not _are_sequences(embedding_set)
    next_command = ["sync", *videos, *extra] if can_play else None
    files = f"{output}" if picture is None else f"{output}, {picture}"
    print_result(result, f"{summary}: {files}", next_command, as_json=as_json, verdict=verdict)


def _are_sequences(embedding_set: "EmbeddingSet") -> bool:
    """Tell whether some of the videos are vectors, which cannot be played."""
    from cycleback.data.records import SEQUENCE_SUFFIX

    paths = [embedding_set.path(name) for name in embedding_set]
    return any(path is not None and path.suffix.lower() == SEQUENCE_SUFFIX for path in paths)


def _embed(
    videos: Sequence[str], *, run: str, embeddings: Path | None, repetitions: bool, source: str | None
) -> "tuple[EmbeddingSet, Sequence[str]]":
    """Return an embedding set with all videos, and their names in it; `source` is that of an offset."""
    from cycleback.data.folder import check_pair, name_files
    from cycleback.embeddings import check_one_action

    is_folder = embeddings is None and len(videos) == 1 and Path(videos[0]).is_dir()
    if not is_folder and not repetitions:
        check_pair("align", len(videos))
    if source is not None:
        if is_folder or len(videos) > 2:
            count = "a folder" if is_folder else len(videos)
            raise UserError(f"an offset is between two videos, got {count}: name two videos, or use sync")
        check_pair("find an offset", len(set(videos)))
        embedding_set = embed_cameras(videos, run=run, embeddings=embeddings, source=source)
        return embedding_set, embedding_set.names
    embedding_set = embed_inputs(videos, run=run, embeddings=embeddings, repetitions=repetitions)
    if is_folder or repetitions:
        names: Sequence[str] = embedding_set.names
    else:
        names = videos if embeddings is not None else name_files([Path(video) for video in videos])
    check_pair("align", len(names))
    check_one_action(embedding_set)
    return embedding_set, names


def _align_pair(
    embedding_set: "EmbeddingSet",
    names: Sequence[str],
    *,
    options: dict[str, Any],
    max_stretch: float,
    pins: "Sequence[Pin]",
    picture: Path | None,
    overwrite: bool,
    are_takes: bool,
) -> "tuple[dict[str, Any], str, Verdict]":
    """Align two videos and draw the picture; return the result, a summary in words, and a verdict."""
    from cycleback.alignment import align as align_arrays
    from cycleback.alignment import check_pins
    from cycleback.applications import judge, locate_part, tabulate_alignment
    from cycleback.applications.pace import limit_pace
    from cycleback.applications.plots import draw_alignment
    from cycleback.data import select_pairs
    from cycleback.files import write_bytes

    a, b = names
    pair = embedding_set[a], embedding_set[b]
    pinned = check_pins(select_pairs(pins, a, b), len(pair[0]), len(pair[1]), names=(a, b))
    if options["method"] == "subsequence":
        options["pace"] = limit_pace(embedding_set, a, b, max_stretch=max_stretch)
    alignment = align_arrays(*pair, pins=pinned, **options)
    if picture is not None:
        format = picture.suffix.lower().removeprefix(".")
        content = draw_alignment(*pair, alignment, names=(a, b), format=format)
        write_bytes(picture, content, overwrite=overwrite)
    rows = tabulate_alignment(
        alignment,
        times_a=embedding_set.times(a),
        times_b=embedding_set.times(b),
        first_a=embedding_set.first_frame(a),
        first_b=embedding_set.first_frame(b),
    )
    mean = float(alignment.confidence.mean())
    matched, sure = (sum(row[key] for row in rows) for key in ("matched", "sure"))
    summary = f"{matched} of {len(rows)} frames matched, {sure} of them surely, mean confidence {mean:.2f}"
    method = options["method"].replace("_", "-")
    facts = {"a": a, "b": b, "method": method, "pins": pinned.tolist(), "mean_confidence": mean}
    if method == "subsequence":
        part = locate_part(alignment, times_a=embedding_set.times(a), times_b=embedding_set.times(b))
        facts["part"] = part
        summary += f", found in {b} from {part['start_s']:.2f} s to {part['end_s']:.2f} s"
        summary += f" at {part['speed']:.2g} times the speed"
    own = float(alignment.confidence[alignment.matched].mean()) if matched else 0.0
    verdict = judge(embedding_set, a, [b], confidence=own, are_takes=are_takes)
    return {**facts, "frames": rows}, summary, verdict


def _align_many(
    embedding_set: "EmbeddingSet", names: Sequence[str], pins: "Sequence[Pin]", *, are_takes: bool
) -> "tuple[dict[str, Any], str, Verdict]":
    """Put several videos on one clock; return the result, a summary in words, and a verdict."""
    from cycleback.alignment import align_many
    from cycleback.applications import judge, tabulate_clock

    place = {name: number for number, name in enumerate(names)}
    links = [(place[pin.video_a], pin.frame_a, place[pin.video_b], pin.frame_b) for pin in pins]
    together = align_many([embedding_set[name] for name in names], pins=links, names=names)
    rows = tabulate_clock(embedding_set, names, together.indices)
    result = {"videos": list(names), "medoid": names[together.medoid], "pins": len(pins), "frames": rows}
    verdict = judge(embedding_set, names[together.medoid], names, are_takes=are_takes)
    return result, f"{len(names)} videos on one clock of {len(rows)} ticks", verdict
