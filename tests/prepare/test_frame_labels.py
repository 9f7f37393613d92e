import math

import numpy as np
import pytest

from cycleback.data import phases_from_events
from cycleback.errors import DataError
from cycleback.prepare.findings import Findings
from cycleback.prepare.frame_labels import events_from_labels, labelled_events, stretch_labels

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
        ([0, 2, 1], "labels fall from 2 to 1 at frame 2"),
        ([0.5], "not whole numbers"),
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


def test_unusable_labels_leave_the_video_unlabelled_with_a_warning() -> None:
    warnings = Findings()
    for video, labels in (("v1", None), ("v2", np.array([1, 0])), ("v3", np.empty(0))):
        assert labelled_events(video, labels, num_frames=2, events=EVENTS, warnings=warnings) == {}
    text = "\n".join(warnings.lines())
    assert "videos without frame labels: 1 (v1)" in text
    assert "v2: labels fall from 1 to 0 at frame 1" in text and "v3: 0 labels, 2 frames" in text
