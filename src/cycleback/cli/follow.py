"""`cycleback follow`: where a running action is, frame by frame, seen from the past alone."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.options import Run
from cycleback.cli.output import print_json
from cycleback.errors import UserError, VideoError

if TYPE_CHECKING:
    from cycleback.applications.follower import Position
    from cycleback.applications.live import Frame


def follow(
    source: Annotated[str, typer.Argument(help="Video file, a camera's number, or - for standard input.")],
    reference: Annotated[Path, typer.Option(help="Video that shows the whole action.")],
    run: Run,
    real_time: Annotated[
        bool, typer.Option("--real-time", help="Play a file at its own speed, as if it were live.")
    ] = False,
    patience: Annotated[
        float, typer.Option(help="Seconds to wait for a file to grow (.ts, .mkv); 0: it is complete.", min=0)
    ] = 0.0,
    every: Annotated[int, typer.Option(help="Print every so many frames.", min=1)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a frame.")] = False,
) -> None:
    """Follow an action as it happens: phase, progress, deviation from the reference, and latency.

    Example: cycleback follow 0 --reference good.mp4 --run runs/pouring
    """
    from cycleback.applications.follower import Follower
    from cycleback.applications.live import embed_live, read_source
    from cycleback.models import fast_inference
    from cycleback.runs import choose_device, load_encoder

    encoder = load_encoder(run).to(choose_device())
    if encoder.input_kind != "images":
        raise UserError(f"{run} was trained on sequences of vectors, and only videos can be followed")
    features = fast_inference(encoder.base)
    events = _events(reference)
    rows = list(embed_live(encoder, read_source(str(reference), encoder), features=features))
    if len(rows) < 2:
        raise UserError(f"the reference {reference} has {len(rows)} frame: give one that shows the action")
    follower = Follower(rows, events=events)
    arrivals: list[float] = []
    frames = _stamped(read_source(source, encoder, real_time=real_time, patience=patience), arrivals)
    delays: list[float] = []
    for number, embedding in enumerate(embed_live(encoder, frames, features=features)):
        position = follower.push(embedding)
        delays.append(1000 * (time.perf_counter() - arrivals[-1]))
        if number % every == 0:
            _print(number, position, list(events), latency=delays[-1], as_json=as_json)
    if not delays:
        raise VideoError(f"no frame came from {source}: is it a video, and is it being written?")
    if not as_json:
        middle, slowest = sorted(delays)[len(delays) // 2], max(delays)
        print(f"{len(delays)} frames followed, latency {middle:.0f} ms (median), {slowest:.0f} ms (slowest)")


def _stamped(frames: "Iterator[Frame]", arrivals: list[float]) -> "Iterator[Frame]":
    """The frames; when the last one came is kept in `arrivals`."""
    for frame in frames:
        arrivals[:] = [time.perf_counter()]
        yield frame


def _events(reference: Path) -> dict[str, int]:
    """Key events of the reference by frame, in order; none where no labels lie beside it."""
    from cycleback.data import event_frames, read_dataset
    from cycleback.video import frame_times

    if not (reference.parent / "labels.csv").is_file():
        return {}
    same = [each for each in read_dataset(reference.parent) if each.path.resolve() == reference.resolve()]
    found = event_frames(same[0], frame_times(reference)) if same else {}
    return dict(sorted(found.items(), key=lambda event: event[1]))


def _print(number: int, position: "Position", events: list[str], *, latency: float, as_json: bool) -> None:
    """One line now, also where a pipe would hold it back."""
    phase = None if position.phase is None else ["start", *events][position.phase]
    if as_json:
        facts = {"frame": number, "reference_frame": position.frame, "progress": round(position.progress, 4)}
        facts |= {"deviation": round(position.deviation, 4), "latency_ms": round(latency, 2)}
        print_json(facts if phase is None else {**facts, "phase": position.phase, "after": phase})
    else:
        after = "" if phase is None else f"  after {phase!r}"
        odd = f"deviation {position.deviation:5.2f}"
        print(f"{number:6d}  {position.progress:4.0%}  {odd}  {latency:4.0f} ms{after}")
    sys.stdout.flush()
