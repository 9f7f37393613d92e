from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from cycleback.data import (
    FrameCache,
    FrameStore,
    VideoRecord,
    context_indices,
    event_frames,
    phases_from_events,
)
from cycleback.data.sampling import random_sorted, times
from cycleback.errors import DataError

Make = Callable[..., VideoRecord]


@pytest.fixture(params=["mapped", "memory"])
def store(request: pytest.FixtureRequest, cache: FrameCache, make_video: Make) -> FrameStore:
    """Video a: 12 frames of 0, 1, …; video b: 9 frames of 100, 101, …"""
    records = [make_video("a", 12), make_video("b", 9, first=100)]
    return (
        FrameStore.mapped(cache, records)
        if request.param == "mapped"
        else FrameStore.resident(cache, records)
    )


def test_frames_of_a_video_are_a_view_of_all_of_it(store: FrameStore) -> None:
    assert store.names == ("a", "b") and store.num_frames("b") == 9 and store.nbytes == 21 * 2 * 3 * 3
    frames = store.frames("b")
    assert frames.dtype == torch.uint8 and frames.shape == (9, 2, 3, 3) and frames.device == store.device
    assert frames[:, 1, 1, 1].tolist() == list(range(100, 109))
    assert frames.data_ptr() == store.frames("b").data_ptr()
    np.testing.assert_allclose(store.times("b"), np.arange(9) / 10)


def test_clips_hold_the_asked_frames_of_the_asked_videos(store: FrameStore) -> None:
    indices = torch.tensor([[8, 0, 0], [11, 5, 2]])
    clips = store.clips(["b", "a"], indices)
    assert clips.shape == (2, 3, 3, 2, 3) and clips.dtype == torch.uint8
    assert clips[:, :, 0, 0, 0].tolist() == [[108, 100, 100], [11, 5, 2]]
    assert (clips == clips[:, :, :1, :1, :1]).all()


def test_frames_indices_times_and_labels_stay_together(store: FrameStore) -> None:
    record = VideoRecord("a", Path("a"), events={"late": 0.71, "early": 0.3}, unit="seconds")
    indices = random_sorted(12, 6, generator=torch.Generator().manual_seed(0))
    context = context_indices(indices, context_frames=2, context_stride=3)
    clips = store.clips(["a"], context[None])[0, :, :, 0, 0, 0]  # (T, C)
    assert clips[:, 1].tolist() == indices.tolist()
    assert clips[:, 0].tolist() == [max(0, index - 3) for index in indices.tolist()]
    assert (times(indices, 12) * 12).round().tolist() == clips[:, 1].tolist()
    phases = phases_from_events(list(event_frames(record, store.times("a")).values()), 12)
    assert phases[indices].tolist() == [(value >= 3) + (value >= 7) for value in clips[:, 1].tolist()]


def test_pixels_lie_channels_last_in_memory(store: FrameStore) -> None:
    clips = store.clips(["a", "b"], torch.zeros(2, 4, dtype=torch.int64))
    assert clips.flatten(0, 1).is_contiguous(memory_format=torch.channels_last)


def test_wrong_frames_are_refused(store: FrameStore) -> None:
    with pytest.raises(IndexError, match="b has 9 frames, asked for 0 to 9"):
        store.clips(["a", "b"], torch.tensor([[11, 0], [9, 0]]))
    with pytest.raises(IndexError, match="a has 12 frames, asked for -1 to 3"):
        store.clips(["a"], torch.tensor([[-1, 3]]))
    with pytest.raises(ValueError, match=r"indices must be \(2, \.\.\.\) for 2 videos, got \(3, 1\)"):
        store.clips(["a", "b"], torch.zeros(3, 1, dtype=torch.int64))


@pytest.fixture
def sequences(tmp_path: Path) -> list[VideoRecord]:
    for name, length in (("x", 4), ("y", 6)):
        np.savez(tmp_path / f"{name}.npz", features=np.arange(length * 2).reshape(length, 2) / 8)
    return [VideoRecord(name, tmp_path / f"{name}.npz", kind="sequence") for name in "xy"]


@pytest.mark.parametrize("build", [FrameStore.mapped, FrameStore.resident])
def test_sequences_are_held_the_same_way(
    build: Callable, cache: FrameCache, sequences: list[VideoRecord]
) -> None:
    clips = build(cache, sequences).clips(["y", "x"], torch.tensor([[5], [3]]))
    assert clips.dtype == torch.float32
    assert clips.tolist() == [[[10 / 8, 11 / 8]], [[6 / 8, 7 / 8]]]


def test_pictures_and_sequences_do_not_mix(
    cache: FrameCache, sequences: list[VideoRecord], make_video: Make
) -> None:
    with pytest.raises(
        DataError, match=r"x has torch\.float32 frames of \(2,\), but a has torch\.uint8 of \(2, 3, 3\)"
    ):
        FrameStore.mapped(cache, [make_video("a", 3), *sequences])
    with pytest.raises(DataError, match="no videos to hold"):
        FrameStore.mapped(cache, [])


def test_more_than_the_memory_holds_is_an_error(
    cache: FrameCache, make_video: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cycleback.data.store._memory_bytes", lambda: 200.0)
    with pytest.raises(
        DataError, match=r"0\.0 GiB of frames do not fit into the memory of cpu\. Keep them on disk"
    ):
        FrameStore.resident(cache, [make_video("a", 12)])
    assert FrameStore.mapped(cache, [make_video("a", 12)]).num_frames("a") == 12


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_frames_may_live_on_the_device(cache: FrameCache, make_video: Make) -> None:
    store = FrameStore.resident(cache, [make_video("a", 12), make_video("b", 9, first=100)], device="cuda")
    clips = store.clips(["b", "a"], torch.tensor([[8, 0], [11, 5]]))
    assert clips.device.type == "cuda" and clips[:, :, 0, 0, 0].tolist() == [[108, 100], [11, 5]]
