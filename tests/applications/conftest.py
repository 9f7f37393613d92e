"""Two flat-coloured videos whose brightness is the frame number, and embeddings that know the true match."""

from pathlib import Path

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.video import Audio, write_video


def write_ramp(path: Path, num_frames: int, *, audio: Audio | None = None) -> Path:
    """A grey video whose frame i is about 20 + 4 i bright."""
    frames = (np.full((32, 48, 3), 20 + 4 * i, np.uint8) for i in range(num_frames))
    return write_video(path, frames, fps=10, audio=audio, crf=1)


@pytest.fixture(scope="session")
def ramps(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("ramps")
    tone = np.sin(np.arange(16000 * 2) * 0.3).astype(np.float32)[None] * 0.5
    first = write_ramp(folder / "slow.mp4", 20, audio=Audio(tone, 16000))
    return [first, write_ramp(folder / "fast.mp4", 40)]


@pytest.fixture(scope="session")
def embeddings(ramps: list[Path]) -> EmbeddingSet:
    """`fast` runs at twice the pace of `slow`: frame i of slow is frame 2 i of fast."""
    arrays = {
        "slow": np.linspace(0, 1, 20, dtype=np.float32)[:, None],
        "fast": np.linspace(0, 1, 40, dtype=np.float32)[:, None],
    }
    return EmbeddingSet.from_arrays(arrays, paths={path.stem: str(path) for path in ramps})
