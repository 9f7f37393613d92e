"""VIA 3 (VGG Image Annotator) project: temporal segments in seconds.

    file: {id: {fname, ...}}, view: {id: {fid_list}}, attribute: {id: {aname, options, ...}},
    metadata: {id: {vid, z: [start, end], xy: [], av: {attribute id: option or text}}}

VIA shows only spans, so a key event is written one frame long, under the attribute "event". Segments under
any attribute are read. If its name starts with "event", or if there is only one time, they are key events.
"""

from collections.abc import Sequence
from typing import Any

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment, make_label
from cycleback.annotations.json_formats import dump_json
from cycleback.errors import DataError
from cycleback.reading import Cursor, parse_json

ANCHOR = "FILE1_Z2_XY0"  # an attribute of a temporal segment of one file
TEXT, SELECT = 1, 4  # types of an attribute
VIDEO, LOCAL = 4, 1  # type and location of a file
EVENT, PHASE, CONFIDENCE = "1", "2", "3"  # ids of our attributes


def read(text: str, place: str) -> list[Annotation]:
    """Read one annotation per view."""
    root = parse_json(text, place)
    labels: dict[str, list[Event | Segment]] = {view: [] for view, _ in root.at("view").items()}
    attributes = dict(root.at("attribute").items())
    for _, item in root.at("metadata").items():
        times = [time.number() for time in item.at("z").each()]
        if times and not item.value.get("xy"):
            view = item.at("vid").word()
            if view not in labels:
                raise DataError(f"{item.place}: vid is {view!r}, but there is no such view")
            labels[view].extend(_labels(item, times, attributes))
    return [Annotation.of_file(_file(root, view), found) for view, found in labels.items()]


def _file(root: Cursor, view: str) -> str:
    files = root.at("view").at(view).at("fid_list")
    for first in files.each():
        return root.at("file").at(first.word()).at("fname").text()
    raise DataError(f"{files.place}: no file in this view")


def _labels(item: Cursor, times: list[float], attributes: dict[str, Cursor]) -> list[Event | Segment]:
    """Read one label for each attribute of a segment that has a value."""
    labels: list[Event | Segment] = []
    confidence: float | None = None
    values = [(key, value) for key, value in item.at("av").items() if value.value not in ("", None)]
    titles = {key: attributes[key].at("aname").text().lower() for key, _ in values if key in attributes}
    for key, value in values:
        if titles.get(key) == "confidence":
            confidence = value.number()
    for key, value in values:
        title = titles.get(key, "")
        if title != "confidence":
            options = attributes[key].find("options") if key in attributes else None
            name = ((options and options.find(value.text())) or value).text()
            is_event = len(times) == 1 or title.startswith("event")
            end = None if is_event else Moment(times[-1])
            labels.append(make_label(name, Moment(times[0]), end, confidence))
    return labels


def write(annotations: Sequence[Annotation]) -> str:
    """Write a project with one view per video; VIA asks for the video files when it opens the project."""
    views = {str(number): video for number, video in enumerate(annotations, 1)}
    events = {event.name: event.name for video in annotations for event in video.events}
    phases = {each.name: each.name for video in annotations for each in video.segments}
    return dump_json(
        {
            "project": {  # VIA fills in the placeholders
                "pid": "__VIA_PROJECT_ID__",
                "rev": "__VIA_PROJECT_REV_ID__",
                "rev_timestamp": "__VIA_PROJECT_REV_TIMESTAMP__",
                "pname": "cycleback",
                "creator": "cycleback",
                "created": 0,
                "data_format_version": "3.1.1",
                "vid_list": list(views),
            },
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
                for key, video in views.items()
            },
            "view": {key: {"fid_list": [key]} for key in views},
            "metadata": {
                f"{key}_{number:08d}": {"vid": key, "flg": 0, "xy": [], **item}
                for key, video in views.items()
                for number, item in enumerate(_items(video))
            },
        }
    )


def _attribute(name: str, kind: int, options: dict[str, str]) -> dict[str, Any]:
    about = {"aname": name, "anchor_id": ANCHOR, "type": kind, "desc": ""}
    return about | {"options": options, "default_option_id": ""}


def _items(video: Annotation) -> list[dict[str, Any]]:
    items = []
    for label, start, end in video.spans():
        is_event = isinstance(label, Event)
        values = {EVENT if is_event else PHASE: label.name}
        if label.confidence is not None:
            values[CONFIDENCE] = str(label.confidence)
        items.append({"z": [start, start + video.frame_s if is_event else end], "av": values})
    return items
