"""Change how synchronized videos play: only a part of them, slower, or slower around one moment.

Shapes: T output frames, V videos.
"""

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.pace import Pace
from cycleback.applications.sound_warp import TimeMap, warp_sound
from cycleback.errors import UserError
from cycleback.video import Audio

REACH_S = 0.5  # before and after a moment that is shown slowly
MIN_SOUND_SPEED = 0.5  # sound that is slowed more is made of repeated pieces, and is left out
SLOWEST = 0.02
Seconds = NDArray[np.float64]


def trim_pace(pace: Pace, start_s: float, end_s: float) -> Pace:
    """Keep the output frames between two seconds of the first video, the reference."""
    reference = pace.sources[0]
    kept = np.flatnonzero((reference >= start_s - 1e-6) & (reference <= end_s + 1e-6))
    if not len(kept):
        raise UserError(
            f"nothing of {pace.names[0]} plays from {start_s:.2f} s to {end_s:.2f} s: it plays from "
            f"{reference[0]:.2f} s to {reference[-1]:.2f} s"
        )
    part = slice(int(kept[0]), int(kept[-1]) + 1)
    seconds = pace.seconds[part] - pace.seconds[kept[0]]
    return Pace(pace.names, pace.fps, seconds, pace.sources[:, part], pace.positions[:, part])


def slow_pace(pace: Pace, speed: float, *, around_s: float | None = None, reach_s: float = REACH_S) -> Pace:
    """Play everything at `speed` times the pace, or only the part around a second of the reference.

    Args:
        speed: below 1 is slow motion.
        around_s: second of the first video; None slows the whole.
        reach_s: seconds before and after it, as filmed, that are slow.
    """
    if not SLOWEST <= speed <= 1:
        raise UserError(f"cannot play at {speed:g} times the speed: expected {SLOWEST:g} to 1, such as 0.25")
    step = 1 / pace.fps
    middles = (pace.sources[0, :-1] + pace.sources[0, 1:]) / 2
    is_slow = np.ones(len(middles), bool) if around_s is None else np.abs(middles - around_s) <= reach_s
    durations: Seconds = np.diff(pace.seconds) / np.where(is_slow, speed, 1.0)  # (T - 1,)
    played = np.concatenate([[0.0], np.cumsum(durations)])  # second of the result at which each is shown
    seconds = np.asarray(np.arange(int(played[-1] / step + 1e-6) + 1) * step, dtype=np.float64)
    old = np.interp(seconds, played, np.arange(len(played)))  # output frame as it was before
    sources, positions = (
        np.array([np.interp(old, np.arange(len(row)), row) for row in rows])
        for rows in (pace.sources, pace.positions)
    )
    return Pace(pace.names, pace.fps, seconds, sources, positions, pace.cuts)


def slow_sound(audio: Audio, pace: Pace) -> Audio | None:
    """Play the sound of the reference by its changed pace, at the same pitch; None where that is too slow.

    Args:
        audio: its second 0 is that of the reference's file.
    """
    moved, passed = np.diff(pace.sources[0]), np.diff(pace.seconds)
    if len(moved) and float((moved / passed).min()) < MIN_SOUND_SPEED - 1e-6:
        return None
    rising = np.r_[True, moved > 0]
    clock = TimeMap(pace.seconds[rising], pace.sources[0][rising])
    return warp_sound(audio, clock, duration_s=float(pace.seconds[-1]) + 1 / pace.fps)


def find_positions(pace: Pace, second: float) -> NDArray[np.float64]:
    """Return the frame (V,) of each video that is shown at a second of the reference."""
    reference = pace.sources[0]
    if not reference[0] - 0.5 / pace.fps <= second <= reference[-1] + 1 / pace.fps:
        raise UserError(
            f"{second:.2f} s of {pace.names[0]} is not played: it plays from {reference[0]:.2f} s to "
            f"{reference[-1]:.2f} s"
        )
    return np.array([np.interp(second, reference, row) for row in pace.positions])
