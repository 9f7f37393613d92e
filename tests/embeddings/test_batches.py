from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cycleback.data import VideoRecord
from cycleback.embeddings.batches import batch_across_videos, batch_each_video

Videos = list[tuple[VideoRecord, NDArray[np.uint8]]]


def videos_of(*lengths: int) -> Videos:
    generator = np.random.default_rng(0)
    return [
        (
            VideoRecord(name=f"video{i}", path=Path(f"{i}.mp4")),
            generator.integers(0, 256, (length, 2, 3), "uint8"),
        )
        for i, length in enumerate(lengths)
    ]


def joined(batches) -> dict[str, NDArray[np.uint8]]:
    """The frames that were handed out, by video."""
    found: dict[str, list[NDArray[np.uint8]]] = {}
    for array, shares in batches:
        assert sum(share.frames for share in shares) == len(array)
        start = 0
        for share in shares:
            found.setdefault(share.record.name, []).append(array[start : start + share.frames].numpy())
            start += share.frames
    return {name: np.concatenate(parts) for name, parts in found.items()}


@pytest.mark.parametrize("make", [batch_each_video, batch_across_videos])
@pytest.mark.parametrize("lengths", [(5,), (3, 4, 1), (8, 8), (20, 1, 3, 9), (4,)])
def test_every_frame_is_in_one_batch_in_order(make, lengths: tuple[int, ...]) -> None:
    videos = videos_of(*lengths)
    found = joined(make(iter(videos), size=4))
    assert list(found) == [record.name for record, _ in videos]
    for record, array in videos:
        np.testing.assert_array_equal(found[record.name], array)


def test_batches_across_videos_are_full_but_for_the_last() -> None:
    sizes = [len(array) for array, _ in batch_across_videos(iter(videos_of(3, 4, 1, 6)), size=4)]
    assert sizes == [4, 4, 4, 2]


def test_batches_of_each_video_end_with_their_video() -> None:
    sizes = [len(array) for array, _ in batch_each_video(iter(videos_of(3, 9)), size=4)]
    assert sizes == [3, 4, 4, 1]


def test_no_videos_make_no_batch() -> None:
    assert list(batch_across_videos(iter([]))) == list(batch_each_video(iter([]))) == []
