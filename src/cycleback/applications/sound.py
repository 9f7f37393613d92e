"""Give the sound of one video to another that shows the same action (paper: sound transfer).

    smooth   along the warping path, at the pace of the pictures, with joints nobody hears
    blocks   the paper's way: the sound of the nearest frames, block after block, and nothing else

Shapes: S frames of the source, which has the sound, T frames of the target, D embedding size.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import align, nearest_neighbors
from cycleback.applications.pace import Seconds, paths_of, seconds_of
from cycleback.applications.sound_warp import read, warp_sound
from cycleback.applications.time_map import TimeMap, time_map
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import UserError, VideoError
from cycleback.video import Audio, probe, read_audio

Method = Literal["smooth", "blocks"]
BLOCK_FRAMES = 5  # the paper uses "multiple frames"
MOTION_S = 0.1
MOTION_WEIGHT = 2.0  # measured, untrained: golf events 366 -> 165 ms off, catches of pitches 70 -> 35 ms

Embeddings = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Pair:
    """Embeddings `source` (S, D) and `target` (T, D), and the seconds (S,) and (T,) of their frames."""

    source: Embeddings
    target: Embeddings
    source_times: Seconds
    target_times: Seconds


@dataclass(frozen=True, eq=False)
class TransferredSound:
    """Sound as long as the target, and how sure the match of each of its frames is, (T,) in [0, 1]."""

    audio: Audio
    confidence: NDArray[np.float64]


def transfer_sound(
    embeddings: EmbeddingSet, source: str, target: str, *, method: Method = "smooth"
) -> TransferredSound:
    """The sound of video `source`, retimed to the pictures of video `target`; both are names in the set."""
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {', '.join(map(repr, get_args(Method)))}, got {method!r}")
    heard, seen = (paths_of(embeddings, [name])[0] for name in (source, target))
    check_sound_pair(heard, seen)
    pair = Pair(
        source=embeddings[source],
        target=embeddings[target],
        source_times=seconds_of(embeddings, source),
        target_times=seconds_of(embeddings, target),
    )
    audio, duration_s = read_audio(heard), probe(seen).duration_s
    if method == "blocks":
        confidence = align(pair.target, pair.source, method="nearest").confidence
        return TransferredSound(sound_by_blocks(audio, pair, duration_s=duration_s), confidence)
    clock, confidence = match_times(pair)
    return TransferredSound(warp_sound(audio, clock, duration_s=duration_s), confidence)


def check_sound_pair(source: Path, target: Path) -> None:
    """Refuse a source without sound, a target that is the source, and files that are no videos."""
    if not probe(source).has_audio:
        raise VideoError(
            f"{source} has no sound track; give the video with the sound first, then the silent one"
        )
    probe(target)
    if source.samefile(target):
        raise UserError(f"source and target are the same video, {source}; give two different ones")


def match_times(pair: Pair) -> tuple[TimeMap, NDArray[np.float64]]:
    """The second of the source for each second of the target, and the confidence (T,) of its frames."""
    rows = with_motion(pair.target, pair.target_times)
    found = align(rows, with_motion(pair.source, pair.source_times))
    assert found.path is not None  # dtw has one
    clock = time_map(found.path, target_times=pair.target_times, source_times=pair.source_times)
    return clock, found.confidence


def with_motion(embeddings: Embeddings, times: Seconds) -> NDArray[np.float64]:
    """Embeddings (N, D) beside how they change around each frame: (N, 2 D).

    Sounds come from movement, and frames before and after a hit look alike; how they change tells them apart.
    Before its first and after its last frame a video stands still.
    """
    rows = np.asarray(embeddings, dtype=np.float64)
    after, before = (_at(rows, times, times + shift) for shift in (MOTION_S, -MOTION_S))
    return np.concatenate([rows, MOTION_WEIGHT * (after - before)], axis=1)


def sound_by_blocks(audio: Audio, pair: Pair, *, duration_s: float, frames: int = BLOCK_FRAMES) -> Audio:
    """For every `frames` of the target the sound of those frames of the source that are nearest, joined.

    The embeddings of the frames of a block are averaged, as the paper does; no other care is taken.
    """
    count = max(1, min(frames, len(pair.source), len(pair.target)))
    starts = np.arange(0, len(pair.target), count)
    windows = np.minimum(starts, len(pair.target) - count)  # the last block may be short
    matches = nearest_neighbors(_window_means(pair.target, count)[windows], _window_means(pair.source, count))
    begins = np.round(pair.source_times[matches + starts - windows] * audio.rate).astype(np.int64)
    edges = np.round(np.append(pair.target_times[starts], duration_s) * audio.rate).astype(np.int64)
    pieces = [
        read(audio.samples, int(begin), int(length))
        for begin, length in zip(begins, np.diff(edges), strict=True)
    ]
    return Audio(np.concatenate(pieces, axis=1), audio.rate)


def _at(rows: NDArray[np.float64], times: Seconds, seconds: Seconds) -> NDArray[np.float64]:
    """Rows (N, D) between their `times` (N,), at `seconds` (N,); the first and the last go on."""
    place = np.interp(seconds, times, np.arange(len(times)))
    first = np.floor(place).astype(np.int64)
    share = (place - first)[:, None]
    return np.asarray(rows[first] * (1 - share) + rows[np.minimum(first + 1, len(rows) - 1)] * share)


def _window_means(rows: Embeddings, count: int) -> NDArray[np.float64]:
    """Means (N - count + 1, D) of `count` consecutive rows (N, D)."""
    sums = np.cumsum(np.asarray(rows, dtype=np.float64), axis=0)
    sums = np.concatenate([np.zeros_like(sums[:1]), sums])
    return np.asarray((sums[count:] - sums[:-count]) / count)
