"""A small rendered data set with a split, and one comparison made of it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from comparison.quick import QUICK
from cycleback.comparison import Comparison, compare
from cycleback.progress import Progress
from cycleback.synth import write_dataset
from cycleback.video import read_frames, write_video

THIRD = 3


@pytest.fixture(scope="session")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven videos: three to learn from, two held out, two in a split of their own."""
    folder = tmp_path_factory.mktemp("comparison") / "videos"
    rows = []
    for video in write_dataset(folder, videos=7, seed=5, size=64, jobs=1):
        frames = read_frames(video.path, range(0, video.num_frames, THIRD))  # shorter videos, quicker tests
        write_video(video.path, frames, fps=video.fps / THIRD, overwrite=True)
        rows += [f"{video.name},{event},{frame // THIRD}" for event, frame in video.events.items()]
    (folder / "labels.csv").write_text("\n".join(["video,event,frame", *rows, ""]))
    splits = ["train"] * 3 + ["val"] * 2 + ["val_slow"] * 2
    rows = [f"pouring_{number:03d},{split}" for number, split in enumerate(splits)]
    (folder / "splits.csv").write_text("\n".join(["video,split", *rows, ""]))
    return folder


@pytest.fixture(scope="session")
def poses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sequences of vectors without labels."""
    folder = tmp_path_factory.mktemp("poses")
    for number in range(8):
        phase = np.linspace(0, 3, 40 + number)[:, None]
        np.savez(folder / f"clip_{number}.npz", features=np.sin(phase + np.arange(4)))
    return folder


@pytest.fixture(scope="session")
def frame_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("frames")


@pytest.fixture(scope="session")
def heard() -> list[str]:
    """What the comparison below told while it was made."""
    return []


@pytest.fixture(scope="session")
def made(
    tmp_path_factory: pytest.TempPathFactory, videos: Path, frame_cache: Path, heard: list[str]
) -> Comparison:
    def learning(method: str, total: int) -> Callable[[object], None]:
        return lambda report: heard.append(method)

    progress = Progress(
        on_stage=lambda done, total, name: heard.append(f"{done}/{total}"), on_training=learning
    )
    return compare(
        videos,
        tmp_path_factory.mktemp("made") / "out",
        methods=["tcc", "supervised"],
        overrides=QUICK,
        cache=frame_cache,
        command="cycleback compare …",
        progress=progress,
    )
