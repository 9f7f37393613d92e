import json

import pytest

from cycleback.annotations import Event, Moment, Segment
from cycleback.annotations.labelu import read, write
from cycleback.errors import DataError

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


@pytest.mark.parametrize("lines", [False, True])
def test_the_result_inside_a_text_is_read(lines: bool) -> None:
    sample = {"id": 765, "result": json.dumps(RESULT), "url": "/x", "fileName": "a.mp4"}
    (video,) = read(json.dumps(sample) + "\n" if lines else json.dumps([sample]), "x.json")
    assert (video.video, video.duration) == ("a", 12.5)
    assert video.segments == (Segment("swing", Moment(1.5), Moment(3.0)),)
    assert video.events == (Event("top", Moment(2.25)),)


def test_the_written_samples_have_the_fields_of_an_export(drawn) -> None:
    (sample,) = json.loads(write([drawn(1)]))
    assert set(sample) == {"id", "result", "url", "folder", "fileName"}
    tools = json.loads(sample["result"])["annotations"]
    assert [tool["toolName"] for tool in tools] == ["videoFrameTool", "videoSegmentTool"]
    assert all({"id", "order", "label", "time"} <= set(item) for item in tools[0]["result"])


def test_a_wrong_result_names_its_place() -> None:
    with pytest.raises(DataError, match=r"x\.json\[0\], result, line 1: not JSON"):
        read(json.dumps([{"fileName": "a.mp4", "result": "{"}]), "x.json")
    with pytest.raises(DataError, match=r"x\.jsonl, line 2: no 'fileName' here"):
        read('\n{"result": "{}"}\n', "x.jsonl")
