"""What reading a video gives back."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class VideoInfo:
    """Facts about a video file.

    Attributes:
        path: The file.
        width: Pixels across, as displayed (after rotation).
        height: Pixels down, as displayed.
        num_frames: Frames that can be shown.
        fps: Average frames a second.
        duration_s: Seconds from the first frame to the end of the last.
        codec: Format of the pictures: "h264", "vp9", …
        pixel_format: How pixels are stored: "yuv420p", "gray", …
        rotation: Degrees the stored picture is turned counter-clockwise to stand upright: 0, 90, 180, 270.
        is_variable_rate: Whether the time between frames varies.
        has_audio: Whether there is a sound track.
        audio_rate: Samples a second of the sound; None without sound.
        audio_channels: Channels of the sound; 0 without sound.
    """

    path: Path
    width: int
    height: int
    num_frames: int
    fps: float
    duration_s: float
    codec: str
    pixel_format: str
    rotation: int
    is_variable_rate: bool
    has_audio: bool
    audio_rate: int | None
    audio_channels: int


@dataclass(frozen=True)
class FrameChunk:
    """Consecutive frames of a video.

    Attributes:
        frames: RGB uint8 (n, H, W, 3).
        times: Seconds float64 (n,) since the first frame of the video.
        start: Number of the first of these frames in the video.
    """

    frames: NDArray[np.uint8]
    times: NDArray[np.float64]
    start: int
