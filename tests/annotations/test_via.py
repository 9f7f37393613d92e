import json

import pytest

from cycleback.annotations import Event, Moment, Segment
from cycleback.annotations.via import read, write
from cycleback.errors import DataError


def project(metadata: dict[str, object]) -> str:
    return json.dumps(
        {
            "project": {"vid_list": ["1"]},
            "attribute": {
                "1": {
                    "aname": "TEMPORAL-SEGMENTS",
                    "anchor_id": "FILE1_Z2_XY0",
                    "type": 4,
                    "options": {"d": "Default"},
                },
                "2": {"aname": "Event", "anchor_id": "FILE1_Z2_XY0", "type": 1, "options": {}},
            },
            "file": {"1": {"fid": 1, "fname": "a.mp4", "type": 4, "loc": 1, "src": ""}},
            "view": {"1": {"fid_list": [1]}},
            "metadata": metadata,
        }
    )


def test_segments_events_and_single_times_are_read_and_boxes_left_out() -> None:
    items = {
        "1_a": {"vid": "1", "flg": 0, "z": [1.25, 3.5], "xy": [], "av": {"1": "d"}},
        "1_b": {"vid": "1", "flg": 0, "z": [2.0, 2.04], "xy": [], "av": {"2": "top"}},
        "1_c": {"vid": "1", "flg": 0, "z": [3.0], "xy": [], "av": {"1": "late"}},
        "1_d": {"vid": "1", "flg": 0, "z": [3.0], "xy": [2, 0, 0, 9, 9], "av": {"1": "d"}},
    }
    (video,) = read(project(items), "x.json")
    assert (video.video, video.file) == ("a", "a.mp4")
    assert video.segments == (Segment("Default", Moment(1.25), Moment(3.5)),)
    assert video.events == (Event("top", Moment(2.0)), Event("late", Moment(3.0)))


def test_the_written_project_refers_only_to_what_it_has(drawn) -> None:
    written = json.loads(write([drawn(1), drawn(2)]))
    assert set(written) == {"project", "config", "attribute", "file", "view", "metadata"}
    assert written["project"]["vid_list"] == list(written["view"]) == ["1", "2"]
    for item in written["metadata"].values():
        assert item["vid"] in written["view"] and set(item["av"]) <= set(written["attribute"])
        assert item["z"][0] < item["z"][1] and item["xy"] == []
    assert all(each["anchor_id"] == "FILE1_Z2_XY0" for each in written["attribute"].values())


def test_a_segment_of_no_view_is_named() -> None:
    with pytest.raises(DataError, match=r"x\.json, metadata, m: vid is '7', but there is no such view"):
        read(project({"m": {"vid": "7", "z": [1, 2], "xy": [], "av": {"1": "d"}}}), "x.json")
