import re
from xml.etree import ElementTree

import pytest

from cycleback.annotations import Annotation, Event, Moment, Segment
from cycleback.annotations.cvat import read, read_intervals, write, write_intervals
from cycleback.errors import DataError

BOX = '<box frame="{}" outside="{}" occluded="0" keyframe="{}" xtl="5" ytl="6" xbr="70" ybr="80"/>'


def export(
    body: str, tasks: str = "<task><id>7</id><size>90</size><source>takes/a.mp4</source></task>"
) -> str:
    return f"<?xml version='1.0'?><annotations><version>1.1</version><meta>{tasks}</meta>{body}</annotations>"


def boxes(*frames: int, outside: tuple[int, ...] = ()) -> str:
    """What CVAT exports: a box for every frame, of which few are key frames."""
    return "".join(BOX.format(frame, int(frame in outside), int(frame in outside)) for frame in frames)


def frame(number: int) -> Moment:
    return Moment(frame=number)


def test_a_track_is_a_segment_for_each_time_it_is_visible() -> None:
    shapes = boxes(*range(10, 14), 14, 20, 21, 22, outside=(14, 22))
    (video,) = read(export(f"<track id='0' label='swing'>{shapes}</track>"), "x.xml")
    assert (video.video, video.file, video.num_frames) == ("a", "takes/a.mp4", 90)
    assert video.segments == (
        Segment("swing", frame(10), frame(14)),
        Segment("swing", frame(20), frame(22)),
    )


def test_a_track_to_the_end_of_the_video_ends_after_its_last_frame() -> None:
    (video,) = read(export(f"<track id='0' label='swing'>{boxes(88, 89)}</track>"), "x.xml")
    assert video.segments == (Segment("swing", frame(88), frame(90)),)


def test_points_are_key_events_and_runs_of_tags_are_segments() -> None:
    point = '<points frame="30" outside="0" keyframe="1" points="1.0,2.0"/>'
    images = "".join(f"<image id='{n}' name='f'><tag label='rest'/></image>" for n in (1, 2, 3, 9))
    (video,) = read(export(f"<track id='0' label='top'>{point}</track>{images}"), "x.xml")
    assert video.events == (Event("top", frame(30)), Event("rest", frame(9)))
    assert video.segments == (Segment("rest", frame(1), frame(4)),)


def test_the_export_of_a_project_has_one_video_per_task() -> None:
    task = "<task><id>{0}</id><source>{0}.mp4</source></task>"
    tasks = f"<project><tasks>{task.format(3)}{task.format(4)}</tasks></project>"
    tracks = "".join(f"<track id='0' label='l{n}' task_id='{n}'>{boxes(1, 2)}</track>" for n in (4, 3))
    videos = read(export(tracks, tasks), "x.xml")
    assert [(each.video, each.segments[0].name) for each in videos] == [("3", "l3"), ("4", "l4")]
    with pytest.raises(DataError, match=r"x\.xml: a track belongs to task '9', which"):
        read(export(tracks.replace("task_id='3'", "task_id='9'"), tasks), "x.xml")


def test_written_tracks_end_outside_and_name_labels_of_the_task() -> None:
    labels = (Event("top", frame(5), 0.8),), (Segment("swing", frame(5), frame(9)),)
    root = ElementTree.fromstring(write([Annotation("a", *labels, num_frames=9)]).encode())
    assert [each.text for each in root.findall("meta/task/labels/label/name")] == ["top", "swing"]
    shown = [[(s.tag, s.get("frame"), s.get("outside")) for s in track] for track in root.findall("track")]
    assert shown[0] == [("points", "5", "0"), ("points", "6", "1")]
    assert shown[1] == [("box", "5", "0"), ("box", "8", "0")]  # the video ends with it
    assert root.find("track/points/attribute").text == "0.8"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<track id='3'/>", "x.xml, track 3: no 'label' here"),
        ("<track id='3' label='a'><box frame='-1'/></track>", "x.xml, track 3, box, frame: expected a whole"),
        ("<image id='x'><tag label='a'/></image>", "x.xml, image x, id: expected a number"),
    ],
)
def test_what_is_wrong_is_named(body: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        read(export(body), "x.xml")


def test_intervals_have_clocks_and_scores() -> None:
    text = "start\tstop\tlabel\tscore\n00:00:02.500\t00:01:03\tpour\t0.5\n1:00:00\t1:00:00\ttouch\t\n"
    (video,) = read_intervals(text, "takes/b.tsv")
    assert (video.video, video.segments) == ("b", (Segment("pour", Moment(2.5), Moment(63.0), 0.5),))
    assert video.events == (Event("touch", Moment(3600.0)),)
    with pytest.raises(DataError, match=r"line 2, start: expected a time such as 00:01:02\.500, got"):
        read_intervals("start\tstop\tlabel\n00:99:00\t1\tpour\n", "b.tsv")


def test_a_label_with_a_comma_stays_in_its_column() -> None:
    video = Annotation("a", segments=(Segment("lift, turn", Moment(0.25), Moment(3725.5)),), file="v/a.mp4")
    lines = write_intervals([video]).splitlines()
    assert lines[1].split("\t") == [
        "0",
        "v/a.mp4",
        "00:00:00.250",
        "01:02:05.500",
        "lift, turn",
        "manual",
        "",
    ]
