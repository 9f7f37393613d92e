"""Small clips whose pixels tell the frame number: twelve blocks, black for 0 and white for 1.

Python and the page decode the number from any picture of a frame, at any size.
"""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

COLUMNS, ROWS = 4, 3  # blocks; the lowest bit is at the top left
WIDTH, HEIGHT = 160, 120
TICK = Fraction(1, 15360)
SOUND_RATE = 48000

READ_NUMBER_JS = """
(canvas) => {
  const {width, height} = canvas;
  const pixels = canvas.getContext("2d", {willReadFrequently: true}).getImageData(0, 0, width, height).data;
  let number = 0;
  for (let bit = 0; bit < 12; bit++) {
    const x = Math.floor(((bit % 4) + 0.5) * width / 4);
    const y = Math.floor((Math.floor(bit / 4) + 0.5) * height / 3);
    if (pixels[4 * (y * width + x) + 1] > 128) number += 1 << bit;
  }
  return number;
}
"""
"""A JavaScript function: the frame number that a canvas shows."""


def draw_number(number: int, *, width: int = WIDTH, height: int = HEIGHT) -> NDArray[np.uint8]:
    """Draw a frame (height, width, 3) that tells its number."""
    bits = (number >> np.arange(COLUMNS * ROWS) & 1).reshape(ROWS, COLUMNS)
    rows = np.arange(height) * ROWS // height
    columns = np.arange(width) * COLUMNS // width
    grey = np.where(bits[rows][:, columns], 230, 25).astype(np.uint8)
    return np.stack([grey, grey, grey], axis=-1)


def read_number(image: NDArray[np.uint8]) -> int:
    """Read the number that a frame (H, W, 3) tells."""
    height, width = image.shape[:2]
    bits = range(COLUMNS * ROWS)
    rows = [int((bit // COLUMNS + 0.5) * height / ROWS) for bit in bits]
    columns = [int((bit % COLUMNS + 0.5) * width / COLUMNS) for bit in bits]
    return sum(
        1 << bit
        for bit in bits
        if image[rows[bit] - 1 : rows[bit] + 2, columns[bit] - 1 : columns[bit] + 2].mean() > 128
    )


def steady_times(count: int, fps: float = 30.0) -> list[int]:
    """Time stamps of `count` frames at a constant rate, in ticks."""
    return [round(number / fps / TICK) for number in range(count)]


def uneven_times(count: int) -> list[int]:
    """Time stamps of `count` frames whose distance varies between 1/60 and 1/10 of a second, in ticks."""
    steps = [(256, 512, 1536, 384, 768)[number % 5] for number in range(count)]
    return [0, *np.cumsum(steps)[:-1].tolist()]


def write_clip(
    path: Path,
    times: Sequence[int],
    *,
    gop: int = 30,
    b_frames: int = 0,
    sound: bool = False,
    codec: str = "libx264",
    pixel_format: str = "yuv420p",
    size: tuple[int, int] = (WIDTH, HEIGHT),
) -> Path:
    """Write a clip of numbered frames at these times in ticks; the sound is a beep at each whole second."""
    with av.open(str(path), "w") as container:
        options = {"crf": "18", "preset": "veryfast", "sc_threshold": "0"} if codec == "libx264" else {}
        stream = container.add_stream(codec, rate=30, options=options)
        stream.width, stream.height = size
        stream.pix_fmt = pixel_format
        context = stream.codec_context
        context.time_base = stream.time_base = TICK
        context.gop_size, context.max_b_frames = gop, b_frames
        context.thread_count = 1
        voice = container.add_stream("aac", rate=SOUND_RATE, layout="mono") if sound else None
        for number, time in enumerate(times):
            frame = av.VideoFrame.from_ndarray(
                draw_number(number, width=size[0], height=size[1]), format="rgb24"
            )
            frame.pts, frame.time_base = int(time), TICK
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        if voice is not None:
            _write_beeps(container, voice, seconds=float(times[-1] * TICK) + 1 / 30)
    return path


def _write_beeps(container: av.container.OutputContainer, voice: av.AudioStream, *, seconds: float) -> None:
    """Write a beep of 0.1 s at each whole second."""
    time = np.arange(round(seconds * SOUND_RATE)) / SOUND_RATE
    wave = (0.5 * np.sin(2 * np.pi * 880 * time) * (time % 1.0 < 0.1)).astype(np.float32)
    for start in range(0, len(wave), 1024):
        block = np.ascontiguousarray(wave[None, start : start + 1024])
        frame = av.AudioFrame.from_ndarray(block, format="fltp", layout="mono")
        frame.sample_rate, frame.time_base, frame.pts = SOUND_RATE, Fraction(1, SOUND_RATE), start
        container.mux(voice.encode(frame))
    container.mux(voice.encode(None))


def write_project(folder: Path) -> Path:
    """Write a folder of four clips: with B-frames, of variable rate, all keyframes, and with sound."""
    folder.mkdir(parents=True, exist_ok=True)
    write_clip(folder / "bframes.mp4", steady_times(75), b_frames=3)
    write_clip(folder / "uneven.mp4", uneven_times(60), b_frames=2)
    write_clip(folder / "intra.mp4", steady_times(50), gop=1)
    write_clip(folder / "sound.mp4", steady_times(66), b_frames=2, sound=True)
    return folder
