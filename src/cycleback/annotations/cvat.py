"""CVAT: video annotations in XML (version 1.1), and tables of intervals (Generic TSV 1.0).

CVAT's videos have tracks: shapes that are visible from one frame to another. Where the shape is does not
matter here. A segment is written as a rectangle in the corner, from its first frame to the frame after its
last, where it is outside; a key event is a point that is visible for one frame. Any track is read: one of
points is a key event at its first frame, every other is a segment for each time it is visible. Tags are read,
too: a run of frames with the same tag is a segment, and a single frame is a key event. An attribute of a
track holds its confidence.

A table of intervals has the columns start and stop, as hours:minutes:seconds, and label. An interval without
length is a key event.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from cycleback.annotations.annotation import (
    Annotation,
    Event,
    Moment,
    Segment,
    make_label,
    split_labels,
    video_name,
)
from cycleback.errors import DataError
from cycleback.reading import Cursor, parse_xml
from cycleback.tables import format_csv, parse_table, replace_commas

SHAPES = ("box", "points", "polygon", "polyline", "ellipse", "mask", "cuboid", "skeleton")
CORNER = {"xtl": "0.00", "ytl": "0.00", "xbr": "16.00", "ybr": "16.00"}  # pixels; inside any video
POINT = {"points": "8.00,8.00"}
CONFIDENCE = "confidence"
COLUMNS = ("id", "filename", "start", "stop", "label", "source", "score")


def read(text: str, place: str) -> list[Annotation]:
    """Read one annotation per task; the export of a project has several."""
    root = parse_xml(text, place)
    tasks = list(root.findall("meta/task")) or list(root.findall("meta/project/tasks/task"))
    tasks = tasks or list(root.findall("meta/job"))
    if root.tag != "annotations" or not tasks:
        raise DataError(f"{place}: no task of CVAT, expected <annotations> with <meta> and <task>")
    labels: dict[str, list[Event | Segment]] = {_text(task, "id"): [] for task in tasks}
    only = next(iter(labels)) if len(labels) == 1 else None
    for task, label in [*_track_labels(root, place), *_tag_labels(root, place)]:
        owner = only if only is not None else task
        if owner not in labels:
            raise DataError(f"{place}: a track belongs to task {owner!r}, which the file does not describe")
        labels[owner].append(label)
    annotations = []
    for about in tasks:
        file = _text(about, "source") or _text(about, "name") or place
        size = Cursor({"size": _text(about, "size")}, f"{place}, task").optional_integer("size", low=0)
        found = split_labels(labels[_text(about, "id")])
        annotations.append(Annotation(video_name(file), *found, file=file, num_frames=size))
    return annotations


def _track_labels(root: Element, place: str) -> Iterator[tuple[str, Event | Segment]]:
    """Yield the task and the label of each time that a track is visible."""
    for track in root.findall("track"):
        here = f"{place}, track {track.get('id', '')}"
        name = Cursor(dict(track.attrib), here).at("label").text()
        shapes = sorted(
            ((_frame(shape, here), shape) for shape in track if shape.tag in SHAPES), key=lambda item: item[0]
        )
        notes = (note.text for note in track.iter("attribute") if note.get("name") == CONFIDENCE)
        confidence = Cursor({CONFIDENCE: next(notes, None)}, here).optional_number(CONFIDENCE)
        start: int | None = None
        for frame, shape in [*shapes, (shapes[-1][0] + 1, None)] if shapes else ():
            is_visible = shape is not None and shape.get("outside", "0") != "1"
            if is_visible and start is None:
                start = frame
            elif not is_visible and start is not None:
                end = None if shapes[0][1].tag == "points" else Moment(frame=frame)
                yield track.get("task_id", ""), make_label(name, Moment(frame=start), end, confidence)
                start = None


def _tag_labels(root: Element, place: str) -> Iterator[tuple[str, Event | Segment]]:
    """Yield the task and the label of each run of images with the same tag."""
    tagged: dict[tuple[str, str], list[int]] = {}
    for image in root.findall("image"):
        here = f"{place}, image {image.get('id', '')}"
        frame = Cursor(dict(image.attrib), here).at("id").integer(low=0)
        for tag in image.findall("tag"):
            name = Cursor(dict(tag.attrib), here).at("label").text()
            tagged.setdefault((image.get("task_id", ""), name), []).append(frame)
    for (task, name), frames in tagged.items():
        ordered = sorted(set(frames))
        starts = [frame for frame in ordered if frame - 1 not in tagged[task, name]]
        stops = [frame + 1 for frame in ordered if frame + 1 not in tagged[task, name]]
        for start, stop in zip(starts, stops, strict=True):
            end = Moment(frame=stop) if stop > start + 1 else None
            yield task, make_label(name, Moment(frame=start), end)


def _frame(shape: Element, place: str) -> int:
    return Cursor(dict(shape.attrib), f"{place}, {shape.tag}").at("frame").integer(low=0)


def _text(element: Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


def write(annotations: Sequence[Annotation]) -> str:
    """Write one video. CVAT imports it into a task of this video that has the same labels."""
    (video,) = annotations
    root = Element("annotations")
    SubElement(root, "version").text = "1.1"
    task = SubElement(SubElement(root, "meta"), "task")
    about = {"id": "1", "name": video.video, "mode": "interpolation"}
    about |= {} if video.num_frames is None else {"size": str(video.num_frames)}
    for name, value in about.items():
        SubElement(task, name).text = value
    labels = SubElement(task, "labels")
    for name in dict.fromkeys(label.name for label in video.labels):
        _write_label(SubElement(labels, "label"), name)
    SubElement(task, "source").text = video.media
    for number, label in enumerate(video.labels):
        _write_track(root, number, label, video)
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, "unicode") + "\n"


def _write_label(element: Element, name: str) -> None:
    """Describe a label, so that a task can be made with it."""
    SubElement(element, "name").text = name
    SubElement(element, "type").text = "any"
    attribute = SubElement(SubElement(element, "attributes"), "attribute")
    texts = {"name": CONFIDENCE, "mutable": "False", "input_type": "text", "default_value": "", "values": ""}
    for key, value in texts.items():
        SubElement(attribute, key).text = value


def _write_track(root: Element, number: int, label: Event | Segment, video: Annotation) -> None:
    source = "manual" if label.confidence is None else "auto"
    track = SubElement(root, "track", id=str(number), label=label.name, source=source)
    if isinstance(label, Event):
        kind, shape, start = "points", POINT, video.frame(label.at)
        stop = start + 1
    else:
        kind, shape, start, stop = "box", CORNER, video.frame(label.start), video.frame(label.end)
    frames = {start: "0", max(start, stop - 1): "0"}
    if video.num_frames is None or stop < video.num_frames:
        frames[stop] = "1"
    for frame, outside in frames.items():
        about = {"frame": str(frame), "keyframe": "1", "outside": outside, "occluded": "0", "z_order": "0"}
        element = SubElement(track, kind, about | shape)
        if label.confidence is not None:
            SubElement(element, "attribute", name=CONFIDENCE).text = str(label.confidence)


def read_intervals(text: str, place: str) -> list[Annotation]:
    """Read one annotation per file that the rows name; without names, the table is of one file."""
    by_file: dict[str, list[Event | Segment]] = {}
    for line, cells in parse_table(text, place, ("start", "stop", "label")):
        row = Cursor(cells, f"{place}, line {line}")
        start, stop = (_seconds(row.at(column)) for column in ("start", "stop"))
        end = Moment(stop) if stop != start else None
        label = make_label(row.at("label").text(), Moment(start), end, row.optional_number("score"))
        by_file.setdefault(cells.get("filename") or place, []).append(label)
    return [Annotation.of_file(file, labels) for file, labels in by_file.items()]


def _seconds(cell: Cursor) -> float:
    """Return the seconds of hours:minutes:seconds; hours and minutes may be missing."""
    parts = [Cursor(part, cell.place).number() for part in cell.text().split(":")]
    if len(parts) > 3 or min(parts) < 0 or any(part >= 60 for part in parts[1:]):
        raise cell.expected("a time such as 00:01:02.500")
    return sum(part * 60.0**power for power, part in enumerate(reversed(parts)))


def write_intervals(annotations: Sequence[Annotation]) -> str:
    """Write one video."""
    (video,) = annotations
    rows: list[dict[str, Any]] = []
    for number, (label, start, end) in enumerate(video.spans()):
        row = {"id": number, "filename": video.media, "label": label.name}
        row |= {"start": _clock(start), "stop": _clock(end)}
        sure = label.confidence is None
        rows.append(row | {"source": "manual" if sure else "auto", "score": "" if sure else label.confidence})
    return replace_commas(format_csv(rows, columns=COLUMNS), "\t")


def _clock(seconds: float) -> str:
    """Format seconds as hours:minutes:seconds with milliseconds."""
    minutes, rest = divmod(round(1000 * seconds), 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest // 1000:02d}.{rest % 1000:03d}"
