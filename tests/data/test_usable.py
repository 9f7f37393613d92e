"""Videos of a folder that cannot be used are left out with a line each; too many of them are an error."""

from pathlib import Path

import numpy as np
import pytest

from cycleback.data import FrameCache, VideoRecord
from cycleback.data.usable import keep_trainable, keep_usable
from cycleback.errors import DataError, VideoError
from cycleback.video import write_video


@pytest.fixture
def clips(tmp_path: Path) -> list[VideoRecord]:
    """Four good clips, one of a single frame, and one that is no video."""
    rng = np.random.default_rng(0)
    for number, count in enumerate((6, 6, 6, 6, 1)):
        frames = rng.integers(0, 255, (count, 32, 32, 3), dtype=np.uint8)
        write_video(tmp_path / f"v{number}.mp4", frames, fps=10)
    (tmp_path / "v5.mp4").write_bytes(b"no video")
    return [VideoRecord(f"v{number}", tmp_path / f"v{number}.mp4") for number in range(6)]


def names(records: list[VideoRecord]) -> list[str]:
    return [record.name for record in records]


def test_a_broken_video_is_left_out_and_named(clips: list[VideoRecord]) -> None:
    with pytest.warns(UserWarning, match=r"left out v5: .*v5\.mp4 is not a video") as told:
        assert names(keep_usable(clips)) == ["v0", "v1", "v2", "v3", "v4"]
    assert len(told) == 1


def test_a_video_of_one_frame_is_too_short_to_learn_from(clips: list[VideoRecord]) -> None:
    with pytest.warns(UserWarning, match="left out v4: it has 1 frame; a training video needs at least 2"):
        assert names(keep_trainable(clips[:5])) == ["v0", "v1", "v2", "v3"]


def test_more_than_half_or_too_few_left_is_an_error(clips: list[VideoRecord]) -> None:
    with pytest.raises(DataError, match=r"2 of 3 videos cannot be used\. v4: it has 1 frame"):
        keep_trainable(clips[3:])
    with pytest.raises(DataError, match=r"1 of 2 videos cannot be used\. v5: .*is not a video"):
        keep_trainable([clips[0], clips[5]])
    with pytest.raises(VideoError, match="is not a video"):
        keep_usable(clips[5:])


def test_sequences_that_are_not_finite_or_no_sequences_are_left_out(tmp_path: Path) -> None:
    for number in range(4):
        np.savez(tmp_path / f"s{number}.npz", features=np.full((9, 2), np.nan if number == 1 else 0.5))
    (tmp_path / "s4.npz").write_bytes(b"no archive")
    records = [VideoRecord(f"s{n}", tmp_path / f"s{n}.npz", "sequence") for n in range(5)]
    with pytest.warns(UserWarning, match="left out") as told:
        assert names(keep_trainable(records)) == ["s0", "s2", "s3"]
    assert "s1.npz: 9 of 9 frames contain NaN or infinity (first: 0)" in str(told[0].message)
    assert "left out s4: cannot read" in str(told[1].message)


def test_a_video_in_the_cache_is_not_opened(
    clips: list[VideoRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = FrameCache(clips[0].path.parent / "cache", size=(32, 32))
    cache.fill(clips[:5])
    monkeypatch.setattr("cycleback.data.usable.iter_frames", None)
    assert keep_usable(clips[:5], cache=cache) == clips[:5]
    with pytest.warns(UserWarning, match="left out v4: it has 1 frame"):
        assert names(keep_trainable(clips[:5], cache=cache)) == ["v0", "v1", "v2", "v3"]
