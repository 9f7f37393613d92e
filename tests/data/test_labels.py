from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycleback.data import Label, VideoRecord, event_frames, phases_from_events, read_labels, write_labels
from cycleback.data.labels import collect_events, event_order, nearest_frame
from cycleback.errors import DataError


def record(unit: str = "frame", **events: float) -> VideoRecord:
    return VideoRecord("v", Path("v.mp4"), events=events, unit=unit)


@pytest.mark.parametrize(("unit", "values"), [("frame", (3, 17)), ("seconds", (0.125, 2.5))])
def test_labels_come_back_as_they_were_written(
    tmp_path: Path, unit: str, values: tuple[float, float]
) -> None:
    events = {"a": {"late, or not": values[1], "early": values[0]}, "b/c": {"early": values[0]}}
    labels = read_labels(write_labels(tmp_path / "labels.csv", events, unit=unit))
    assert [(label.video, label.event, label.value, label.unit) for label in labels] == [
        ("a", "early", values[0], unit),
        ("a", "late, or not", values[1], unit),
        ("b/c", "early", values[0], unit),
    ]
    assert labels[1].source.endswith("labels.csv, line 3")


def test_frames_count_where_both_columns_are_there(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("video,seconds,frame,event\na,0:05,15,x\nb,0.5,,x\n")
    first, second = read_labels(tmp_path / "l.csv")
    assert (first.value, first.unit) == (15, "frame")
    assert (second.value, second.unit) == (0.5, "seconds")


def test_columns_that_are_not_used_may_hold_anything(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("Golf labels\nvideo;event;frame;confidence\na;x;3;high\n")
    (label,) = read_labels(tmp_path / "l.csv")
    assert (label.event, label.value, label.source) == ("x", 3, f"{tmp_path / 'l.csv'}, line 3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("video,event,frame\na,x,3.5\n", r'labels\.csv, line 2, frame: expected a whole number, got "3\.5"'),
        ("video,event,frame\na,x,\n", r"line 2: no frame and no seconds, only video,event,frame"),
        ("video,event,seconds\na,x,1:05\n", r'line 2, seconds: expected a number, got "1:05"'),
        ("video,event,seconds\na,x,nan\n", r'line 2, seconds: expected a number, got "nan"'),
        ("video,event\na,x\n", r"line 2: no frame and no seconds, only video,event\. Expected columns"),
        ("video,event,frame\na,,3\n", r'line 2, event: expected a text, got ""'),
        ("name,event,frame\na,x,3\n", r"no column 'video'"),
    ],
)
def test_a_row_that_makes_no_sense_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_labels(tmp_path / "labels.csv")


def test_the_first_of_two_labels_counts_and_units_do_not_mix() -> None:
    rows = [Label("v", "x", 9), Label("v", "y", 4), Label("v", "x", 2)]
    assert collect_events(rows) == ({"y": 4, "x": 9}, "frame")
    with pytest.raises(
        DataError, match=r"v has labels in frames and in seconds \(one, line 1; two, line 7\)"
    ):
        collect_events(
            [Label("v", "x", 9, "frame", "one, line 1"), Label("v", "y", 4, "seconds", "two, line 7")]
        )


def test_events_are_named_in_the_order_they_happen() -> None:
    records = [record(c=9, a=1, b=5), record(b=1, a=2, c=8), record(a=3, c=7)]
    assert event_order(records) == ("a", "b", "c")


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=30), st.floats(0, 1))
def test_seconds_go_to_the_frame_nearest_in_time(steps: list[float], part: float) -> None:
    times = np.concatenate([[0.0], np.cumsum(steps)])
    seconds = part * times[-1]
    distances = np.abs(times - seconds)
    assert distances[nearest_frame(seconds, times)] == distances.min()


def test_seconds_follow_a_variable_frame_rate() -> None:
    times = np.array([0.0, 0.1, 0.2, 1.0, 1.1])
    assert event_frames(record("seconds", a=0.55, b=0.65, c=0.0, d=1.1), times) == {
        "c": 0,
        "a": 2,
        "b": 3,
        "d": 4,
    }


def test_frames_stay_as_they_are() -> None:
    assert event_frames(record(b=4, a=0), np.arange(5) / 30) == {"a": 0, "b": 4}


@pytest.mark.parametrize(
    ("unit", "value", "message"),
    [
        ("frame", 5, r"v: 'x' is labelled at frame 5, but the video runs from 0 to frame 4\. Correct labels"),
        ("frame", -1, r"'x' is labelled at frame -1"),
        ("seconds", 0.55, r"'x' is labelled at seconds 0\.55, but the video runs from 0 to 0\.400 s"),
        ("seconds", -0.2, r"'x' is labelled at seconds -0\.2"),
    ],
)
def test_an_event_outside_the_video_is_an_error(unit: str, value: float, message: str) -> None:
    with pytest.raises(DataError, match=message):
        event_frames(record(unit, x=value), np.arange(5) / 10)


@given(st.lists(st.integers(0, 19), max_size=6))
def test_the_phase_of_a_frame_counts_the_events_at_or_before_it(events: list[int]) -> None:
    phases = phases_from_events(events, 20)
    assert phases.dtype == np.int64
    assert phases.tolist() == [sum(event <= frame for event in events) for frame in range(20)]


def test_an_event_outside_has_no_phase() -> None:
    with pytest.raises(ValueError, match="event frame 20 is outside a video of 20 frames"):
        phases_from_events([3, 20], 20)
