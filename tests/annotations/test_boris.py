import json
from dataclasses import replace

import pytest

from cycleback.annotations import Event, Moment, Segment
from cycleback.annotations.boris import read, write
from cycleback.errors import DataError


def project(events: list[list[object]], **more: object) -> str:
    kinds = {"0": {"type": "Point event", "code": "p"}, "1": {"type": "State event", "code": "s"}}
    observation = {
        "file": {"1": ["/v/a.mp4"], "2": []},
        "type": "MEDIA",
        "time offset": 0.0,
        "events": events,
    }
    about = {"media_info": {"length": {"/v/a.mp4": 9.5}, "fps": {"/v/a.mp4": 25.0}}}
    live = {"file": [], "type": "LIVE", "events": [[1.0, "", "p", "", ""]]}
    observations = {"first": observation | about | more, "live": live}
    return json.dumps({"behaviors_conf": kinds, "observations": observations})


def test_points_and_states_are_read_and_live_observations_left_out() -> None:
    events = [[3.3, "x", "s", "", ""], [4.0, "", "p", "", "hm"], [5.0, "y", "s", "", ""]]
    events += [[7.75, "x", "s", "", ""], [8.0, "y", "s", "", ""]]
    (video,) = read(project(events), "x.boris")
    assert (video.video, video.fps, video.duration) == ("a", 25.0, 9.5)
    assert video.events == (Event("p", Moment(4.0)),)
    assert [(each.start.seconds, each.end.seconds) for each in video.segments] == [(3.3, 7.75), (5.0, 8.0)]


def test_the_time_offset_is_taken_off() -> None:
    (video,) = read(project([[12.5, "", "p", "", ""]], **{"time offset": 10.0}), "x.boris")
    assert video.events[0].at == Moment(2.5)


def test_videos_in_a_row_are_refused() -> None:
    with pytest.raises(DataError, match=r"observations, first, file: 2 videos in a row"):
        read(project([[1.0, "", "p", "", ""]], file={"1": ["a.mp4", "b.mp4"]}), "x.boris")


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([[3.3, "", "s", "", ""]], r"events\[0\]: state 's' starts here and has no end"),
        ([[3.3, "", "q", "", ""]], r"events\[0\]: behaviour 'q' is not in the project's ethogram"),
        ([["x", "", "p", "", ""]], r"events\[0\]\[0\]: expected a number, got \"x\""),
        ([[3.3]], r"events\[0\]: expected \[time, subject, behaviour, \.\.\.\], got 1 values"),
    ],
)
def test_a_wrong_event_names_its_place(events: list[list[object]], words: str) -> None:
    with pytest.raises(DataError, match=rf"x\.boris, observations, first, {words}"):
        read(project(events), "x.boris")


def test_the_written_project_has_an_ethogram_and_players(drawn) -> None:
    written = json.loads(write([drawn(1)]))
    codes = {each["code"]: each["type"] for each in written["behaviors_conf"].values()}
    (observation,) = written["observations"].values()
    assert {row[2] for row in observation["events"]} == set(codes)
    assert set(codes.values()) == {"Point event", "State event"}
    assert [len(row) for row in observation["events"]] == [5] * len(observation["events"])
    assert observation["file"]["1"] == [drawn(1).file] and len(observation["file"]) == 8


def test_one_name_cannot_be_a_point_and_a_state(drawn) -> None:
    both = replace(
        drawn(1), events=(Event("x", Moment(1.0)),), segments=(Segment("x", Moment(1.0), Moment(2.0)),)
    )
    with pytest.raises(DataError, match=r"BORIS cannot have 'x' as a key event and as a segment"):
        write([both])
