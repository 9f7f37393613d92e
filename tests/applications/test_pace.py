from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cycleback.applications.pace import (
    keep_own_pace,
    locate_videos,
    match_reference,
    match_seconds,
    smooth_pace,
    smooth_times,
)
from cycleback.data import Pin
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError, UserError


@pytest.fixture
def stairs() -> tuple[np.ndarray, np.ndarray]:
    """A map as DTW gives it: the true one, in steps of four frames."""
    seconds = np.arange(120) / 30
    true = 2 * seconds + 0.3 * np.sin(2 * seconds)
    return seconds, np.round(true * 30 / 4) * 4 / 30


@pytest.mark.parametrize("method", ["nearest", "dtw"])
def test_every_video_follows_the_pace_of_the_reference(embeddings: EmbeddingSet, method: str) -> None:
    slow, fast = match_reference(embeddings, ["slow", "fast"], reference="slow", method=method)
    assert slow.tolist() == list(range(20))
    assert np.abs(fast - np.linspace(0, 39, 20)).max() <= 1


def test_own_pace_holds_the_last_frame_of_a_shorter_video(embeddings: EmbeddingSet) -> None:
    slow, fast = keep_own_pace(embeddings, ["slow", "fast"])
    assert fast.tolist() == list(range(40))
    assert slow.tolist() == [*range(20), *[19] * 20]


def test_a_smoothed_map_rises_without_steps_and_stays_near(stairs: tuple[np.ndarray, np.ndarray]) -> None:
    seconds, raw = stairs
    smooth = smooth_times(seconds, raw, smoothing_s=0.15)
    assert (np.diff(smooth) >= 0).all()
    assert np.abs(smooth - raw).max() <= 4 / 30
    assert np.abs(np.diff(smooth, 2)).max() < 0.1 * np.abs(np.diff(raw, 2)).max()
    true = 2 * seconds + 0.3 * np.sin(2 * seconds)
    assert np.abs(smooth - true)[15:-15].max() < 0.5 * np.abs(raw - true).max()


def test_both_ends_stay_where_they_are(stairs: tuple[np.ndarray, np.ndarray]) -> None:
    seconds, raw = stairs
    smooth = smooth_times(seconds, raw, smoothing_s=0.3)
    assert (smooth[0], smooth[-1]) == pytest.approx((raw[0], raw[-1]))


def test_a_straight_map_stays_straight_at_uneven_times() -> None:
    seconds = np.cumsum(np.random.default_rng(0).choice([1 / 30, 1 / 15], 100))
    assert smooth_times(seconds, 2 * seconds, smoothing_s=0.1) == pytest.approx(2 * seconds, abs=0.02)


def test_any_map_becomes_one_that_never_falls() -> None:
    generator = np.random.default_rng(1)
    seconds = np.sort(generator.uniform(0, 5, 80))
    for _ in range(20):
        assert (np.diff(smooth_times(seconds, generator.uniform(0, 5, 80), smoothing_s=0.2)) >= 0).all()


@pytest.mark.parametrize("length", [1, 2, 3])
def test_the_shortest_maps_can_be_smoothed(length: int) -> None:
    seconds = np.arange(length) / 30
    assert smooth_times(seconds, seconds, smoothing_s=1.0) == pytest.approx(seconds)


def test_a_pace_counts_in_seconds_of_the_files(embeddings: EmbeddingSet) -> None:
    pace = smooth_pace(embeddings, ["slow", "fast"], reference="slow")
    assert pace.fps == pytest.approx(10)  # the set knows no times, so the files are asked
    assert pace.seconds == pytest.approx(np.arange(20) / 10)
    assert pace.positions[0] == pytest.approx(np.arange(20))
    assert pace.sources[1] == pytest.approx(np.linspace(0, 3.9, 20), abs=0.11)


def test_more_output_frames_lie_between_the_frames_of_the_reference(embeddings: EmbeddingSet) -> None:
    pace = smooth_pace(embeddings, ["slow", "fast"], reference="slow", fps=25)
    assert len(pace.seconds) == 1.9 * 25 // 1 + 1
    assert pace.positions[0][:4] == pytest.approx([0, 0.4, 0.8, 1.2])


def test_a_reference_of_variable_rate_plays_at_its_own_times() -> None:
    times = np.array([0, 0.1, 0.2, 0.9, 1.0])
    arrays = {"a": np.arange(5)[:, None], "b": np.arange(5)[:, None]}
    found = EmbeddingSet.from_arrays(arrays, times={"a": times, "b": times / 2})
    pace = smooth_pace(found, ["a", "b"], reference="a", fps=10)
    assert np.rint(pace.positions[0]).tolist() == [0, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4]
    assert pace.sources[0] == pytest.approx(pace.seconds)


def test_a_lead_in_is_cut_or_waited_for() -> None:
    rng = np.random.default_rng(0)
    film, lead = (np.cumsum(rng.normal(size=(frames, 16)), axis=0) * 0.2 for frames in (60, 20))
    arrays = {"short": film, "long": np.concatenate([lead + 3, film])}
    found = EmbeddingSet.from_arrays(arrays, fps=10)
    cut = smooth_pace(found, ["short", "long"], reference="short", smoothing_s=0)
    assert cut.sources[1] == pytest.approx(2 + cut.seconds, abs=0.15)
    assert cut.cuts[1] == pytest.approx((2.0, 0.0), abs=0.15) and cut.cuts[0] == (0, 0)
    held = smooth_pace(found, ["long", "short"], reference="long", smoothing_s=0)
    assert held.sources[1] == pytest.approx(np.maximum(held.seconds - 2, 0), abs=0.15)
    assert max(held.cuts[1]) == pytest.approx(0, abs=0.15)


