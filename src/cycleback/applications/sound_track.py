"""Write a sound beside the pictures of a video, or alone."""

import wave
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import VideoError
from cycleback.files import atomic_file, check_output
from cycleback.video import Audio, VideoInfo, frame_times, iter_frames, probe, write_video
from cycleback.video.audio import SoundTrack
from cycleback.video.source import find_video_stream, load_av, open_container
from cycleback.video.writer import WRITE_SUFFIXES

SOUND_SUFFIXES = (*WRITE_SUFFIXES, ".wav")
SAME_S = 0.002  # containers round time stamps to a millisecond


def write_with_sound(output: Path | str, video: Path | str, audio: Audio, *, overwrite: bool = False) -> Path:
    """Write the pictures of `video` with `audio` as their only sound; a .wav gets the sound alone.

    Pictures are copied as they are, without a loss. Where the format of the file cannot hold them they are
    encoded again. The sound is cut, or padded with silence, to the length of the video.
    """
    output, video = Path(output), Path(video)
    check_output(output, overwrite=overwrite, suffixes=SOUND_SUFFIXES)
    info = probe(video)
    with atomic_file(output, overwrite=overwrite) as draft:
        if output.suffix.lower() == ".wav":
            _write_wav(draft, audio)
        elif not _copy_pictures(draft, info, audio):
            frames = _steady_frames(info)
            write_video(draft, frames, fps=info.fps, audio=audio, overwrite=True)
    return output


def _write_wav(path: Path, audio: Audio) -> None:
    """16-bit samples, which every player knows."""
    whole = np.round(np.clip(audio.samples.T, -1.0, 1.0) * 32767).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(whole.shape[1])
        file.setsampwidth(2)
        file.setframerate(audio.rate)
        file.writeframes(whole.tobytes())


def _copy_pictures(draft: Path, info: VideoInfo, audio: Audio) -> bool:
    """Whether `draft` now shows the same frames at the same times, from packets that were never decoded."""
    av = load_av("writing video")
    try:
        if not _remux(draft, info, audio):
            return False
        copied = probe(draft)
    except (av.error.FFmpegError, ValueError, VideoError):
        return False
    seen, times = frame_times(draft), frame_times(info.path)
    same_look = (copied.width, copied.height, copied.rotation) == (info.width, info.height, info.rotation)
    return same_look and len(seen) == len(times) and bool(np.abs(seen - times).max() < SAME_S)


def _remux(draft: Path, info: VideoInfo, audio: Audio) -> bool:
    """Copy every packet of pictures, the first one shown at 0 s, with the sound of its moment beside it."""
    first = _first_shown(info.path)
    if first is None:
        return False
    av = load_av("writing video")
    options = {} if draft.suffix.lower() == ".mkv" else {"movflags": "+faststart"}
    with open_container(info.path) as container, av.open(str(draft), "w", options=options) as result:
        stream = find_video_stream(container)
        pictures = result.add_stream_from_template(stream)
        sound = SoundTrack(result, audio)
        for packet in _packets(container, stream):
            packet.pts, packet.dts = packet.pts - first, packet.dts - first
            sound.write_until(Fraction(packet.dts * packet.time_base))
            packet.stream = pictures
            result.mux(packet)
        sound.write_until(Fraction(info.duration_s))
        sound.finish()
    return True


def _first_shown(path: Path) -> int | None:
    """The earliest time stamp of the pictures; None where some have none or are not meant to be seen."""
    stamps = []
    with open_container(path) as container:
        for packet in _packets(container, find_video_stream(container)):
            if packet.pts is None or packet.dts is None or packet.is_discard:
                return None  # only decoding tells which frames are seen when
            stamps.append(int(packet.pts))
    return min(stamps, default=None)


def _packets(container: Any, stream: Any) -> Iterator[Any]:
    """The packets of `stream`, without the empty one at the end."""
    return (packet for packet in container.demux(stream) if packet.size)


def _steady_frames(info: VideoInfo) -> Iterator[NDArray[np.uint8]]:
    """Frames (H, W, 3) at the constant rate `info.fps`: at each tick the one that is shown then."""
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
