import json

import pytest

from cycleback.annotations import Annotation, Event, Moment, Segment
from cycleback.annotations.label_studio import read, write
from cycleback.errors import DataError


def result(start: int, end: int, name: str, **more: object) -> dict[str, object]:
    value = {"ranges": [{"start": start, "end": end}], "timelinelabels": [name]}
    return {"type": "timelinelabels", "from_name": "videoLabels", "to_name": "video", "value": value, **more}


def test_a_full_export_is_read_with_frames_from_1() -> None:
    results = [result(1, 61, "left"), result(70, 70, "top"), {"type": "choices", "value": {}}]
    task = {"id": 3, "data": {"video": "/data/upload/1/0a1b2c3d-a.mp4"}, "annotations": [{"result": results}]}
    (video,) = read(json.dumps([task]), "x.json")
    assert video.video == "0a1b2c3d-a"
    assert video.segments == (Segment("left", Moment(frame=0), Moment(frame=61)),)
    assert video.events == (Event("top", Moment(frame=69)),)


def test_the_short_export_is_read() -> None:
    labels = [{"ranges": [{"start": 382, "end": 445}], "timelinelabels": ["right"]}]
    (video,) = read(json.dumps([{"id": 1, "video": "?d=x/a.mp4", "videoLabels": labels}]), "x.json")
    assert (video.video, video.segments[0].start) == ("a", Moment(frame=381))


def test_people_come_before_predictions() -> None:
    predictions = [{"result": [result(1, 9, "guess", score=0.5)]}]
    task = {"data": {"video": "a.mp4"}, "predictions": predictions}
    assert read(json.dumps([task]), "x.json")[0].segments[0].confidence == 0.5
    task["annotations"] = [{"result": [result(1, 9, "said")]}]
    assert [each.name for each in read(json.dumps([task]), "x.json")[0].segments] == ["said"]


def test_what_a_program_found_is_a_prediction_and_what_a_person_said_an_annotation() -> None:
    said = Annotation("a", (Event("top", Moment(frame=4)),), fps=25)
    found = Annotation("b", (Event("top", Moment(frame=4), 0.75),), fps=25)
    first, second = json.loads(write([said, found]))
    assert "annotations" in first and "predictions" not in first
    assert second["predictions"][0]["score"] == 0.75
    assert second["predictions"][0]["result"][0]["value"]["ranges"] == [{"start": 5, "end": 5}]
    assert second["data"]["fps"] == 25


def test_a_task_without_a_video_is_named() -> None:
    with pytest.raises(
        DataError, match=r"x\.json\[0\], data: no video here, expected one of video, video_url, url"
    ):
        read(json.dumps([{"data": {"image": "a.png"}, "annotations": []}]), "x.json")
