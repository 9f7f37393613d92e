"""Videos are curves in time at their own pace, so which streams agree and which are mirrored is known."""

import numpy as np
import pytest

from cycleback.embeddings.stream_choice import MAX_PAIRS, find_mirrored, weigh_streams
from cycleback.models.streams import SCALES, normalize_video, smooth_over_time


def action(pace: float, *, seed: int = 0, size: int = 12) -> np.ndarray:
    """One action (N, size), done slower in the middle the higher the pace."""
    draw = np.random.default_rng(seed)
    rates, phases = draw.uniform(0.5, 2, size), draw.uniform(0, 6, size)
    seconds = np.linspace(0, 1, round(60 * pace))[:, None] ** pace
    return normalize_video(np.sin(2 * np.pi * rates * seconds + phases))


def noise(frames: int, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=(frames, 100)).astype(np.float32)
    return normalize_video(smooth_over_time(values, 2.0))


@pytest.mark.parametrize("count", [2, 3, 7, 30])
def test_a_stream_of_noise_is_left_out_and_one_of_the_action_counts(count: int) -> None:
    paces = np.linspace(0.7, 1.4, count)
    videos = [{"motion": action(pace), "pose": noise(round(60 * pace), u)} for u, pace in enumerate(paces)]
    weights = weigh_streams(videos)
    assert weights["motion"] == SCALES["motion"]
    assert weights["pose"] < 0.3 * SCALES["pose"]


def test_a_stream_that_most_videos_lack_is_left_out() -> None:
    silent = np.zeros((60, 12), dtype=np.float32)
    videos = [{"motion": action(1.0), "pose": silent}] * 2 + [{"motion": silent, "pose": action(1.0)}]
    assert weigh_streams(videos)["pose"] == 0


def test_where_nothing_agrees_or_nothing_can_be_compared_streams_keep_their_scales() -> None:
    assert weigh_streams([{"motion": noise(60, 0), "pose": noise(60, 1)}]) == {"motion": 1.0, "pose": 0.5}
    strangers = [{"motion": noise(60, 0)}, {"motion": noise(60, 1)}]
    assert weigh_streams(strangers)["motion"] > 0
    assert MAX_PAIRS < 30 * 29


def test_mirrored_videos_are_found_and_the_smaller_part_is_turned() -> None:
    paces = np.linspace(0.8, 1.3, 9)
    sides = [(action(pace), action(pace, seed=1)) for pace in paces]
    truth = [number in (1, 4, 8) for number in range(9)]
    videos = [side[::-1] if turned else side for side, turned in zip(sides, truth, strict=True)]
    assert find_mirrored(videos) == truth
    assert find_mirrored([(b, a) for a, b in videos]) == truth  # the names of the sides are arbitrary


@pytest.mark.parametrize(
    "truth",
    [
        [False, True],
        [False, True, False],
        [True, False, False],
        [False, False, True, True],
        [False, True, True, False, True, False],
    ],
)
def test_few_videos_are_enough_and_the_first_stays_where_the_parts_are_equal(truth: list[bool]) -> None:
    sides = [(action(pace), action(pace, seed=1)) for pace in np.linspace(0.8, 1.3, len(truth))]
    videos = [side[::-1] if turned else side for side, turned in zip(sides, truth, strict=True)]
    assert find_mirrored(videos) == truth


def test_references_decide_which_side_is_mirrored() -> None:
    one, other = action(1.0), action(1.0, seed=1)
    references = [action(1.2), action(0.8)]
    assert find_mirrored([(one, other), (other, one)], references=references) == [False, True]


def test_a_video_that_looks_the_same_from_both_sides_is_left_as_it_is() -> None:
    same = [(action(pace), action(pace)) for pace in (0.9, 1.0, 1.1)]
    assert find_mirrored(same) == [False, False, False]
