import numpy as np
import pytest
from scipy import stats

from cycleback.alignment import align
from cycleback.applications.anomalies import (
    AnomalyModel,
    AnomalyReport,
    AnomalyScores,
    find_anomalies,
    find_spans,
    find_threshold,
    fit_anomaly_model,
    flag_frames,
    running_mean,
)
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError

QUIET = np.zeros(50)
OWN = [np.linspace(-1, 1 + 0.1 * k, 50) for k in range(10)]


def scored(scores: np.ndarray, *, false_alarms: float = 0.1) -> AnomalyScores:
    places = np.zeros((len(scores), 2), dtype=np.int64)
    return AnomalyScores.calibrate(
        scores, OWN, progress=np.linspace(0, 1, 50), matches=places, false_alarms=false_alarms
    )


def test_a_quiet_take_is_typical_and_has_no_span() -> None:
    found = scored(QUIET)
    assert (found.verdict, found.spans, found.flagged.any()) == ("typical", (), False)


def test_a_take_is_odd_when_its_peak_is_above_those_of_good_takes() -> None:
    take = QUIET.copy()
    take[20:25] = 1.95
    assert scored(take).verdict == "something differs"
    assert scored(take).spans == ((20, 24),)
    logs = np.log1p([own.max() for own in OWN])
    bound = logs.mean() + stats.t.ppf(0.99, 9) * np.sqrt(logs.var(ddof=1) * 1.1)  # for the next of 11 takes
    assert scored(take, false_alarms=0.01).peak_threshold == pytest.approx(np.expm1(bound))


def test_a_take_that_is_far_everywhere_is_another_action() -> None:
    assert scored(QUIET + 5).verdict == "looks like another action"
    gone_wrong = QUIET + 5
    gone_wrong[:10] = -0.5  # it began well
    assert scored(gone_wrong).verdict == "something differs"


def test_rows_say_video_frame_seconds_score_and_flag() -> None:
    take = QUIET.copy()
    take[20:25] = 4.0
    videos = EmbeddingSet.from_arrays({"a": np.zeros((50, 1))}, fps=10)
    report = AnomalyReport(videos, videos, {"a": scored(take)})
    rows = report.rows()
    assert rows[22] == {"video": "a", "frame": 22, "seconds": 2.2, "score": 4.0, "flagged": 1} | {
        "kind": "different path"
    }
    assert sum(row["flagged"] for row in rows) == 5
    assert (report.oddest, report.to_json()["a"]["spans"]) == ("a", [[20, 24]])


def test_videos_are_scored_by_good_takes_of_the_same_encoder_and_action() -> None:
    good = EmbeddingSet.from_arrays({f"good_{k}": trajectory(k) for k in range(6)}, encoder="x")
    spoiled = trajectory(100)
    spoiled[20:31, 0] += 3.0
    report = find_anomalies(EmbeddingSet.from_arrays({"new": spoiled}, encoder="x"), good)
    expected = fit_anomaly_model(good).score(spoiled)
    assert report.scores["new"].scores == pytest.approx(expected.scores)
    with pytest.raises(EmbeddingError, match="the good takes by x, the videos by y"):
        find_anomalies(EmbeddingSet.from_arrays({"new": spoiled}, encoder="y"), good)


def trajectory(seed: int, *, noise: float = 0.05) -> np.ndarray:
    """A take (N, 3) along a helix that never comes back, at a pace of its own."""
    rng = np.random.default_rng(seed)
    steps = rng.uniform(0.3, 1.7, size=rng.integers(60, 90))
    clock = np.cumsum(steps) / steps.sum()
    line = np.stack([np.sin(4 * clock), np.cos(4 * clock), 3 * clock], axis=1)
    return line + noise * rng.normal(size=line.shape)


def good_set(count: int = 8) -> EmbeddingSet:
    return EmbeddingSet.from_arrays({f"good_{k}": trajectory(k) for k in range(count)})


@pytest.fixture(scope="module")
def model() -> AnomalyModel:
    return fit_anomaly_model(good_set())


def test_the_span_that_leaves_the_way_is_found(model: AnomalyModel) -> None:
    take = trajectory(100)
    take[20:31, 0] += 3.0
    found = model.score(take)
    assert found.verdict == "something differs"
    assert 20 <= found.peak <= 30
    assert any(first <= 21 and last >= 29 for first, last in found.spans)
    assert not found.flagged[:15].any()


def test_a_new_good_take_is_typical(model: AnomalyModel) -> None:
    verdicts = [model.score(trajectory(seed)).verdict for seed in range(200, 210)]
    assert verdicts.count("typical") >= 8


def test_good_frames_are_flagged_as_often_as_stated(model: AnomalyModel) -> None:
    for share in (0.05, 0.2):
        scored = [model.score(trajectory(seed), false_alarms=share) for seed in range(300, 320)]
        assert np.concatenate([found.flagged for found in scored]).mean() < 2 * share


def test_order_counts_so_an_early_pose_in_the_middle_is_odd(model: AnomalyModel) -> None:
    take = trajectory(101, noise=0.02)
    detour = np.concatenate([take[:35], take[34:4:-1], take[5:]])  # back to the start, and again
    found = model.score(detour)
    assert found.verdict == "something differs"
    assert found.flagged[35:65].any()


