import json

import pytest

from cycleback.annotations import Event, Moment, Segment
from cycleback.annotations.activitynet import read, write
from cycleback.errors import DataError

ITEM = {"segment": [1.5, 4.0], "label": "Pouring"}


@pytest.mark.parametrize("layer", ["database", None])
def test_both_layouts_are_read(layer: str | None) -> None:
    videos = {"v_1": {"duration_second": 9.5, "annotations": [ITEM]}}
    (video,) = read(json.dumps({"version": "1.3", layer: videos} if layer else videos), "a.json")
    assert (video.video, video.duration) == ("v_1", 9.5)
    assert video.segments == (Segment("Pouring", Moment(1.5), Moment(4.0)),)


def test_a_segment_without_length_is_a_key_event() -> None:
    text = json.dumps({"v": {"annotations": [{"segment": [2, 2], "label": "top", "score": 0.5}]}})
    assert read(text, "a.json")[0].events == (Event("top", Moment(2.0), 0.5),)


def test_the_written_file_has_the_layers_of_the_release(drawn) -> None:
    written = json.loads(write([drawn(1)]))
    assert set(written) == {"version", "taxonomy", "database"}
    (video,) = written["database"].values()
    assert video["duration"] == video["duration_second"] == 8.0
    assert all(0 <= start <= end <= 8 for start, end in (item["segment"] for item in video["annotations"]))


def test_a_segment_needs_two_times() -> None:
    text = json.dumps({"v": {"annotations": [{"segment": [2], "label": "top"}]}})
    with pytest.raises(
        DataError, match=r"v, annotations\[0\], segment: expected \[start, end\] in seconds, got \[2"
    ):
        read(text, "a.json")
