import math
from pathlib import Path

import numpy as np
import pytest

from cycleback.data import phases_from_events
from cycleback.errors import DataError
from cycleback.prepare.phases import (
    PENN_ACTION,
    POURING,
    compare_counts,
    events_from_labels,
    find_events,
    stretch_labels,
)
from cycleback.prepare.writer import DatasetWriter

PHASES = [4, 3, 2, 3, 6, 3, 4, 2, 2, 2, 4, 3, 4]  # "Number of phases" of the paper's table, Penn Action


def test_events_make_the_papers_number_of_phases() -> None:
    assert [len(action.events) + 1 for action in PENN_ACTION.values()] == PHASES
    assert len(POURING.events) + 1 == 5


def test_counts_add_up_to_the_table() -> None:
    assert sum(action.train for action in PENN_ACTION.values()) == 1160
    assert sum(action.val for action in PENN_ACTION.values()) == 966


def test_counts_are_compared_both_ways(tmp_path: Path) -> None:
    writer = DatasetWriter(tmp_path)
    for number in range(230):
        writer.add(f"squat/{number}", split="train" if number < 113 else "val", events={})
    missing = compare_counts(writer, PENN_ACTION, ["squat"])
    assert missing == ["squat train: 113 of the paper's 114 videos"]
    assert writer.warnings[0].endswith("1 (squat val 117, paper 116)")


EVENTS = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    "labels", [[0, 0, 1, 1, 2, 3, 4, 4], [1, 1, 2], [0, 0, 3, 4], [0, 0], [4, 4], [0, 1, 2], [2, 4]]
)
def test_phases_of_the_events_are_exactly_the_labels(labels: list[int]) -> None:
    events = events_from_labels(labels, EVENTS)
    assert phases_from_events(list(events.values()), len(labels)).tolist() == labels


def test_event_is_the_first_frame_of_its_phase() -> None:
    assert events_from_labels([0, 0, 1, 2, 2, 3], EVENTS) == {"a": 2, "b": 3, "c": 5}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, 5], "label 5 at frame 2, expected 0 to 4"),
        ([0, -1], "label -1 at frame 1"),
        ([0, 2, 1], "labels decrease from 2 to 1 at frame 2"),
        ([0.5], "not integers"),
        ([[0]], r"labels are int64 \(1, 1\)"),
    ],
)
def test_labels_that_are_no_phases_in_order_are_refused(labels: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        events_from_labels(labels, EVENTS)


def test_more_labels_than_frames_are_thinned_as_carl_does() -> None:
    labels = np.arange(97)
    expected = [labels[math.floor(j * 97 / 30)] for j in range(30)]
    assert stretch_labels(labels, 30).tolist() == expected


def test_frames_that_carl_keeps_have_the_labels_that_carl_gives_them() -> None:
    stretched = stretch_labels(np.arange(30), 97)
    assert [stretched[math.floor(j * 97 / 30)] for j in range(30)] == list(range(30))
    assert len(stretched) == 97 and (np.diff(stretched) >= 0).all()


def test_unusable_labels_leave_the_video_unlabelled_with_a_warning(tmp_path: Path) -> None:
    writer = DatasetWriter(tmp_path)
    for video, labels in (("v1", None), ("v2", np.array([1, 0])), ("v3", np.empty(0))):
        assert find_events(video, labels, num_frames=2, events=EVENTS, writer=writer) == {}
    text = "\n".join(writer.warnings)
    assert "videos without frame labels: 1 (v1)" in text
    assert "v2: labels decrease from 1 to 0 at frame 1" in text and "v3: 0 labels, 2 frames" in text
