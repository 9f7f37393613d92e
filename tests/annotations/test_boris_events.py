import pytest

from cycleback.annotations import Event, Moment, Segment
from cycleback.annotations.boris_events import read
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


def test_the_aggregated_table_is_read() -> None:
    (video,) = read(WHOLE, "x.csv")
    assert (video.video, video.fps, video.duration) == ("6008", 29.97, 1381.01)
    assert video.segments == (Segment("Holding", Moment(689.0), Moment(989.023)),)
    assert video.events == (Event("Cry", Moment(700.5)),)


def test_the_table_of_ends_is_read_after_its_preface() -> None:
    (video,) = read(ENDS, "x.tsv")
    assert video.segments == (Segment("swing", Moment(1.5), Moment(3.5)),)
    assert video.events == (Event("top", Moment(2.0)),)


def test_a_wrong_row_names_its_line() -> None:
    with pytest.raises(DataError, match=r"x\.tsv, line 5: state 'swing' starts here and has no end"):
        read(ENDS.replace("3.5\ta.mp4\t9.5\t25.00\t\tswing\t\t\t\tSTOP\n", ""), "x.tsv")
    with pytest.raises(DataError, match=r"x\.csv, line 2, start \(s\): expected a number, got \"soon\""):
        read(WHOLE.replace("689.000", "soon"), "x.csv")
