"""Repetitions: loops with a known period are counted and cut; what does not repeat has none."""

import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cycleback.applications import find_repetitions, write_clips
from cycleback.applications.repetitions import EQUAL_STREAMS, measure_dips
from cycleback.video import probe, read_frames, write_video

Floats = NDArray[np.float64]


def action(phases: Floats, *, size: int = 12, noise: float = 0.0, seed: int = 0) -> Floats:
    """Return the embeddings (N, D) of an action at phases (N,): a closed curve that does not meet itself."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * (phases % 1)[:, None]
    curve = np.concatenate([np.cos(k * angles) / k for k in (1, 2, 3)], axis=1)
    curve = np.concatenate([curve, *(np.sin(k * angles) / k for k in (1, 2, 3))], axis=1)
    mixed = curve @ rng.normal(size=(curve.shape[1], size))
    return mixed + noise * mixed.std() * rng.normal(size=mixed.shape)


def phase_errors(found: Floats, truth: Floats) -> Floats:
    """Return by how much phases differ from the true ones, apart from a constant, in repetitions."""
    turns = np.exp(2j * np.pi * (found - truth))
    return np.abs(np.angle(turns / turns.mean())) / (2 * np.pi)


@pytest.mark.parametrize(("count", "period"), [(2, 40), (3, 25), (10, 31), (40, 9)])
def test_even_repetitions_are_counted(count: int, period: int) -> None:
    times = np.arange(count * period) / 25
    found = find_repetitions(action(times * 25 / period, noise=0.2), times)
    assert found.count == count
    assert found.to_json()["period_s"] == pytest.approx(period / 25, rel=0.04)
    assert found.confidence > 0.6
    assert phase_errors(found.phases, times * 25 / period).mean() < 0.05
    assert [part.start for part in found.whole[1:]] == [part.stop for part in found.whole[:-1]]


def test_a_tempo_that_changes_is_followed() -> None:
    speeds = np.interp(np.arange(400), [0, 400], [1 / 25, 1 / 50])
    truth = np.cumsum(speeds)
    found = find_repetitions(action(truth, noise=0.3), np.arange(400) / 30)
    assert abs(found.count - truth[-1]) <= 1
    known = np.isfinite(found.phases)
    assert known.mean() > 0.95
    assert phase_errors(found.phases[known], truth[known]).mean() < 0.03
    assert np.nanmean(found.periods[-60:]) > 1.5 * np.nanmean(found.periods[:60])


def test_parts_of_repetitions_at_the_ends_are_told_but_not_counted() -> None:
    phases = np.arange(0.55, 6.2, 1 / 30)
    found = find_repetitions(action(phases))
    assert found.count == 5
    shown = sum(part.share for part in found.segments)
    assert shown == pytest.approx(5.65, abs=0.2)
    covered = sorted(frame for part in found.segments for frame in range(part.start, part.stop))
    assert covered == sorted(set(covered)), "parts overlap"
    assert [row["whole"] for row in found.rows("a")].count(1) == 5


def test_still_frames_before_and_after_are_no_repetitions() -> None:
    phases = np.concatenate([np.zeros(60), np.arange(0, 6, 1 / 30), np.zeros(60)])
    embeddings = action(phases) + 0.05 * np.random.default_rng(0).normal(size=(len(phases), 12))
    found = find_repetitions(embeddings)
    assert found.count in (5, 6, 7)
    inside = np.isfinite(found.phases)
    assert inside[75:225].all()
    assert not inside[:20].any() and not inside[-20:].any()


def test_two_bouts_with_a_rest_between_them_are_both_counted() -> None:
    rest = np.cumsum(np.random.default_rng(1).normal(size=(150, 12)), axis=0) / 6
    bout = action(np.arange(0, 5, 1 / 30), noise=0.05)
    found = find_repetitions(np.concatenate([bout, rest, bout]))
    assert 8 <= found.count <= 12
    assert np.isnan(found.phases[180:270]).mean() > 0.5


@pytest.mark.parametrize("seed", range(5))
def test_a_walk_that_never_returns_has_no_repetitions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = find_repetitions(np.cumsum(rng.normal(size=(200, 12)), axis=0))
    assert found.count == 0 and found.segments == () and found.confidence < 0.5
    assert np.isnan(found.phases).all() and np.isnan(found.periods).all()


@pytest.mark.parametrize("num_frames", [1, 2, 11, 12, 50])
def test_a_short_or_constant_video_has_no_repetitions(num_frames: int) -> None:
    found = find_repetitions(np.ones((num_frames, 3)), np.arange(num_frames) / 30)
    assert found.to_json() == {
        "count": 0,
        "confidence": 0.0,
        "period_s": None,
        "boundaries_s": [],
        "boundaries_frames": [],
    }
    assert found.rows() == []


def test_an_action_done_once_has_no_repetitions() -> None:
    assert find_repetitions(action(np.linspace(0, 0.98, 100), noise=0.1)).count == 0


def test_the_deepest_dip_is_at_the_period_and_not_at_its_multiples() -> None:
    periods, dips = measure_dips(action(np.arange(0, 12, 1 / 20)).astype(np.float32))
    assert periods[dips.mean(axis=1).argmax()] == pytest.approx(20, abs=1)


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must be \(N, D\) with at least one frame, got \(0, 3\)"):
        find_repetitions(np.empty((0, 3)))
    with pytest.raises(ValueError, match=r"times must be \(N=4,\), got \(3,\)"):
        find_repetitions(np.ones((4, 2)), np.arange(3))


def test_a_notebook_shows_the_table() -> None:
    html = find_repetitions(action(np.arange(0, 4, 1 / 20)))._repr_html_()
    assert html.startswith("<p>4 repetitions") and html.count("<tr>") >= 5


def test_each_clip_has_the_frames_of_its_repetition(tmp_path: Path) -> None:
    num_frames, period = 80, 20
    grey = np.arange(num_frames) * 3
    images = np.repeat(grey.astype(np.uint8)[:, None], 32 * 32 * 3, axis=1).reshape(-1, 32, 32, 3)
    video = write_video(tmp_path / "loop.mp4", images, fps=20)
    found = find_repetitions(action(np.arange(num_frames) / period), np.arange(num_frames) / 20)
    clips = write_clips(video, found, tmp_path / "takes")
    assert [clip.name for clip in clips] == [f"loop-{k:02d}.mp4" for k in range(1, 5)]
    for clip, part in zip(clips, found.whole, strict=True):
        assert probe(clip).num_frames == part.stop - part.start
        first = read_frames(clip, [0])[0]
        assert abs(float(first.mean()) - grey[part.start]) < 2


def test_real_repetitions_are_counted(shared_data: Path) -> None:
    from cycleback.runs import embed_videos

    folder = shared_data / "repetitions"
    if not folder.is_dir():
        pytest.skip(f"videos of repetitions are not here ({folder})")
    names = ("023_fitness", "086_kitchen", "093_core_strength")
    with (folder / "repetitions.csv").open() as file:
        labels = [row["video"] for row in csv.DictReader(file)]
    videos = embed_videos("pretrained", [folder / f"{name}.mp4" for name in names], streams=EQUAL_STREAMS)
    for name in names:
        found = find_repetitions(videos[name], videos.times(name))
        assert abs(found.count - labels.count(name)) <= 1
