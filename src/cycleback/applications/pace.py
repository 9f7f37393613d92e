"""When each video shows what, so that all do the same at the same time: every one at the pace of a reference.

Shapes: T output frames, V videos, N frames of a video.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import align
from cycleback.alignment.confidence import pool_adjacent_violators
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError
from cycleback.video import frame_times

SMOOTHING_S = 0.15  # four frames at 30 a second: no stutter is seen, and no key event is shifted away
REACH = 3  # standard deviations; the window ends there
Indices = NDArray[np.int64]
Seconds = NDArray[np.float64]
Method = Literal["nearest", "dtw"]


@dataclass(frozen=True, eq=False)
class Pace:
    """When each video shows what.

    Attributes:
        names: the V videos.
        fps: output frames a second.
        seconds: (T,) output second of each output frame.
        sources: (V, T) second of each video that is shown then.
        positions: (V, T) the same as frame numbers, with fractions between frames.
    """

    names: tuple[str, ...]
    fps: float
    seconds: Seconds
    sources: Seconds
    positions: Seconds


def smooth_pace(
    embeddings: EmbeddingSet,
    names: Sequence[str],
    *,
    reference: str,
    method: Method = "dtw",
    fps: float | None = None,
    smoothing_s: float = SMOOTHING_S,
) -> Pace:
    """Every named video at the pace of `reference`, itself as filmed, without the stutter of a raw match.

    Args:
        fps: output frames a second; default: the reference's.
        smoothing_s: see `smoothed`; 0 keeps the raw match.
    """
    clock = seconds_of(embeddings, reference)  # (S,)
    rate = fps or _rate(clock, embeddings.fps(reference))
    seconds = np.arange(int(clock[-1] * rate + 1e-6) + 1) / rate  # (T,)
    matches = reference_pace(embeddings, names, reference=reference, method=method)
    sources, positions = [], []
    for name, match in zip(names, matches, strict=True):
        own = seconds_of(embeddings, name)  # (N,)
        source = clock if name == reference else smoothed(clock, own[match], smoothing_s=smoothing_s)
        sources.append(np.interp(seconds, clock, source))
        positions.append(np.interp(sources[-1], own, np.arange(len(own))))
    return Pace(tuple(names), rate, seconds, np.array(sources), np.array(positions))


def smoothed(seconds: Seconds, source: Seconds, *, smoothing_s: float) -> Seconds:
    """The time map `source` (T,) at `seconds` (T,) without steps: it never falls, and keeps both its ends.

    First the nearest map that never falls (isotonic regression), then a mean over a Gaussian window
    `smoothing_s` wide (its standard deviation). A window of that shape keeps a rising map rising; beyond its
    ends the map goes on point-mirrored, which keeps them where they are.
    """
    rising = pool_adjacent_violators(source)
    if len(source) < 3 or smoothing_s <= 0:
        return rising
    spacing = float(np.median(np.diff(seconds)))
    reach = min(len(source) - 1, int(np.ceil(REACH * smoothing_s / max(spacing, 1e-9))))
    times, values = _mirrored(seconds, reach), _mirrored(rising, reach)  # (T + 2 reach,)
    share = np.gradient(times)  # frames that are far apart stand for more time
    weighted, weights = np.zeros(len(source)), np.zeros(len(source))
    for offset in range(2 * reach + 1):
        window = slice(offset, offset + len(source))
        weight = share[window] * np.exp(-0.5 * ((times[window] - seconds) / smoothing_s) ** 2)
        weighted += weight * values[window]
        weights += weight
    return np.maximum.accumulate(np.clip(weighted / weights, rising[0], rising[-1]))


def reference_pace(
    embeddings: EmbeddingSet, names: Sequence[str], *, reference: str, method: Method = "dtw"
) -> list[Indices]:
    """For each named video, the frame that matches each frame of the reference, unsmoothed."""
    length = len(embeddings[reference])
    return [
        np.arange(length)
        if name == reference
        else align(embeddings[reference], embeddings[name], method=method).indices
        for name in names
    ]


def own_pace(embeddings: EmbeddingSet, names: Sequence[str]) -> list[Indices]:
    """Each video as filmed, all started together; a shorter one holds its last frame."""
    longest = max(len(embeddings[name]) for name in names)
    return [np.minimum(np.arange(longest), len(embeddings[name]) - 1) for name in names]


def paths_of(embeddings: EmbeddingSet, names: Sequence[str]) -> list[Path]:
    """The video files of the named embeddings."""
    paths = {name: embeddings.path(name) for name in names}
    for name, path in paths.items():
        if path is None or not path.exists():
            raise EmbeddingError(
                f"the video of {name!r} is not at {path}. Embed the videos again where they are now."
            )
    return [path for path in paths.values() if path is not None]


def seconds_of(embeddings: EmbeddingSet, name: str) -> Seconds:
    """Seconds (N,) of each frame of a video; where the set does not know them, its file does."""
    path = embeddings.path(name)
    if embeddings.fps(name) is not None or path is None or not path.exists():
        return embeddings.times(name)
    times = frame_times(path)
    if len(times) != len(embeddings[name]):
        raise EmbeddingError(
            f"{path} has {len(times)} frames, but {name!r} has {len(embeddings[name])} embeddings."
            " Embed the videos again."
        )
    return times


def _rate(clock: Seconds, known: float | None) -> float:
    """Average frames a second of a video with frames at `clock` (N,)."""
    span = float(clock[-1] - clock[0])
    return (len(clock) - 1) / span if span > 0 else known or 30.0


def _mirrored(values: Seconds, reach: int) -> Seconds:
    """`values` (T,) with `reach` more at each end, mirrored in the end points: (T + 2 reach,)."""
    before = 2 * values[0] - values[reach:0:-1]
    after = 2 * values[-1] - values[-2 : -2 - reach : -1]
    return np.concatenate([before, values, after])
