from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cycleback.data import VideoRecord
from cycleback.embeddings.passes import shared_passes, single_passes

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


def joined(passes) -> dict[str, NDArray[np.uint8]]:
    """The frames that were handed out, by video."""
    found: dict[str, list[NDArray[np.uint8]]] = {}
    for array, shares in passes:
        assert sum(share.frames for share in shares) == len(array)
        start = 0
        for share in shares:
            found.setdefault(share.record.name, []).append(array[start : start + share.frames].numpy())
            start += share.frames
    return {name: np.concatenate(parts) for name, parts in found.items()}


@pytest.mark.parametrize("make", [single_passes, shared_passes])
@pytest.mark.parametrize("lengths", [(5,), (3, 4, 1), (8, 8), (20, 1, 3, 9), (4,)])
def test_every_frame_is_in_one_pass_in_order(make, lengths: tuple[int, ...]) -> None:
    videos = videos_of(*lengths)
    found = joined(make(iter(videos), size=4))
    assert list(found) == [record.name for record, _ in videos]
    for record, array in videos:
        np.testing.assert_array_equal(found[record.name], array)


def test_shared_passes_are_full_but_for_the_last() -> None:
    sizes = [len(array) for array, _ in shared_passes(iter(videos_of(3, 4, 1, 6)), size=4)]
    assert sizes == [4, 4, 4, 2]


def test_single_passes_end_with_their_video() -> None:
    sizes = [len(array) for array, _ in single_passes(iter(videos_of(3, 9)), size=4)]
    assert sizes == [3, 4, 4, 1]


def test_no_videos_make_no_pass() -> None:
    assert list(shared_passes(iter([]))) == list(single_passes(iter([]))) == []
