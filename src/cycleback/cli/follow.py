"""`cycleback follow`: place a running action in a reference, frame by frame."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.options import Run
from cycleback.cli.output import print_json
from cycleback.errors import UserError, VideoError

if TYPE_CHECKING:
    from cycleback.applications import Position


def follow(
    source: Annotated[str, typer.Argument(help="Video file, a camera's number, or - for standard input.")],
    reference: Annotated[Path, typer.Option(help="Compare with this video, which shows the whole action.")],
    run: Run,
    real_time: Annotated[
        bool, typer.Option("--real-time", help="Play a file at its own speed, as if it were live.")
    ] = False,
    patience: Annotated[
        float, typer.Option(help="Wait this many seconds for a file (.ts, .mkv) to grow.", min=0, max=86400)
    ] = 0.0,
    every: Annotated[int, typer.Option(help="Print only every Nth frame.", min=1)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per frame.")] = False,
) -> None:
    """Follow an action as it happens: phase, progress, deviation from the reference, and latency.

    Example: cycleback follow 0 --reference good.mp4 --run runs/pouring
    """
    from cycleback.applications import build_follower, follow_stream
    from cycleback.applications.live import read_source
    from cycleback.models import fast_inference
    from cycleback.runs import choose_device, load_encoder

    encoder = load_encoder(run).to(choose_device())
    if encoder.input_kind != "images":
        raise UserError(f"{run} was trained on sequences of vectors, and only videos can be followed")
    frames = read_source(source, encoder, real_time=real_time, patience=patience)
    features = fast_inference(encoder.base)
    follower = build_follower(encoder, reference, features=features)
    delays: list[float] = []
    for position, latency_ms in follow_stream(encoder, frames, follower, features=features):
        if len(delays) % every == 0:
            phase = None if position.phase is None else ("start", *follower.event_names)[position.phase]
            _print_position(len(delays), position, phase, latency_ms=latency_ms, as_json=as_json)
        delays.append(latency_ms)
    if not delays:
        raise VideoError(f"no frame came from {source}: is it a video, and is it being written?")
    if not as_json:
        middle, slowest = sorted(delays)[len(delays) // 2], max(delays)
        print(f"{len(delays)} frames followed, latency {middle:.0f} ms (median), {slowest:.0f} ms (slowest)")


def _print_position(
    number: int, position: "Position", phase: str | None, *, latency_ms: float, as_json: bool
) -> None:
    """Print one line and flush it, because a pipe would hold it back."""
    if as_json:
        facts = {"frame": number, "reference_frame": position.frame, "progress": round(position.progress, 4)}
        facts |= {"deviation": round(position.deviation, 4), "latency_ms": round(latency_ms, 2)}
        print_json(facts if phase is None else {**facts, "phase": position.phase, "after": phase})
    else:
        after = "" if phase is None else f"  after {phase!r}"
        deviation = f"deviation {position.deviation:5.2f}"
        print(f"{number:6d}  {position.progress:4.0%}  {deviation}  {latency_ms:4.0f} ms{after}")
    sys.stdout.flush()
