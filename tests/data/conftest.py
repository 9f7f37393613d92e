"""Videos whose pixels are the frame number, so that mixed-up frames, indices, times and labels show."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from cycleback.data import FrameCache, VideoRecord
from cycleback.video import FrameChunk

FAKE_FPS = 10.0


def fake_iter_frames(
    path: Path, *, size: tuple[int, int], chunk_frames: int = 4, fit: str = "stretch"
) -> Iterator[FrameChunk]:
    """Reads a text file "number of frames, first pixel value": frame i is filled with that value + i."""
    count, first = map(int, Path(path).read_text().split())
    for start in range(0, count, chunk_frames):
        numbers = np.arange(start, min(start + chunk_frames, count))
        frames = np.empty((len(numbers), *size, 3), np.uint8)
        frames[:] = (first + numbers)[:, None, None, None]
        yield FrameChunk(frames=frames, times=numbers / FAKE_FPS, start=start)


@pytest.fixture
def fake_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cycleback.data.cache.iter_frames", fake_iter_frames)


@pytest.fixture
def make_video(tmp_path: Path, fake_reader: None) -> Callable[..., VideoRecord]:
    """make_video("a", 12, first=100): a record of 12 frames with pixels 100, 101, …"""

    def make(name: str, num_frames: int, first: int = 0, **fields: object) -> VideoRecord:
        path = tmp_path / f"{name}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{num_frames} {first}")
        return VideoRecord(name=name, path=path, **fields)

    return make


@pytest.fixture
def cache(tmp_path: Path) -> FrameCache:
    return FrameCache(tmp_path / "cache", size=(2, 3))


@pytest.fixture
def write_images() -> Callable[..., Path]:
    """write_images(folder, ["1.png", "10.png"]): image i is filled with the number in its name."""
    from PIL import Image

    def write(folder: Path, names: list[str], size: tuple[int, int] = (4, 6)) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            value = int("".join(filter(str.isdigit, Path(name).stem)) or 0)
            Image.fromarray(np.full((*size, 3), value, np.uint8)).save(folder / name)
        return folder

    return write


@pytest.fixture
def touch_all() -> Callable[..., Path]:
    """touch_all(root, "a.mp4", "b/c.mov"): files with nothing in them that matters."""

    def touch(root: Path, *names: str) -> Path:
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(name.encode())
        return root

    return touch
