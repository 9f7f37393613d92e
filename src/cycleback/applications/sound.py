"""Give the sound of one video to another that shows the same action (paper: sound transfer).

    smooth   follow the warping path, at the pace of the pictures, with inaudible joints
    blocks   the paper's method: the sound of the nearest frames, block after block

Shapes: S frames of the source, which has the sound, T frames of the target, D embedding size, K points of a
time map.
"""

import wave
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import align, check_pins
from cycleback.alignment.pins import NO_PINS, find_nearest
from cycleback.applications.pace import Indices, Seconds, locate_videos, read_times, smooth_times
from cycleback.applications.sound_warp import TimeMap, read_samples, warp_sound
from cycleback.data.pins import Pin, match_pins, select_pairs
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import UserError, VideoError
from cycleback.files import atomic_file, check_output
from cycleback.video import Audio, VideoInfo, frame_times, iter_frames, probe, read_audio, write_video
from cycleback.video.audio import SoundTrack
from cycleback.video.source import find_video_stream, load_av, open_container
from cycleback.video.writer import WRITE_SUFFIXES

Method = Literal["smooth", "blocks"]
SOUND_METHODS: tuple[str, ...] = get_args(Method)
SOUND_SUFFIXES = (*WRITE_SUFFIXES, ".wav")
BLOCK_FRAMES = 5  # the paper uses "multiple frames"
MOTION_S = 0.1
MOTION_WEIGHT = 2.0  # measured, untrained: golf events 366 -> 165 ms off, catches of pitches 70 -> 35 ms
SMOOTHING_S = 0.1  # catches of pitches land no better with more or with less
JOINT_S = 0.005  # from silence to the sound of a take and back
MIN_PACE = 1e-3  # a time map that stands still could not be inverted
TIME_TOLERANCE_S = 0.002  # containers round time stamps to a millisecond
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
    """Sound as long as the target, and the confidence (T,) in [0, 1] of the match of each frame."""

    audio: Audio
    confidence: NDArray[np.float64]


def transfer_sound(
    embeddings: EmbeddingSet,
    source: str,
    target: str,
    *,
    method: Method = "smooth",
    pins: Sequence[Pin] = (),
) -> TransferredSound:
    """Retime the sound of video `source` to the pictures of video `target`; both are names in the set.

    At `pins` between the two videos, the sound of the source's frame is heard at the target's frame. Blocks
    only search between the pins.
    """
    if method not in SOUND_METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, SOUND_METHODS))}, got {method!r}")
    heard, seen = (locate_videos(embeddings, [name])[0] for name in (source, target))
    check_sound_pair(heard, seen)
    pair = Pair(
        source=embeddings[source],
        target=embeddings[target],
        source_times=read_times(embeddings, source),
        target_times=read_times(embeddings, target),
    )
    pairs = select_pairs(match_pins(pins, [source, target]), target, source)
    pinned = check_pins(pairs, len(pair.target), len(pair.source), names=(target, source))
    audio, duration_s = read_audio(heard), probe(seen).duration_s
    if method == "blocks":
        confidence = align(pair.target, pair.source, method="nearest", pins=pinned).confidence
        return TransferredSound(join_blocks(audio, pair, duration_s=duration_s, pins=pinned), confidence)
    clock, confidence = match_times(pair, pins=pinned)
    return TransferredSound(warp_sound(audio, clock, duration_s=duration_s), confidence)


def transfer_sound_of_takes(
    embeddings: EmbeddingSet, sources: Sequence[str], targets: Sequence[str]
) -> TransferredSound:
    """Retime the sound of takes to the takes of another video: first to first, second to second, and so on.

    Where the source has fewer takes, its first follows its last. Between and around the takes it is silent.

    Args:
        sources: takes of one video, see `cycleback.applications.split_takes`, or one whole video.
        targets: takes of the video that gets the sound, or one whole video.
    """
    heard, seen = (locate_videos(embeddings, [names[0]])[0] for names in (sources, targets))
    check_sound_pair(heard, seen)
    audio = read_audio(heard)
    rate, channels = audio.rate, len(audio.samples)
    samples = np.zeros((channels, round(probe(seen).duration_s * rate)), dtype=np.float32)
    confidence = []
    for number, target in enumerate(targets):
        source = sources[number % len(sources)]
        own, other = read_times(embeddings, target), read_times(embeddings, source)
        pair = Pair(embeddings[source], embeddings[target], other, own)
        clock, sure = match_times(pair)
        first = round(float(own[0]) * rate)
        duration_s = float(own[-1] - own[0]) * len(own) / max(len(own) - 1, 1)
        moved = TimeMap(clock.target_s - own[0], clock.source_s)
        part = _fade_ends(warp_sound(audio, moved, duration_s=duration_s))[:, : samples.shape[1] - first]
        samples[:, first : first + part.shape[1]] = part
        confidence.append(sure)
    return TransferredSound(Audio(samples, rate), np.concatenate(confidence))