def test_frames_left_out_of_both_play_at_full_pace() -> None:
    matched = np.array([False, False, True, True, True, False])
    positions = np.array([3.0, 3.0, 3.0, 4.5, 5.0, 5.0])
    found = SimpleNamespace(matched=matched, positions=positions)
    seconds = match_seconds(found, np.arange(6) / 10, np.arange(6) / 20)
    assert seconds == pytest.approx([0.0, 0.05, 0.15, 0.225, 0.25, 0.25])


def test_one_frame_is_a_pace(ramps: list[Path]) -> None:
    found = EmbeddingSet.from_arrays({"a": [[0.0]], "b": [[0.0], [1.0]]}, fps=10)
    pace = smooth_pace(found, ["a", "b"], reference="a")
    assert pace.positions.shape == (2, 1)
    assert smooth_pace(found, ["a", "b"], reference="b").positions[0].tolist() == [0, 0]


def test_a_video_that_moved_is_named(tmp_path: Path) -> None:
    found = EmbeddingSet.from_arrays({"a": [[0.0]]}, paths={"a": tmp_path / "gone.mp4"})
    with pytest.raises(EmbeddingError, match=r"the video of 'a' is not at .*gone\.mp4"):
        locate_videos(found, ["a"])


@pytest.fixture
def takes() -> EmbeddingSet:
    """Three takes of one action, 40, 60 and 50 frames at 10 per second."""
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(200, 8)), axis=0)
    pick = {"a": np.linspace(0, 199, 40), "b": np.linspace(0, 199, 60), "c": np.linspace(0, 199, 50)}
    return EmbeddingSet.from_arrays(
        {name: walk[np.rint(at).astype(int)] for name, at in pick.items()}, fps=10
    )


@pytest.mark.parametrize("method", ["auto", "dtw", "nearest"])
@pytest.mark.parametrize("smoothing_s", [0.0, 0.3])
def test_smoothing_does_not_move_a_pin(takes: EmbeddingSet, method: str, smoothing_s: float) -> None:
    pins = [Pin("a", 12, "b", 30), Pin("b.mp4", 50, "a", 30), Pin("a", 20, "c", 21)]
    names = ["a", "b", "c"]
    pace = smooth_pace(takes, names, reference="a", method=method, smoothing_s=smoothing_s, pins=pins)
    shown = {name: pace.positions[number] for number, name in enumerate(names)}
    assert (shown["b"][12], shown["b"][30], shown["c"][20]) == pytest.approx((30, 50, 21))
    assert all((np.diff(positions) >= 0).all() for positions in pace.positions)
    indices = dict(
        zip(names, match_reference(takes, names, reference="a", method=method, pins=pins), strict=True)
    )
    assert (indices["b"][12], indices["b"][30], indices["c"][20]) == (30, 50, 21)
    free = smooth_pace(takes, names, reference="a", method=method, smoothing_s=smoothing_s)
    assert abs(free.positions[1][12] - 30) > 5  # the pins are not what the matches say


def test_a_pin_between_two_videos_holds_at_the_pace_of_a_third(takes: EmbeddingSet) -> None:
    pins = [Pin("b", 20, "c", 30)]  # b alone says frame 13 of a, c alone frame 24
    pace = smooth_pace(takes, ["a", "b", "c"], reference="a", pins=pins)
    (together,) = np.flatnonzero(np.isclose(pace.positions[1], 20) & np.isclose(pace.positions[2], 30))
    free = smooth_pace(takes, ["a", "b", "c"], reference="a")
    alone = [np.abs(free.positions[1] - 20).argmin(), np.abs(free.positions[2] - 30).argmin()]
    assert together in alone


def test_pins_of_videos_that_are_not_shown_change_nothing(takes: EmbeddingSet) -> None:
    free, pinned = (
        smooth_pace(takes, ["a", "b"], reference="a", pins=pins) for pins in ([], [Pin("a", 20, "c", 21)])
    )
    np.testing.assert_array_equal(free.positions, pinned.positions)


def test_pins_that_cross_are_refused_with_the_names_of_the_videos(takes: EmbeddingSet) -> None:
    pins = [Pin("a", 12, "b", 30), Pin("b", 20, "a", 30)]
    with pytest.raises(UserError, match="pins 12:30 and 30:20 of a and b cross"):
        match_reference(takes, ["b"], reference="a", pins=pins)


@pytest.mark.parametrize("method", ["subsequence", "overlap"])
def test_an_action_inside_a_longer_video_plays_with_its_clip(method: str) -> None:
    rng = np.random.default_rng(0)
    action, away = np.cumsum(rng.normal(size=(40, 6)), axis=0), 60 + rng.normal(size=(50, 6))
    longer = np.concatenate([away, np.repeat(action, 2, axis=0), away])
    times = {"clip": np.arange(40) / 20, "longer": np.arange(180) / 40}  # seconds: at the same pace
    both = EmbeddingSet.from_arrays({"clip": action, "longer": longer}, times=times)
    pace = smooth_pace(both, ["clip", "longer"], reference="clip", method=method)  # type: ignore[arg-type]
    np.testing.assert_allclose(pace.sources[1], 50 / 40 + pace.sources[0], atol=2 / 40)
    assert pace.cuts[1] == pytest.approx((50 / 40, 50 / 40), abs=2 / 40)
