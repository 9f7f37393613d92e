from pathlib import Path

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError
from cycleback.runs.cells import embed_cells, has_videos
from cycleback.video import write_video


def test_cells_follow_videos_and_parts_of_videos(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 255, size=(1, 64, 64, 3)).repeat(20, axis=0).astype(np.uint8)
    frames[8:, 40:56, 8:24] = 200  # appears at the lower left, and stays
    path = write_video(tmp_path / "a.mp4", list(frames), fps=30)
    videos = EmbeddingSet.from_arrays({"a": rng.normal(size=(20, 2))}, paths={"a": path}, fps=30)
    whole = embed_cells(videos, cache=tmp_path / "cache")
    assert whole.keys() == {"appearance", "change", "motion"}
    assert {stream: own["a"].shape for stream, own in whole.items()} == {
        "appearance": (20, 49 * 32),
        "change": (20, 49),
        "motion": (20, 64 * 4),
    }
    new = whole["change"]["a"].reshape(20, 7, 7)
    assert np.unravel_index(new[15].argmax(), (7, 7))[0] >= 4 and new[15, 4:, :3].mean() > new[15].mean()
    assert new[2].max() < 0.5 * new[15].max()
    part = embed_cells(videos.cut({"a#2": ("a", 10, 20)}), cache=tmp_path / "cache")
    np.testing.assert_allclose(part["motion"]["a#2"][4:], whole["motion"]["a"][14:], atol=0.05)
    assert np.abs(part["appearance"]["a#2"]).max() < np.abs(whole["appearance"]["a"][10:]).max() / 2


def test_embeddings_without_their_videos_have_no_cells(tmp_path: Path) -> None:
    videos = EmbeddingSet.from_arrays({"a": np.ones((3, 2))}, paths={"a": tmp_path / "gone.mp4"})
    assert not has_videos(videos)
    with pytest.raises(EmbeddingError, match="the videos that were embedded are not there"):
        embed_cells(videos)
