import csv

import numpy as np
import pytest

from cycleback.evaluation import event_error, phase_progression, time_only_embeddings


def test_time_only_is_the_frame_number_over_the_length(make_set):
    videos = make_set("ab")
    baseline = time_only_embeddings(videos)
    assert (baseline.size, baseline.encoder) == (1, "time-only")
    for name in videos:
        length = len(videos[name])
        np.testing.assert_allclose(baseline[name][:, 0], np.arange(length) / length, rtol=1e-6)


def test_time_only_keeps_the_labels(make_set):
    videos = make_set("ab", actions={"a": "pouring", "b": "pouring"})
    baseline = time_only_embeddings(videos)
    for name in videos:
        assert baseline.events(name) == videos.events(name)
        assert baseline.action(name) == "pouring"
        np.testing.assert_array_equal(baseline.phases(name), videos.phases(name))
        np.testing.assert_array_equal(baseline.times(name), videos.times(name))


def test_time_only_on_real_golf_swings_is_twelve_frames_off(shared_data):
    with (shared_data / "golf" / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = list(rows[0])[3:11]
    videos: dict[str, list] = {"train": [], "val": [], "val_slow": []}
    for row in rows:
        length = int(row["num_frames"])
        events = {name: int(row[name]) for name in names}
        videos[row["role"]].append((np.arange(length)[:, None] / length, events))
    error = event_error(*zip(*videos["val"], strict=True))
    assert (error.median_frames, error.count) == (12, 191 * 190 * 8)
    assert phase_progression(videos["train"], videos["val"]).value == pytest.approx(0.878, abs=5e-4)
