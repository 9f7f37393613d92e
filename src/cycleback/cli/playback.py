"""Options of `cycleback sync` on how the videos play: a part, slowly, flipped, or one moment of them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cycleback.cli.inputs import check_choice
from cycleback.cli.moments import parse_moment, parse_span
from cycleback.errors import UserError

if TYPE_CHECKING:
    from cycleback.applications import Pace
    from cycleback.embeddings import EmbeddingSet
    from cycleback.video import Audio

MIRRORS = ("auto", "yes", "no")
Trim = Annotated[
    str | None,
    typer.Option(help="Play only this part of the reference: frames 12:80, seconds 1.5s:3s, or events."),
]
Slow = Annotated[float, typer.Option(help="Set the speed, such as 0.25 for slow motion.", min=0.02, max=1)]
SlowAround = Annotated[
    str | None,
    typer.Option(help="Play only half a second before and after this moment of the reference at --slow."),
]
Mirror = Annotated[
    str, typer.Option(help="Show mirrored videos flipped: yes, no, or auto: if laid over each other.")
]
Still = Annotated[
    str | None, typer.Option(help="Write one .png of all videos at this moment: 12, 1.5s, or an event.")
]


@dataclass(frozen=True)
class Playback:
    """What the user asked for."""

    trim: str | None
    slow: float
    slow_around: str | None
    mirror: str
    still: str | None

    def check(self, *, is_edits: bool) -> None:
        """Refuse options that contradict each other."""
        check_choice("--mirror", self.mirror, MIRRORS)
        if self.slow_around is not None and self.slow == 1:
            raise UserError(f"--slow-around {self.slow_around} needs a speed: add --slow 0.25")
        if self.still is not None and (self.trim is not None or self.slow != 1 or is_edits):
            raise UserError("--still writes one picture: leave out --trim, --slow and --edits")
        if is_edits and self.mirror == "yes":
            raise UserError("edit decisions show videos as filmed: leave out --mirror yes, or --edits")

    def change(self, pace: "Pace", reference: Path) -> "tuple[Pace, str]":
        """Return the pace as it is to be played, and what is different in words."""
        from cycleback.applications.live import read_events
        from cycleback.applications.playback import slow_pace, trim_pace
        from cycleback.video import frame_times

        words = ""
        if self.trim is None and self.slow == 1:
            return pace, words
        times, events = frame_times(reference), read_events(reference)
        around_s = None
        if self.slow_around is not None:
            frame = parse_moment(self.slow_around, times, events=events, video=reference.name)
            around_s = float(times[frame])
        if self.trim is not None:
            first, last = parse_span(self.trim, times, events=events, video=reference.name)
            pace = trim_pace(pace, float(times[first]), float(times[last]))
            words = f", {times[first]:.2f} s to {times[last]:.2f} s of it"
        if self.slow != 1:
            pace = slow_pace(pace, self.slow, around_s=around_s)
            words += f", at {self.slow:g} times the speed"
            words += "" if around_s is None else f" around {around_s:.2f} s"
        return pace, words

    def change_sound(self, track: "bool | Audio", pace: "Pace", reference: Path) -> "bool | Audio":
        """Return the sound for a changed pace, and say so where there is none."""
        from cycleback.applications.playback import slow_sound
        from cycleback.video import probe, read_audio

        if track is False or (self.trim is None and self.slow == 1):
            return track
        if track is True:
            if self.slow == 1 or not probe(reference).has_audio:
                return track
            track = read_audio(reference)
        slowed = slow_sound(track, pace)
        if slowed is None:
            print(
                f"note: {self.slow:g} times the speed is too slow for sound: it is left out", file=sys.stderr
            )
            return False
        return slowed

    def find_still(self, pace: "Pace", reference: Path) -> tuple[list[float], float]:
        """Return the frame of each video at the moment of the picture, and its second in the reference."""
        from cycleback.applications.live import read_events
        from cycleback.applications.playback import find_positions
        from cycleback.video import frame_times

        assert self.still is not None
        times = frame_times(reference)
        frame = parse_moment(self.still, times, events=read_events(reference), video=reference.name)
        return find_positions(pace, float(times[frame])).tolist(), float(times[frame])

    def choose_flipped(
        self, embeddings: "EmbeddingSet", names: Sequence[str], *, layout: str, is_edits: bool
    ) -> list[bool]:
        """Return which videos are shown flipped: those that show another side than the reference.

        Videos beside each other are shown as filmed, unless the user asks; a line says so.
        """
        from cycleback.applications.sync import LAID_OVER

        sides = [
            name in embeddings.mirrored or embeddings.source(name) in embeddings.mirrored for name in names
        ]
        others = [side != sides[0] for side in sides]
        if self.mirror == "yes" or (self.mirror == "auto" and layout in LAID_OVER and not is_edits):
            return others
        if self.mirror == "auto" and any(others) and not is_edits:
            named = ", ".join(name for name, other in zip(names, others, strict=True) if other)
            print(
                f"note: shown as filmed, but mirrored: {named}. --mirror yes flips what is", file=sys.stderr
            )
        return [False] * len(names)
