"""Facts about a video file, from its header and packets.

Letters: N frames of a whole video.
"""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.video import opencv
from cycleback.video.backend import load_opencv
from cycleback.video.decoding import first_frame
from cycleback.video.index import FrameIndex, read_index
from cycleback.video.info import VideoInfo
from cycleback.video.scaling import displayed_size, quarter_turns
from cycleback.video.source import VideoSource, checked_file, open_video
from cycleback.video.timing import average_rate, is_variable


def probe(path: str | os.PathLike[str]) -> VideoInfo:
    """Facts about a video file; reads all packets, decodes one frame.

    A file that lacks its end gives a DamagedVideoWarning and counts what is there.
    """
    file = checked_file(path)
    cv2 = load_opencv()
    if cv2 is not None:
        return opencv.probe(cv2, file)
    with open_video(file, threaded=False) as source:
        frame = first_frame(source)
    with open_video(file) as source:
        return _info(source, frame, read_index(source))


def frame_times(path: str | os.PathLike[str]) -> NDArray[np.float64]:
    """Seconds (N,) at which each frame is shown; the first is 0.0."""
    file = checked_file(path)
    cv2 = load_opencv()
    if cv2 is not None:
        return opencv.frame_times(cv2, file)
    with open_video(file) as source:
        return read_index(source).times


def _info(source: VideoSource, frame: Any, index: FrameIndex) -> VideoInfo:
    """All facts of an open file with a decoded `frame` and its `index`."""
    height, width = displayed_size(frame)
    sound = next(iter(source.container.streams.audio), None)
    return VideoInfo(
        path=source.path,
        width=width,
        height=height,
        num_frames=index.num_frames,
        fps=average_rate(index.times, index.duration_s, stated=source.rate),
        duration_s=index.duration_s,
        codec=source.canonical_codec,
        pixel_format=frame.format.name,
        rotation=quarter_turns(frame) * 90,
        is_variable_rate=is_variable(index.times),
        has_audio=sound is not None,
        audio_rate=None if sound is None else sound.rate,
        audio_channels=0 if sound is None else sound.channels,
    )
