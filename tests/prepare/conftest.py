"""Small data sets as they are distributed."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from prepare.formats import example_bytes, jpeg, record_bytes


@pytest.fixture
def write_shard(tmp_path: Path) -> Callable[..., Path]:
    """Writes one Pouring shard of clips (name, labels or None); the images number as the labels."""

    def write(shard: str, *clips: tuple[str, list[int] | None], frames: int | None = None) -> Path:
        folder = tmp_path / "pouring_tfrecords"
        folder.mkdir(exist_ok=True)
        records = []
        for name, labels in clips:
            images = [jpeg(20 * index) for index in range(frames or len(labels or [0, 0]))]
            records.append(record_bytes(example_bytes(name, images, labels)))
        path = folder / f"{shard}.tfrecord"
        path.write_bytes(b"".join(records))
        return path

    return write


@pytest.fixture
def write_penn(tmp_path: Path) -> Callable[..., Path]:
    """Writes one video of Penn Action, images and annotation, and returns the folder of the data set."""
    from scipy.io import savemat

    def write(video_id: str, action: str, *, frames: int, train: int, annotated: int | None = None) -> Path:
        root = tmp_path / "Penn_Action"
        images = root / "frames" / video_id
        images.mkdir(parents=True)
        (root / "labels").mkdir(exist_ok=True)
        for number in range(1, frames + 1):
            (images / f"{number:06d}.jpg").write_bytes(jpeg(number))
        count = annotated or frames
        pose = {"x": np.ones((count, 13)), "y": np.ones((count, 13)), "visibility": np.ones((count, 13))}
        fields = {
            "action": action,
            "nframes": count,
            "train": train,
            "pose": "back",
            "bbox": np.ones((count, 4)),
        }
        savemat(
            root / "labels" / f"{video_id}.mat", fields | pose | {"dimensions": np.array([270, 480, count])}
        )
        return root

    return write


@pytest.fixture
def penn_labels(tmp_path: Path) -> Callable[..., Path]:
    """Writes one .npy of frame labels and returns the folder of them all."""

    def write(split: str, action: str, video_id: str, labels: Sequence[int]) -> Path:
        folder = tmp_path / "penn_action_labels" / split / action
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"{video_id}.npy", np.array(labels))
        return tmp_path / "penn_action_labels"

    return write
