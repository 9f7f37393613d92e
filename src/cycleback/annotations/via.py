"""VIA 3 (VGG Image Annotator) project: temporal segments in seconds.

    file: {id: {fname, ...}}, view: {id: {fid_list}}, attribute: {id: {aname, options, ...}},
    metadata: {id: {vid, z: [start, end], xy: [], av: {attribute id: option or text}}}

VIA shows stretches only, so a key event is one frame long, under the attribute "event". Read are segments
under any attribute; those of an attribute whose name begins with "event", and times that stand alone, are key
events.
"""

from collections.abc import Sequence
from typing import Any

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment, sorted_out, video_name
from cycleback.annotations.cursor import Cursor, dump_json, parse_json
from cycleback.annotations.format import Format
from cycleback.errors import DataError

ANCHOR = "FILE1_Z2_XY0"  # an attribute of a temporal segment of one file
TEXT, SELECT = 1, 4  # how an attribute is entered
VIDEO, LOCAL = 4, 1  # type and location of a file
EVENT, PHASE, CONFIDENCE = "1", "2", "3"  # our attributes


def read(text: str, place: str) -> list[Annotation]:
    """One annotation a view of one file."""
    root = parse_json(text, place)
    labels: dict[str, list[Event | Segment]] = {view: [] for view, _ in root.at("view").items()}
    attributes = dict(root.at("attribute").items())
    for _, item in root.at("metadata").items():
        times = [time.number() for time in item.at("z").each()]
        if times and not item.value.get("xy"):
            view = str(item.at("vid").value)
            if view not in labels:
                raise DataError(f"{item.place}: vid is {view!r}, but there is no such view")
            labels[view].extend(_labels(item, times, attributes))
    return [_annotation(_file(root, view), found) for view, found in labels.items()]


def _annotation(file: str, labels: list[Event | Segment]) -> Annotation:
    return Annotation(video_name(file), *sorted_out(labels), file=file)


def _file(root: Cursor, view: str) -> str:
    files = root.at("view").at(view).at("fid_list")
    for first in files.each():
        return root.at("file").at(str(first.value)).at("fname").text()
    raise DataError(f"{files.place}: no file in this view")


def _labels(item: Cursor, times: list[float], attributes: dict[str, Cursor]) -> list[Event | Segment]:
    """The labels of one segment: one for each attribute that has a value."""
    found: list[Event | Segment] = []
    values = {key: value for key, value in item.at("av").items() if value.value not in ("", None)}
    sure = next(
        (value.number() for key, value in values.items() if _title(attributes, key) == "confidence"), None
    )
    for key, value in values.items():
        title = _title(attributes, key)
        if title != "confidence":
            options = attributes[key].find("options") if key in attributes else None
            chosen = options.find(value.text()) if options else None
            name = (chosen or value).text()
            if len(times) == 1 or title.startswith("event"):
                found.append(Event(name, Moment(times[0]), sure))
            else:
                found.append(Segment(name, Moment(times[0]), Moment(times[-1]), sure))
    return found


def _title(attributes: dict[str, Cursor], key: str) -> str:
    return attributes[key].at("aname").text().lower() if key in attributes else ""


def write(annotations: Sequence[Annotation]) -> str:
    """A project with one view a video; VIA asks for the video files when it opens it."""
    ids = [str(number) for number in range(1, len(annotations) + 1)]
    metadata: dict[str, Any] = {}
    for view, video in zip(ids, annotations, strict=True):
        for number, item in enumerate(_items(video)):
            metadata[f"{view}_{number:08d}"] = {"vid": view, "flg": 0, "xy": [], **item}
    events = {event.name: event.name for video in annotations for event in video.events}
    phases = {each.name: each.name for video in annotations for each in video.segments}
    return dump_json(
        {
            "project": _project(ids),
            "config": {
                "file": {"loc_prefix": dict.fromkeys("1234", "")},
                "ui": {"file_content_align": "center"},
            },
            "attribute": {
                EVENT: _attribute("event", SELECT, events),
                PHASE: _attribute("phase", SELECT, phases),
                CONFIDENCE: _attribute("confidence", TEXT, {}),
            },
            "file": {
                key: {"fid": key, "fname": video.media, "type": VIDEO, "loc": LOCAL, "src": ""}
                for key, video in zip(ids, annotations, strict=True)
            },
            "view": {key: {"fid_list": [key]} for key in ids},
            "metadata": metadata,
        }
    )


def _project(ids: list[str]) -> dict[str, Any]:
    """The head of a project; VIA fills in the marks when it first shares it."""
    return {
        "pid": "__VIA_PROJECT_ID__",
        "rev": "__VIA_PROJECT_REV_ID__",
        "rev_timestamp": "__VIA_PROJECT_REV_TIMESTAMP__",
        "pname": "cycleback",
        "creator": "cycleback",
        "created": 0,
        "data_format_version": "3.1.1",
        "vid_list": ids,
    }


def _attribute(name: str, kind: int, options: dict[str, str]) -> dict[str, Any]:
    about = {"aname": name, "anchor_id": ANCHOR, "type": kind, "desc": ""}
    return about | {"options": options, "default_option_id": ""}


def _items(video: Annotation) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for event in video.events:
        start = video.seconds(event.at)
        items.append({"z": [start, start + video.frame_s], "av": {EVENT: event.name} | _sure(event)})
    for each in video.segments:
        span = [video.seconds(each.start), video.seconds(each.end)]
        items.append({"z": span, "av": {PHASE: each.name} | _sure(each)})
    return items


def _sure(label: Event | Segment) -> dict[str, str]:
    return {} if label.confidence is None else {CONFIDENCE: str(label.confidence)}


FORMAT = Format("via", (".json",), read, write, marks=('"vid_list"',))
