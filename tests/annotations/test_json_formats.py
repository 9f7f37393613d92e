import json

import pytest

from cycleback.annotations import Event, Moment, Segment
from cycleback.annotations.json_formats import (
    read_activitynet,
    read_json,
    read_labelu,
    write_activitynet,
    write_json,
    write_labelu,
)
from cycleback.errors import DataError

ITEM = {"segment": [1.5, 4.0], "label": "Pouring"}
RESULT = {
    "duration": 12.5,
    "annotations": [
        {
            "toolName": "videoSegmentTool",
            "result": [{"id": "x", "start": 1.5, "end": 3, "label": "swing", "order": 1}],
        },
        {"toolName": "videoFrameTool", "result": [{"id": "y", "time": 2.25, "label": "top", "order": 2}]},
        {"toolName": "tagTool", "result": [{"id": "z", "value": {"a": "b"}}]},
    ],
}


def test_what_is_not_known_is_not_written(drawn) -> None:
    written = json.loads(write_json([drawn(1)]))
    assert written["format"] == "cycleback-annotations"
    assert "null" not in write_json([drawn(1)])


def test_a_moment_without_a_time_names_its_place() -> None:
    text = '{"videos": [{"video": "a", "events": [{"name": "top", "at": {}}]}]}'
    with pytest.raises(DataError, match=r"x\.json, videos\[0\], events\[0\], at: no 'seconds' here"):
        read_json(text, "x.json")


@pytest.mark.parametrize("layer", ["database", None])
def test_both_layouts_are_read(layer: str | None) -> None:
    videos = {"v_1": {"duration_second": 9.5, "annotations": [ITEM]}}
    (video,) = read_activitynet(json.dumps({"version": "1.3", layer: videos} if layer else videos), "a.json")
    assert (video.video, video.duration) == ("v_1", 9.5)
    assert video.segments == (Segment("Pouring", Moment(1.5), Moment(4.0)),)


def test_a_segment_without_length_is_a_key_event() -> None:
    text = json.dumps({"v": {"annotations": [{"segment": [2, 2], "label": "top", "score": 0.5}]}})
    assert read_activitynet(text, "a.json")[0].events == (Event("top", Moment(2.0), 0.5),)


def test_the_written_file_has_the_layers_of_the_release(drawn) -> None:
    written = json.loads(write_activitynet([drawn(1)]))
    assert set(written) == {"version", "taxonomy", "database"}
    (video,) = written["database"].values()
    assert video["duration"] == video["duration_second"] == 8.0
    assert all(0 <= start <= end <= 8 for start, end in (item["segment"] for item in video["annotations"]))


def test_a_segment_needs_two_times() -> None:
    text = json.dumps({"v": {"annotations": [{"segment": [2], "label": "top"}]}})
    with pytest.raises(
        DataError, match=r"v, annotations\[0\], segment: expected \[start, end\] in seconds, got \[2"
    ):
        read_activitynet(text, "a.json")


@pytest.mark.parametrize("lines", [False, True])
def test_the_result_inside_a_text_is_read(lines: bool) -> None:
    sample = {"id": 765, "result": json.dumps(RESULT), "url": "/x", "fileName": "a.mp4"}
    (video,) = read_labelu(json.dumps(sample) + "\n" if lines else json.dumps([sample]), "x.json")
    assert (video.video, video.duration) == ("a", 12.5)
    assert video.segments == (Segment("swing", Moment(1.5), Moment(3.0)),)
    assert video.events == (Event("top", Moment(2.25)),)


def test_the_written_samples_have_the_fields_of_an_export(drawn) -> None:
    (sample,) = json.loads(write_labelu([drawn(1)]))
    assert set(sample) == {"id", "result", "url", "folder", "fileName"}
    tools = json.loads(sample["result"])["annotations"]
    assert [tool["toolName"] for tool in tools] == ["videoFrameTool", "videoSegmentTool"]
    assert all({"id", "order", "label", "time"} <= set(item) for item in tools[0]["result"])


def test_a_wrong_result_names_its_place() -> None:
    with pytest.raises(DataError, match=r"x\.json\[0\], result, line 1: not JSON"):
        read_labelu(json.dumps([{"fileName": "a.mp4", "result": "{"}]), "x.json")
    with pytest.raises(DataError, match=r"x\.jsonl, line 2: no 'fileName' here"):
        read_labelu('\n{"result": "{}"}\n', "x.jsonl")
