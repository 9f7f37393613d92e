"""Clips whose pixels tell the frame number, made by the ffmpeg program: the reference of these tests."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cycleback.video import Audio

Images = NDArray[np.uint8]
BLOCK, SIDE = 16, 64  # pixels of a block that holds one bit, and of a whole frame


@pytest.fixture(scope="session")
def ffmpeg() -> Callable[..., bytes]:
    """Run the ffmpeg program and return what it writes to standard output."""
    program = pytest.importorskip("imageio_ffmpeg", reason="needs imageio-ffmpeg").get_ffmpeg_exe()

    def run(*arguments: str | Path, stdin: bytes = b"") -> bytes:
        command = [program, "-y", "-v", "error", *map(str, arguments)]
        return subprocess.run(command, input=stdin, capture_output=True, check=True).stdout

    return run


@pytest.fixture(scope="session")
def decode(ffmpeg: Callable[..., bytes]) -> Callable[..., Images]:
    """All frames (N, H, W, 3) of a file as the ffmpeg program decodes them."""

    def run(path: Path, height: int = SIDE, width: int = SIDE) -> Images:
        raw = ffmpeg("-i", path, "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "-")
        return np.frombuffer(raw, dtype=np.uint8).reshape(-1, height, width, 3)

    return run


@pytest.fixture(scope="session")
def numbered() -> Callable[[int], Iterator[Images]]:
    """Frames (64, 64, 3) whose 16 blocks spell the frame number in black and white, on a tinted ground."""

    def frames(count: int) -> Iterator[Images]:
        for number in range(count):
            bits = (number >> np.arange(16) & 1).astype(np.uint8).reshape(4, 4)
            grey = np.kron(bits * 180 + 30, np.ones((BLOCK, BLOCK), np.uint8))
            yield np.stack([grey, grey // 2 + 60, grey], axis=-1).astype(np.uint8)

    return frames


@pytest.fixture(scope="session")
def numbers_of() -> Callable[[Images], list[int]]:
    """The frame numbers that images (n, 64, 64, 3) spell."""

    def read(images: Images) -> list[int]:
        blocks = images[..., 0].reshape(-1, 4, BLOCK, 4, BLOCK)[:, :, 4:12, :, 4:12].mean(axis=(2, 4))
        return [int(sum(1 << i for i in np.flatnonzero(block.ravel() > 120))) for block in blocks]

    return read


@pytest.fixture(scope="session")
def clip(
    tmp_path_factory: pytest.TempPathFactory,
    ffmpeg: Callable[..., bytes],
    numbered: Callable[[int], Iterator[Images]],
) -> Callable[..., Path]:
    """Make a clip of numbered frames with the ffmpeg program; the same call gives the same file."""
    folder = tmp_path_factory.mktemp("clips")
    made: dict[tuple[object, ...], Path] = {}

    def make(name: str, *arguments: str, count: int = 60, rate: str = "30") -> Path:
        key = (name, arguments, count, rate)
        if key not in made:
            path = folder / f"{len(made)}_{name}"
            raw = b"".join(frame.tobytes() for frame in numbered(count))
            pipe = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{SIDE}x{SIDE}", "-r", rate, "-i", "-"]
            ffmpeg(*pipe, *arguments, path, stdin=raw)
            made[key] = path
        return made[key]

    return make


@pytest.fixture(scope="session")
def tone() -> Callable[..., Audio]:
    """A sine wave."""

    def make(*, seconds: float, rate: int = 44100, hertz: float = 440.0, channels: int = 1) -> Audio:
        wave = 0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)
        return Audio(np.tile(wave, (channels, 1)).astype(np.float32), rate)

    return make
