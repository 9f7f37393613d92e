"""The project's own JSON, which keeps everything an `Annotation` knows."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment
from cycleback.annotations.cursor import Cursor, dump_json, parse_json
from cycleback.annotations.format import Format

NAME = "cycleback-annotations"


def read(text: str, place: str) -> list[Annotation]:
    """Every video of the file."""
    return [_annotation(video) for video in parse_json(text, place).each("videos")]


def _annotation(video: Cursor) -> Annotation:
    file = video.find("file")
    return Annotation(
        video.at("video").text(),
        tuple(
            Event(event.at("name").text(), _moment(event.at("at")), event.optional("confidence"))
            for event in video.each("events")
        ),
        tuple(
            Segment(
                segment.at("name").text(),
                _moment(segment.at("start")),
                _moment(segment.at("end")),
                segment.optional("confidence"),
            )
            for segment in video.each("segments")
        ),
        file=None if file is None else file.text(),
        fps=video.optional("fps"),
        num_frames=video.optional_whole("num_frames"),
        duration=video.optional("duration"),
    )


def _moment(value: Cursor) -> Moment:
    frame = value.optional_whole("frame")
    return Moment(value.at("seconds").number() if frame is None else value.optional("seconds"), frame)


def write(annotations: Sequence[Annotation]) -> str:
    """All that is known; what is not known is left out."""
    return dump_json({"format": NAME, "version": 1, "videos": [_known(asdict(each)) for each in annotations]})


def _known(value: Any) -> Any:
    """`value` without what is None."""
    if isinstance(value, dict):
        return {key: _known(inside) for key, inside in value.items() if inside is not None}
    return [_known(inside) for inside in value] if isinstance(value, list | tuple) else value


FORMAT = Format("json", (".json",), read, write, marks=(f'"{NAME}"',))
