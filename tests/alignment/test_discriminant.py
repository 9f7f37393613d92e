"""Videos that share one curve in two of twelve dimensions; the others differ from video to video."""

import numpy as np
import pytest

from cycleback.alignment import ALIGNED_AXES, align, discriminant_axes
from cycleback.alignment.distances import Floats

SIZE, SHARED = 12, 2


def make_videos(count: int, *, seed: int = 0, size: int = SIZE) -> tuple[list[Floats], list[Floats]]:
    """Return embeddings (N, D), and the progress (N,) of each frame."""
    rng = np.random.default_rng(seed)
    videos, progress = [], []
    for _ in range(count):
        time = np.linspace(0, 1, int(rng.integers(40, 70))) ** rng.uniform(0.6, 1.6)
        shared = np.stack([np.cos(3 * time), np.sin(3 * time)], axis=1)
        walk = rng.normal(size=(len(time), size - SHARED)).cumsum(axis=0)  # means nothing
        scene = 10 * rng.normal(size=size - SHARED)
        videos.append(np.concatenate([shared, (walk + scene) / (5 * np.sqrt(size))], axis=1))
        progress.append(time)
    return videos, progress


def mean_error(videos: list[Floats], progress: list[Floats]) -> float:
    """Progress by which the match of each frame of the first video with all others is off."""
    errors = [
        np.abs(other[align(videos[0], video).indices] - progress[0]).mean()
        for video, other in zip(videos[1:], progress[1:], strict=True)
    ]
    return float(np.mean(errors))


@pytest.mark.parametrize("size", [SIZE, 200])  # above 150, principal components come first
def test_videos_align_better_along_the_axes(size: int) -> None:
    videos, progress = make_videos(20, size=size)
    axes = discriminant_axes(videos)
    assert axes.shape == (size, min(size, 100))
    turned = [video @ axes[:, :ALIGNED_AXES] for video in videos]
    assert mean_error(turned, progress) < 0.7 * mean_error(videos, progress)


def test_the_first_axes_are_those_that_the_videos_share() -> None:
    videos, _ = make_videos(30)
    axes = discriminant_axes(videos)
    strength = np.abs(axes) / np.linalg.norm(axes, axis=0)
    assert (strength[:SHARED, :SHARED] ** 2).sum(axis=0).min() > 0.9


def test_the_alignment_along_all_axes_does_not_depend_on_the_units() -> None:
    """Fisher's discriminant is the same in every linear copy of the space, but for the shrinkage."""
    videos, _ = make_videos(60)
    twice = [2 * video + 7 for video in videos]
    assert np.abs(discriminant_axes(twice)) == pytest.approx(np.abs(discriminant_axes(videos)) / 2, rel=1e-4)


def test_axes_learned_from_a_few_videos_do_no_harm() -> None:
    for seed in range(5):
        videos, progress = make_videos(3, seed=seed)
        turned = [video @ discriminant_axes(videos) for video in videos]
        assert mean_error(turned, progress) < 1.1 * mean_error(videos, progress)


def test_equal_videos_have_nothing_to_tell_apart() -> None:
    video = make_videos(1)[0][0]
    assert np.array_equal(discriminant_axes([video, video, video]), np.eye(SIZE))
    assert np.array_equal(discriminant_axes([np.zeros((5, 3)), np.zeros((9, 3))]), np.eye(3))


def test_more_videos_than_are_used_and_long_ones_are_fine() -> None:
    videos = [np.random.default_rng(i).normal(size=(5 if i else 700, 3)) for i in range(150)]
    assert discriminant_axes(videos, max_axes=2).shape == (3, 2)


def test_one_video_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 videos, got 1"):
        discriminant_axes([np.zeros((4, 2))])
