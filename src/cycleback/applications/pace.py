"""Play videos at the pace of a reference: which second of each video is shown at each output frame.

Shapes: T output frames, V videos, N frames of a video.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import Alignment, align
from cycleback.alignment.align import AlignmentMethod
from cycleback.alignment.confidence import pool_adjacent_violators
from cycleback.alignment.pins import place_pins
from cycleback.data.pins import Pin, match_pins
from cycleback.data.records import SEQUENCE_SUFFIX
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError
from cycleback.video import frame_times

SMOOTHING_S = 0.15  # four frames at 30 fps: removes stutter without shifting key events visibly
MAX_DEVIATIONS = 3  # the Gaussian window is cut off at this many standard deviations
Indices = NDArray[np.int64]
Seconds = NDArray[np.float64]
MAX_STRETCH = 2.5  # times that a video is slower or faster than the reference, with method "subsequence"


@dataclass(frozen=True, eq=False)
class Pace:
    """The second of each video that is shown at each output frame."""

    names: tuple[str, ...]  # the V videos
    fps: float  # output frames per second
    seconds: Seconds  # (T,) time of each output frame
    sources: Seconds  # (V, T) second of each video that is shown then
    positions: Seconds  # (V, T) the same as frame numbers of the file, with fractions between frames
    cuts: tuple[tuple[float, float], ...] = ()  # seconds of each video, before and after, that are not shown


def smooth_pace(
    embeddings: EmbeddingSet,
    names: Sequence[str],
    *,
    reference: str,
    method: AlignmentMethod = "auto",
    fps: float | None = None,
    smoothing_s: float = SMOOTHING_S,
    pins: Sequence[Pin] = (),
) -> Pace:
    """Match every named video to the pace of `reference` and smooth the match; the reference plays as filmed.

    Before and after the part that a video has in common with the reference, it plays at its own pace as far
    as it goes, and then holds its first or last frame. What it shows before the reference begins, or after it
    ends, is cut (`Pace.cuts`).

    Args:
        fps: output frames per second; default: the reference's.
        smoothing_s: see `smooth_times`; 0 keeps the raw match.
        pins: frames set by hand, which smoothing does not move, see `pin_to_reference`.
    """
    clock = read_times(embeddings, reference)  # (S,)
    start = float(clock[0])  # after 0 for a part of a video
    span = float(clock[-1] - clock[0])
    mean_rate = (len(clock) - 1) / span if span > 0 else embeddings.fps(reference) or 30.0
    rate = fps or mean_rate
    seconds = np.arange(int(span * rate + 1e-6) + 1) / rate  # (T,)
    pinned = pin_to_reference(embeddings, names, reference=reference, method=method, pins=pins)
    sources, positions, cuts = [], [], []
    for name in names:
        own, source = read_times(embeddings, name), clock  # (N,), (S,)
        if name != reference:
            limits = limit_pace(embeddings, reference, name) if method == "subsequence" else None
            match = align(
                embeddings[reference], embeddings[name], method=method, pace=limits, pins=pinned[name]
            )
            raw, fixed = match_seconds(match, clock, own), pinned[name][:, 0]
            source = smooth_times(clock, raw, smoothing_s=smoothing_s, fixed=fixed)
        sources.append(np.interp(start + seconds, clock, source))
        frames = embeddings.first_frame(name) + np.arange(len(own))
        positions.append(np.interp(sources[-1], own, frames))
        cuts.append((float(source[0] - own[0]), float(own[-1] - source[-1])))
    return Pace(tuple(names), rate, seconds, np.array(sources), np.array(positions), tuple(cuts))


def limit_pace(
    embeddings: EmbeddingSet, a: str, b: str, *, max_stretch: float = MAX_STRETCH
) -> tuple[float, float]:
    """Return the least and the greatest number of frames of `b` per frame of `a`, for method "subsequence".

    `max_stretch` is how many times slower or faster than `a` the action in `b` may be, in seconds.
    """
    rate = (embeddings.fps(b) or 1.0) / (embeddings.fps(a) or 1.0)
    return rate / max_stretch, rate * max_stretch


def match_seconds(match: Alignment, clock: Seconds, own: Seconds) -> Seconds:
    """Return the second of the matched video for each frame of the reference (S,), with fractions of frames.

    Frames that the match leaves out play at the pace of the reference, as far as the video goes.

    Args:
        match: of the reference (S frames) to the video (N frames).
        clock: (S,) seconds of the reference's frames.
        own: (N,) seconds of the video's frames.
    """
    seconds = np.interp(match.positions, np.arange(len(own)), own)
    inside = np.clip(np.arange(len(clock)), *np.flatnonzero(match.matched)[[0, -1]])
    return np.clip(seconds + clock - clock[inside], own[0], own[-1])


def smooth_times(
    seconds: Seconds, source: Seconds, *, smoothing_s: float, fixed: Indices | None = None
) -> Seconds:
    """Smooth the time map `source` (T,) at `seconds` (T,): the result never decreases and keeps both ends.

    Isotonic regression gives the nearest non-decreasing map. A Gaussian window with standard deviation
    `smoothing_s` then averages it, which keeps it non-decreasing. Beyond its ends the map is point-mirrored,
    which keeps the ends in place. The entries `fixed` (K,), in order, stay in place, too: each stretch
    between two of them is smoothed by itself.
    """
    edges = [0, *([] if fixed is None else fixed.tolist()), len(source) - 1]
    smooth = np.empty_like(source)
    for first, last in pairwise(edges):
        part = slice(first, last + 1)
        smooth[part] = _smooth_stretch(seconds[part], source[part], smoothing_s=smoothing_s)
    if fixed is not None:
        smooth[fixed] = source[fixed]  # without rounding
    return np.maximum.accumulate(smooth)


def _smooth_stretch(seconds: Seconds, source: Seconds, *, smoothing_s: float) -> Seconds:
    rising = pool_adjacent_violators(source)
    if not smoothing_s < np.inf:
        raise ValueError(f"smoothing_s must be a number of seconds, got {smoothing_s}")
    if len(source) < 3 or smoothing_s <= 0:
        return rising
    spacing = float(np.median(np.diff(seconds)))
    reach = min(len(source) - 1, int(np.ceil(MAX_DEVIATIONS * smoothing_s / max(spacing, 1e-9))))
    times, values = _mirror_ends(seconds, reach), _mirror_ends(rising, reach)  # (T + 2 reach,)
    durations = np.gradient(times)  # frames that are far apart stand for more time
    weighted, weights = np.zeros(len(source)), np.zeros(len(source))
    for offset in range(2 * reach + 1):
        window = slice(offset, offset + len(source))
        weight = durations[window] * np.exp(-0.5 * ((times[window] - seconds) / smoothing_s) ** 2)
        weighted += weight * values[window]
        weights += weight
    return np.maximum.accumulate(np.clip(weighted / weights, rising[0], rising[-1]))


def match_reference(
    embeddings: EmbeddingSet,
    names: Sequence[str],
    *,
    reference: str,
    method: AlignmentMethod = "auto",
    pins: Sequence[Pin] = (),
) -> list[Indices]:
    """For each named video, find the frame that matches each frame of the reference, without smoothing.

    `pins` are frames set by hand, see `pin_to_reference`.
    """
    pinned = pin_to_reference(embeddings, names, reference=reference, method=method, pins=pins)
    length = len(embeddings[reference])
    return [
        np.arange(length)
        if name == reference
        else align(embeddings[reference], embeddings[name], method=method, pins=pinned[name]).indices
        for name in names
    ]


def pin_to_reference(
    embeddings: EmbeddingSet,
    names: Sequence[str],
    *,
    reference: str,
    method: AlignmentMethod = "auto",
    pins: Sequence[Pin] = (),
) -> dict[str, Indices]:
    """Return the pins (K, 2) of each named video with the reference: its frame, and the video's frame.

    A pin between two other videos is placed at the frame of the reference that the surer of its two frames
    matches, and holds both frames there. So the two are shown together. Pins of videos that are not named are
    left out.
    """
    videos = list(dict.fromkeys([reference, *names]))
    place = {name: number for number, name in enumerate(videos)}
    used = match_pins(pins, videos)

    back: AlignmentMethod = "overlap" if method == "subsequence" else method  # of a longer video to a part

    def match(video: int, own: Indices) -> tuple[Indices, NDArray[np.float64]]:
        found = align(embeddings[videos[video]], embeddings[reference], method=back, pins=own[:, ::-1])
        return found.indices, found.confidence

    pinned = place_pins(
        [(place[pin.video_a], pin.frame_a, place[pin.video_b], pin.frame_b) for pin in used],
        [len(embeddings[name]) for name in videos],
        reference=0,
        match=match,
        names=videos,
    )
    return dict(zip(videos, pinned, strict=True))


def keep_own_pace(embeddings: EmbeddingSet, names: Sequence[str]) -> list[Indices]:
    """Start all videos together, each as filmed; a shorter one holds its last frame."""
    length = max(len(embeddings[name]) for name in names)
    return [np.minimum(np.arange(length), len(embeddings[name]) - 1) for name in names]


def take_turns(count: int, length: int, *, switch_every: int) -> Indices:
    """Choose one of `count` videos for each of `length` output frames, as the layout "switch" shows them."""
    if switch_every < 1:
        raise ValueError(f"switch_every must be at least 1, got {switch_every!r}")
    return np.arange(length) // switch_every % count


def locate_videos(embeddings: EmbeddingSet, names: Sequence[str]) -> list[Path]:
    """Return the video file of each of the named embeddings; all must exist."""
    paths = {name: embeddings.path(name) for name in names}
    for name, path in paths.items():
        if path is None or not path.exists():
            raise EmbeddingError(
                f"the video of {name!r} is not at {path}. Embed the videos again where they are now."
            )
        if path.suffix.lower() == SEQUENCE_SUFFIX:
            raise EmbeddingError(
                f"{path} holds vectors and cannot be played; for a table of frames: cycleback align"
            )
    return [path for path in paths.values() if path is not None]


def read_times(embeddings: EmbeddingSet, name: str) -> Seconds:
    """Return the second (N,) of each frame of a video, read from its file where the set does not know it."""
    path, first = embeddings.path(name), embeddings.first_frame(name)
    is_video = path is not None and path.exists() and path.suffix.lower() != SEQUENCE_SUFFIX
    if embeddings.fps(name) is not None or path is None or not is_video:
        return embeddings.times(name)
    times = frame_times(path)
    if embeddings.source(name) != name:
        times = times[first : first + len(embeddings[name])]
    if len(times) != len(embeddings[name]):
        raise EmbeddingError(
            f"{path} has {len(times)} frames, but {name!r} has {len(embeddings[name])} embeddings."
            " Embed the videos again."
        )
    return times


def _mirror_ends(values: Seconds, reach: int) -> Seconds:
    """Extend `values` (T,) by `reach` at each end, mirrored in the end points: (T + 2 reach,)."""
    before = 2 * values[0] - values[reach:0:-1]
    after = 2 * values[-1] - values[-2 : -2 - reach : -1]
    return np.concatenate([before, values, after])