def _fade_ends(audio: Audio) -> NDArray[np.float32]:
    """Return samples (channels, M) that rise from silence and fall back to it: joints do not click."""
    count = min(round(JOINT_S * audio.rate), audio.samples.shape[1] // 2)
    faded = np.array(audio.samples, dtype=np.float32)
    ramp = np.linspace(0, 1, count, endpoint=False, dtype=np.float32)
    faded[:, :count] *= ramp
    faded[:, faded.shape[1] - count :] *= ramp[::-1]
    return faded


def check_sound_pair(source: Path, target: Path) -> None:
    """Refuse a source without sound, a target that is the source, and files that are not videos."""
    if not probe(source).has_audio:
        raise VideoError(
            f"{source} has no sound track; give the video with the sound first, then the silent one"
        )
    probe(target)
    if source.samefile(target):
        raise UserError(f"source and target are the same video, {source}; give two different ones")


def match_times(
    pair: Pair, *, method: Literal["auto", "dtw"] = "auto", pins: Indices = NO_PINS
) -> tuple[TimeMap, NDArray[np.float64]]:
    """Find the second of the source for each second of the target, and the confidence (T,) of its frames.

    Before and after the frames that are matched, the sound plays at full pace. The map passes through all
    `pins` (K, 2), frames of the target and of the source.
    """
    rows = add_motion(pair.target, pair.target_times)
    alignment = align(rows, add_motion(pair.source, pair.source_times), method=method, pins=pins)
    matched = alignment.matched
    clock = fit_time_map(
        alignment.positions[matched],
        target_times=pair.target_times[matched],
        source_times=pair.source_times,
        fixed=pins[:, 0] - int(matched.argmax()),
    )
    return clock, alignment.confidence


def fit_time_map(
    positions: NDArray[np.float64],
    *,
    target_times: Seconds,
    source_times: Seconds,
    fixed: Indices = NO_PINS[:, 0],
) -> TimeMap:
    """Fit a smooth time map to matches.

    Args:
        positions: (K,) frames of the source, with fractions, never running backwards.
        target_times: (K,) seconds of the target's frames that match them.
        source_times: (S,) seconds of the source's frames.
        fixed: which of the K points the map passes through exactly, in order.
    """
    matches = np.interp(positions, np.arange(len(source_times)), source_times)
    source = smooth_times(target_times, matches, smoothing_s=SMOOTHING_S, fixed=fixed)
    return TimeMap(target_times, _keep_moving(target_times, source, fixed))


def _keep_moving(times: Seconds, source: Seconds, fixed: Indices) -> Seconds:
    """Tilt the map `source` (K,) a little, so that it rises everywhere; the points `fixed` stay.

    Between fixed points the map turns towards the straight line from one to the next.
    """
    anchors = fixed if len(fixed) else np.array([0])
    inside = np.clip(times, times[anchors[0]], times[anchors[-1]])
    line = np.interp(times, times[anchors], source[anchors])
    tilted: Seconds = source + MIN_PACE * np.where(inside == times, line - source, times - inside)
    return tilted


def add_motion(embeddings: Embeddings, times: Seconds) -> NDArray[np.float64]:
    """Append to embeddings (N, D) how they change around each frame: (N, 2 D).

    Sounds come from movement. Frames before and after a hit look alike, but they change differently. Before
    its first and after its last frame a video stands still.
    """
    rows = np.asarray(embeddings, dtype=np.float64)
    after, before = (_interpolate(rows, times, times + shift) for shift in (MOTION_S, -MOTION_S))
    return np.concatenate([rows, MOTION_WEIGHT * (after - before)], axis=1)


def join_blocks(
    audio: Audio, pair: Pair, *, duration_s: float, frames: int = BLOCK_FRAMES, pins: Indices = NO_PINS
) -> Audio:
    """For every `frames` of the target, play the sound of the nearest frames of the source.

    The embeddings of a block are averaged, as in the paper; the joints are not smoothed. A block is searched
    between the `pins` (K, 2), frames of the target and of the source, before and after its first frame.
    """
    count = max(1, min(frames, len(pair.source), len(pair.target)))
    starts = np.arange(0, len(pair.target), count)
    windows = np.minimum(starts, len(pair.target) - count)  # the last block may be short
    means = _window_means(pair.target, count), _window_means(pair.source, count)
    matches = find_nearest(*means, np.minimum(pins, [len(means[0]) - 1, len(means[1]) - 1]))[windows]
    begins = np.round(pair.source_times[matches + starts - windows] * audio.rate).astype(np.int64)
    edges = np.round(np.append(pair.target_times[starts], duration_s) * audio.rate).astype(np.int64)
    pieces = [
        read_samples(audio.samples, int(begin), int(length))
        for begin, length in zip(begins, np.diff(edges), strict=True)
    ]
    return Audio(np.concatenate(pieces, axis=1), audio.rate)


def _interpolate(rows: NDArray[np.float64], times: Seconds, seconds: Seconds) -> NDArray[np.float64]:
    """Interpolate rows (N, D) at `times` (N,) to `seconds` (N,); the ends hold their value."""
    place = np.interp(seconds, times, np.arange(len(times)))
    first = np.floor(place).astype(np.int64)
    share = (place - first)[:, None]
    return np.asarray(rows[first] * (1 - share) + rows[np.minimum(first + 1, len(rows) - 1)] * share)


def _window_means(rows: Embeddings, count: int) -> NDArray[np.float64]:
    """Means (N - count + 1, D) of `count` consecutive rows (N, D)."""
    sums = np.cumsum(np.asarray(rows, dtype=np.float64), axis=0)
    sums = np.concatenate([np.zeros_like(sums[:1]), sums])
    return np.asarray((sums[count:] - sums[:-count]) / count)


def write_with_sound(output: Path | str, video: Path | str, audio: Audio, *, overwrite: bool = False) -> Path:
    """Write the pictures of `video` with `audio` as their only sound; a .wav gets the sound alone.

    Pictures are copied without loss, or encoded again where the format of the file cannot hold them. The
    sound is cut, or padded with silence, to the length of the video.
    """
    output, video = Path(output), Path(video)
    check_output(output, overwrite=overwrite, suffixes=SOUND_SUFFIXES, inputs=[video])
    info = probe(video)
    with atomic_file(output, overwrite=overwrite) as draft:
        if output.suffix.lower() == ".wav":
            _write_wav(draft, audio)
        elif not _copy_pictures(draft, info, audio):
            frames = _resample_frames(info)
            write_video(draft, frames, fps=info.fps, audio=audio, overwrite=True)
    return output


def _write_wav(path: Path, audio: Audio) -> None:
    whole = np.round(np.clip(audio.samples.T, -1.0, 1.0) * 32767).astype("<i2")  # every player reads 16 bit
    with wave.open(str(path), "wb") as file:
        file.setnchannels(whole.shape[1])
        file.setsampwidth(2)
        file.setframerate(audio.rate)
        file.writeframes(whole.tobytes())


def _copy_pictures(draft: Path, info: VideoInfo, audio: Audio) -> bool:
    """Copy packets without decoding; return whether `draft` shows the same frames at the same times."""
    av = load_av("writing video")
    try:
        if not _remux(draft, info, audio):
            return False
        copied = probe(draft)
    except (av.error.FFmpegError, ValueError, VideoError):
        return False
    seen, times = frame_times(draft), frame_times(info.path)
    is_same = (copied.width, copied.height, copied.rotation) == (info.width, info.height, info.rotation)
    return is_same and len(seen) == len(times) and bool(np.abs(seen - times).max() < TIME_TOLERANCE_S)


def _remux(draft: Path, info: VideoInfo, audio: Audio) -> bool:
    """Copy every packet of pictures, the first one shown at 0 s, interleaved with the sound."""
    first = _first_time_stamp(info.path)
    if first is None:
        return False
    av = load_av("writing video")
    options = {} if draft.suffix.lower() == ".mkv" else {"movflags": "+faststart"}
    with open_container(info.path) as container, av.open(f"file:{draft}", "w", options=options) as result:
        stream = find_video_stream(container)
        pictures = result.add_stream_from_template(stream)
        sound = SoundTrack(result, audio)
        for packet in _read_packets(container, stream):
            packet.pts, packet.dts = packet.pts - first, packet.dts - first
            sound.write_until(Fraction(packet.dts * packet.time_base))
            packet.stream = pictures
            result.mux(packet)
        sound.write_until(Fraction(info.duration_s))
        sound.finish()
    return True


def _first_time_stamp(path: Path) -> int | None:
    """The earliest time stamp of the pictures; None where only decoding tells which frames are shown when."""
    stamps = []
    with open_container(path) as container:
        for packet in _read_packets(container, find_video_stream(container)):
            if packet.pts is None or packet.dts is None or packet.is_discard:
                return None
            stamps.append(int(packet.pts))
    return min(stamps, default=None)


def _read_packets(container: Any, stream: Any) -> Iterator[Any]:
    """Yield the packets of `stream`, without the empty one at the end."""
    return (packet for packet in container.demux(stream) if packet.size)


def _resample_frames(info: VideoInfo) -> Iterator[NDArray[np.uint8]]:
    """Yield frames (H, W, 3) at the constant rate `info.fps`: at each tick the frame that is shown then."""
    ticks, total = 0, max(1, round(info.duration_s * info.fps))
    waiting: NDArray[np.uint8] | None = None
    for chunk in iter_frames(info.path, chunk_frames=16):
        for frame, seconds in zip(chunk.frames, chunk.times, strict=True):
            while waiting is not None and ticks < total and (ticks + 0.5) / info.fps <= seconds:
                yield waiting
                ticks += 1
            waiting = frame
    for _ in range(ticks, total if waiting is not None else 0):
        assert waiting is not None
        yield waiting
