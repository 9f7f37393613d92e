import json
from dataclasses import replace

import pytest

from cycleback.annotations import Event, Moment, Segment
from cycleback.annotations.boris import read_events, read_project, write_project
from cycleback.errors import DataError

WHOLE = """Observation id,Media file,Total length,FPS,Subject,Behavior,Behavior type,Start (s),Stop (s)
one,T:/videos/6008.mp4,1381.010,29.97,No focal subject,Holding,STATE,689.000,989.023
one,T:/videos/6008.mp4,1381.010,29.97,No focal subject,Cry,POINT,700.5,700.5
"""
ENDS = """Observation id\tone
Media file(s)

Time\tMedia file path\tTotal length\tFPS\tSubject\tBehavior\tBehavioral category\tModifiers\tComment\tStatus
1.5\ta.mp4\t9.5\t25.00\t\tswing\t\t\t\tSTART
2.0\ta.mp4\t9.5\t25.00\t\ttop\t\t\t\tPOINT
3.5\ta.mp4\t9.5\t25.00\t\tswing\t\t\t\tSTOP
"""


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
    (video,) = read_project(project(events), "x.boris")
    assert (video.video, video.fps, video.duration) == ("a", 25.0, 9.5)
    assert video.events == (Event("p", Moment(4.0)),)
    assert [(each.start.seconds, each.end.seconds) for each in video.segments] == [(3.3, 7.75), (5.0, 8.0)]


def test_the_time_offset_is_taken_off() -> None:
    (video,) = read_project(project([[12.5, "", "p", "", ""]], **{"time offset": 10.0}), "x.boris")
    assert video.events[0].at == Moment(2.5)


def test_videos_in_a_row_are_refused() -> None:
    with pytest.raises(DataError, match=r"observations, first, file: 2 videos in a row"):
        read_project(project([[1.0, "", "p", "", ""]], file={"1": ["a.mp4", "b.mp4"]}), "x.boris")


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
        read_project(project(events), "x.boris")


def test_the_written_project_has_an_ethogram_and_players(drawn) -> None:
    written = json.loads(write_project([drawn(1)]))
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
        write_project([both])


def test_the_aggregated_table_is_read() -> None:
    (video,) = read_events(WHOLE, "x.csv")
    assert (video.video, video.fps, video.duration) == ("6008", 29.97, 1381.01)
    assert video.segments == (Segment("Holding", Moment(689.0), Moment(989.023)),)
    assert video.events == (Event("Cry", Moment(700.5)),)


def test_the_table_of_ends_is_read_after_its_preface() -> None:
    (video,) = read_events(ENDS, "x.tsv")
    assert video.segments == (Segment("swing", Moment(1.5), Moment(3.5)),)
    assert video.events == (Event("top", Moment(2.0)),)


def test_a_wrong_row_names_its_line() -> None:
    with pytest.raises(DataError, match=r"x\.tsv, line 5: state 'swing' starts here and has no end"):
        read_events(ENDS.replace("3.5\ta.mp4\t9.5\t25.00\t\tswing\t\t\t\tSTOP\n", ""), "x.tsv")
    with pytest.raises(DataError, match=r"x\.csv, line 2, start \(s\): expected a number, got \"soon\""):
        read_events(WHOLE.replace("689.000", "soon"), "x.csv")
