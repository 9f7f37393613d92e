"""Label Studio JSON: tasks with `timelinelabels` over ranges of frames, counted from 1, end included.

The full export and JSON-MIN are read. If people have annotated a task, its predictions are ignored. A range
of one frame is a key event. Labels with a confidence are written as predictions for review, others as
annotations. The tool needs the frame rate to show the right frames, so each task carries it:

    <Video name="video" value="$video" frameRate="$fps"/>
    <TimelineLabels name="events" toName="video"> ... <TimelineLabels name="phases" toName="video"> ...
"""

from collections.abc import Iterator, Sequence
from typing import Any

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment, make_label
from cycleback.annotations.json_formats import dump_json
from cycleback.errors import DataError
from cycleback.reading import Cursor, parse_json

KIND = "timelinelabels"
VIDEO_KEYS = ("video", "video_url", "url")


def read(text: str, place: str) -> list[Annotation]:
    """Read one annotation per task."""
    root = parse_json(text, place)
    tasks = [root] if isinstance(root.value, dict) else root.each()
    return [_annotation(task) for task in tasks]


def _annotation(task: Cursor) -> Annotation:
    data = task.find("data") or task
    file = next((data.at(key).text() for key in VIDEO_KEYS if data.find(key)), None)
    if file is None:
        raise DataError(f"{data.place}: no video here, expected one of {', '.join(VIDEO_KEYS)}")
    labels = [label for result, control in _results(task) for label in _labels(result, control)]
    return Annotation.of_file(file, labels, fps=data.optional_positive("fps"))


def _results(task: Cursor) -> Iterator[tuple[Cursor, str]]:
    """Yield the results of a task, each with the name of its control."""
    answers = [*task.each("annotations")] or [*task.each("predictions")]
    for answer in answers:
        for result in answer.each("result"):
            if (result.find("type") or result).value == KIND:
                yield result, result.optional_text("from_name") or ""
    if not answers:  # JSON-MIN: the controls are keys of the task
        for control, inside in task.items():
            for item in inside.each() if isinstance(inside.value, list) else ():
                if isinstance(item.value, dict) and KIND in item.value:
                    yield item, control


def _labels(result: Cursor, control: str) -> Iterator[Event | Segment]:
    value, score = result.find("value") or result, result.optional_number("score")
    for span in value.at("ranges").each():
        start, end = span.at("start").integer(low=1) - 1, span.at("end").integer(low=1)
        is_event = control == "events" or (end - start <= 1 and control != "phases")
        for name in value.at(KIND).each():
            stop = None if is_event else Moment(frame=end)
            yield make_label(name.text(), Moment(frame=start), stop, score)


def write(annotations: Sequence[Annotation]) -> str:
    """Write one task per video."""
    return dump_json([_task(video) for video in annotations])


def _task(video: Annotation) -> dict[str, Any]:
    results = [
        _result("events", each, video.frame(each.at), video.frame(each.at) + 1) for each in video.events
    ] + [_result("phases", each, video.frame(each.start), video.frame(each.end)) for each in video.segments]
    results = [{"id": f"label{number}", **result} for number, result in enumerate(results)]
    data = {"video": video.media, "fps": video.fps}
    scores = [label.confidence for label in video.labels if label.confidence is not None]
    if not scores:
        return {"data": data, "annotations": [{"result": results}]}
    score = sum(scores) / len(scores)
    return {
        "data": data,
        "predictions": [{"result": results, "model_version": "cycleback", "score": score}],
    }


def _result(control: str, label: Event | Segment, start: int, end: int) -> dict[str, Any]:
    value = {"ranges": [{"start": start + 1, "end": max(start + 1, end)}], KIND: [label.name]}
    place = {"from_name": control, "to_name": "video", "type": KIND}
    return {**place, "value": value, "score": label.confidence}
