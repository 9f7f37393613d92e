"""When everything happens: durations of the phases, the four key events, and the pace inside each phase.

The five phases: before the touch (lead-in, reach), lift and tilt, pour, put back, withdraw (and tail).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cycleback.synth.levels import Level

EVENTS = ("hand touches bottle", "liquid starts exiting", "pouring complete", "bottle back on table")
MOVING_PHASES = ("reach", "prepare", "pour", "put_back", "withdraw")
MIN_FRAMES = 2


@dataclass(frozen=True)
class Pace:
    """How progress runs through a phase: early or late (`skew`), with a pause of some share somewhere."""

    skew: float = 1.0
    pause_at: float = 0.5
    pause_share: float = 0.0

    def warp(self, progress: NDArray[np.float64]) -> NDArray[np.float64]:
        """Progress in [0, 1] -> progress in [0, 1], monotone, with both ends kept."""
        start = self.pause_at * (1 - self.pause_share)
        moving = np.where(progress < start, progress, np.maximum(start, progress - self.pause_share)) / (
            1 - self.pause_share
        )
        return np.asarray(np.clip(moving, 0.0, 1.0) ** self.skew)


@dataclass(frozen=True)
class Detour:
    """The hand lets go after the touch and leaves; it comes back unless `returns` is false."""

    hold: int
    leave: int
    away: int
    come_back: int
    returns: bool

    @property
    def frames(self) -> int:
        """Frames from the touch until the hand is on the bottle again."""
        return self.hold + self.leave + self.away + self.come_back


@dataclass(frozen=True)
class Timeline:
    """Durations in frames, and the pace of each moving phase."""

    fps: float
    lead_in: int
    reach: int
    prepare: int
    pour: int
    put_back: int
    withdraw: int
    tail: int
    paces: dict[str, Pace]
    detour: Detour | None = None

    @property
    def touch(self) -> int:
        """First frame with the hand on the bottle."""
        return self.lead_in + self.reach

    @property
    def grip(self) -> int:
        """First frame of the grip that lifts the bottle: the touch, or the second touch after a detour."""
        return self.touch + (self.detour.frames if self.detour else 0)

    @property
    def start(self) -> int:
        """First frame with liquid outside the bottle."""
        return self.grip + self.prepare

    @property
    def complete(self) -> int:
        """First frame after the pour with no liquid in the air."""
        return self.start + self.pour

    @property
    def back(self) -> int:
        """First frame with the bottle on the table again."""
        return self.complete + self.put_back

    @property
    def pours(self) -> bool:
        """False where the hand leaves for good."""
        return self.detour is None or self.detour.returns

    @property
    def num_frames(self) -> int:
        """Length of the video."""
        if self.detour is not None and not self.detour.returns:
            return self.touch + self.detour.hold + self.detour.leave + self.detour.away
        return self.back + self.withdraw + self.tail

    @property
    def events(self) -> dict[str, int]:
        """Key event -> frame; events that never happen are left out."""
        frames = (self.touch, self.start, self.complete, self.back)
        return dict(zip(EVENTS, frames if self.pours else frames[:1], strict=False))


def draw_timeline(rng: np.random.Generator, level: Level, *, fps: float) -> Timeline:
    """Draw independent durations until the whole video has a length the level allows."""
    low, high = np.log(np.array(list(level.seconds.values()))).T
    while True:
        seconds = np.exp(low + (high - low) * rng.beta(level.extremes, level.extremes, len(low)))
        if level.total_seconds[0] <= seconds.sum() <= level.total_seconds[1]:
            break
    frames = np.maximum(MIN_FRAMES, np.round(seconds * fps)).astype(int)
    paces = {phase: _draw_pace(rng, level) for phase in MOVING_PHASES}
    return Timeline(fps=fps, paces=paces, **dict(zip(level.seconds, frames.tolist(), strict=True)))


def _draw_pace(rng: np.random.Generator, level: Level) -> Pace:
    skew = float(np.exp(rng.uniform(*np.log(level.skew))))
    pauses, pause_at, share = (
        rng.random() < level.pause_chance,
        rng.uniform(0.25, 0.75),
        rng.uniform(0.15, 0.4),
    )
    return Pace(skew=skew, pause_at=float(pause_at), pause_share=float(share) if pauses else 0.0)


def ramp(frames: NDArray[np.float64], start: float, end: float) -> NDArray[np.float64]:
    """0 before `start`, 1 from `end` on, straight between; frames (N,) -> (N,)."""
    return np.clip((frames - start) / max(end - start, 1e-9), 0.0, 1.0)


def smooth(progress: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ease in and out: [0, 1] -> [0, 1] with no speed at both ends."""
    return progress * progress * (3.0 - 2.0 * progress)


def window(progress: NDArray[np.float64], bounds: Sequence[float]) -> NDArray[np.float64]:
    """The eased part of a phase's progress between two of its moments, as [0, 1]."""
    return smooth(ramp(progress, bounds[0], bounds[1]))