def test_another_action_is_called_so(model: AnomalyModel) -> None:
    elsewhere = trajectory(102) * [1, -1, -1] + 4
    assert model.score(elsewhere).verdict == "looks like another action"


def test_scores_equal_a_loop_over_takes_before_smoothing(model: AnomalyModel) -> None:
    take = trajectory(103)
    view, rows = model.views[0], []
    for other in view.takes:
        path = align(take, other).path
        pairs = ((take[path[:, 0]] - other[path[:, 1]]) ** 2).sum(axis=1)
        rows.append([pairs[path[:, 0] == frame].min() for frame in range(len(take))])
    distances = np.sort(rows, axis=0)[:3].mean(axis=0)
    progress = model.score(take).progress
    expected = np.interp(progress, (np.arange(20) + 0.5) / 20, view.expected)
    smooth = np.convolve(np.pad((distances / expected - 1) / view.spread, 2, mode="edge"), np.ones(5) / 5)
    assert model.score(take).scores == pytest.approx(smooth[4:-4], rel=1e-4)


def test_good_takes_score_zero_on_average_with_spread_one(model: AnomalyModel) -> None:
    own = np.concatenate(model.own_scores)
    assert abs(own.mean()) < 0.1
    assert 0.3 < own.std() < 1.1  # smoothing takes some of it


def test_matches_name_a_frame_of_a_good_take(model: AnomalyModel) -> None:
    takes = model.views[0].takes
    matches = model.score(trajectory(104)).matches
    assert all(frame < len(takes[take]) for take, frame in matches)


def test_a_second_view_sees_what_the_first_ignores() -> None:
    first = good_set()
    colour = {name: np.full((len(first[name]), 2), 0.1 * k) for k, name in enumerate(first.names)}
    both = fit_anomaly_model(first, EmbeddingSet.from_arrays(colour))
    take = trajectory(105)
    looks = np.full((len(take), 2), 0.3)
    looks[30:40] += 5
    assert not fit_anomaly_model(first).score(take).flagged[30:40].all()
    assert both.score(take, looks).flagged[31:39].all()


def test_too_few_good_takes_are_refused() -> None:
    with pytest.raises(EmbeddingError, match="4 good takes cannot say what is typical: give at least 5"):
        fit_anomaly_model(good_set(4))


def test_copies_of_one_take_are_refused() -> None:
    with pytest.raises(EmbeddingError, match="all the same video"):
        fit_anomaly_model(EmbeddingSet.from_arrays({f"v{k}": trajectory(0) for k in range(5)}))


def test_views_of_different_takes_are_refused() -> None:
    with pytest.raises(EmbeddingError, match="same good takes"):
        fit_anomaly_model(good_set(6), good_set(7))


def test_a_video_of_one_frame_or_another_size_is_refused(model: AnomalyModel) -> None:
    with pytest.raises(EmbeddingError, match="at least 2 frames to be compared, got 1"):
        model.score(np.zeros((1, 3)))
    with pytest.raises(EmbeddingError, match="embeddings of size 2, the good takes 3"):
        model.score(np.zeros((9, 2)))
    with pytest.raises(ValueError, match="need embeddings for 1 views, got 2"):
        model.score(trajectory(0), trajectory(0))
    with pytest.raises(ValueError, match="between 0 and 1, got 1"):
        model.score(trajectory(0), false_alarms=1)


def test_short_gaps_are_closed_and_short_spans_dropped() -> None:
    curve = np.zeros(40)
    curve[[5, 6, 7, 11, 12]] = 2.0  # a gap of three frames
    curve[[30, 31]] = 2.0
    assert find_spans(curve, 1.0) == [(5, 12)]
    assert find_spans(curve, 2.0) == []


def test_spans_reach_both_ends() -> None:
    assert find_spans(np.ones(4), 0.5) == [(0, 3)]


def test_flags_cover_the_spans_and_nothing_else() -> None:
    assert np.flatnonzero(flag_frames([(1, 2), (4, 4)], 6)).tolist() == [1, 2, 4]


def test_smoothing_is_the_mean_around_each_frame_and_keeps_the_length() -> None:
    curve = np.random.default_rng(0).normal(size=30)
    expected = [np.pad(curve, 2, mode="edge")[i : i + 5].mean() for i in range(30)]
    assert running_mean(curve, window=5) == pytest.approx(expected)


@pytest.mark.parametrize("share", [0.02, 0.05, 0.2])
def test_the_threshold_flags_no_more_than_the_share_asked_for(share: float) -> None:
    rng = np.random.default_rng(1)
    curves = [running_mean(rng.normal(size=200), window=9) for _ in range(8)]
    threshold = find_threshold(curves, share)
    flagged = np.mean([flag_frames(find_spans(c, threshold), 200).mean() for c in curves])
    assert 0.4 * share < flagged <= share


def test_equal_scores_raise_no_alarm() -> None:
    assert find_spans(np.ones(9), find_threshold([np.ones(9)] * 3, 0.05)) == []
