"""Label Studio JSON: tasks with `timelinelabels` over ranges of frames, counted from 1, the last included.

Read are a full export and JSON-MIN; the annotations of people come before predictions. A range of one frame
is a key event. What a program found is written as a prediction, to be looked through; what a person said, as
an annotation. Frames mean the same in the tool only where it knows the frame rate, which each task carries:

    <Video name="video" value="$video" frameRate="$fps"/>
    <TimelineLabels name="events" toName="video"> ... <TimelineLabels name="phases" toName="video"> ...
"""

from collections.abc import Iterator, Sequence
from typing import Any

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment, sorted_out, video_name
from cycleback.annotations.cursor import Cursor, dump_json, parse_json
from cycleback.annotations.format import Format
from cycleback.errors import DataError

KIND = "timelinelabels"
VIDEO_KEYS = ("video", "video_url", "url")


def read(text: str, place: str) -> list[Annotation]:
    """One annotation a task."""
    root = parse_json(text, place)
    tasks = [root] if isinstance(root.value, dict) else root.each()
    return [_annotation(task) for task in tasks]


def _annotation(task: Cursor) -> Annotation:
    data = task.find("data") or task
    file = next((data.at(key).text() for key in VIDEO_KEYS if data.find(key)), None)
    if file is None:
        raise DataError(f"{data.place}: no video here, expected one of {', '.join(VIDEO_KEYS)}")
    labels = [label for result, control in _results(task) for label in _labels(result, control)]
    return Annotation(video_name(file), *sorted_out(labels), file=file, fps=data.optional("fps"))


def _results(task: Cursor) -> Iterator[tuple[Cursor, str]]:
    """The ranges of a task, each with the name of the control they were made by."""
    answers = [*task.each("annotations")] or [*task.each("predictions")]
    for answer in answers:
        for result in answer.each("result"):
            if (result.find("type") or result).value == KIND:
                yield result, str(result.value.get("from_name", ""))
    if not answers:  # JSON-MIN: the controls are keys of the task
        for control, inside in task.items():
            if isinstance(inside.value, list):
                yield from ((item, control) for item in inside.each() if _has_ranges(item.value))


def _has_ranges(value: Any) -> bool:
    return isinstance(value, dict) and KIND in value


def _labels(result: Cursor, control: str) -> Iterator[Event | Segment]:
    value, score = result.find("value") or result, result.optional("score")
    for span in value.at("ranges").each():
        start, end = span.at("start").whole() - 1, span.at("end").whole()
        is_event = control == "events" or (end - start <= 1 and control != "phases")
        for name in value.at(KIND).each():
            if is_event:
                yield Event(name.text(), Moment(frame=start), score)
            else:
                yield Segment(name.text(), Moment(frame=start), Moment(frame=end), score)


def write(annotations: Sequence[Annotation]) -> str:
    """One task a video."""
    return dump_json([_task(video) for video in annotations])


def _task(video: Annotation) -> dict[str, Any]:
    results = [
        _result("events", event, video.frame(event.at), video.frame(event.at) + 1) for event in video.events
    ]
    results += [
        _result("phases", each, video.frame(each.start), video.frame(each.end)) for each in video.segments
    ]
    scores = [result["score"] for result in results if "score" in result]
    answer: dict[str, Any] = {"result": [{"id": f"label{i}", **result} for i, result in enumerate(results)]}
    data: dict[str, Any] = {"video": video.media} | ({} if video.fps is None else {"fps": video.fps})
    if not scores:
        return {"data": data, "annotations": [answer]}
    answer |= {"model_version": "cycleback", "score": sum(scores) / len(scores)}
    return {"data": data, "predictions": [answer]}


def _result(control: str, label: Event | Segment, start: int, end: int) -> dict[str, Any]:
    value = {"ranges": [{"start": start + 1, "end": max(start + 1, end)}], KIND: [label.name]}
    result = {"from_name": control, "to_name": "video", "type": KIND, "value": value}
    return result if label.confidence is None else result | {"score": label.confidence}


FORMAT = Format("label-studio", (".json",), read, write, marks=(f'"{KIND}"',))
