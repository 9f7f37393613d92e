"""ELAN .eaf: XML with tiers of annotations between time slots of whole milliseconds; one file a video.

Written are the tiers "events" and "phases", and under each a tier with the confidence of every annotation.
ELAN knows stretches only, so a key event is shown for one frame. Read are all tiers: annotations of a tier
whose name begins with "event" are key events at their start, those of other tiers are segments.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment, sorted_out, video_name
from cycleback.annotations.format import Format
from cycleback.errors import DataError

CONFIDENCE = " confidence"  # follows the name of the tier
SCHEMA = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
STRETCH, NOTE = "default-lt", "confidence"  # linguistic types: with times of their own, or tied to another
Span = tuple[str, int, int, float | None]  # text, start and end in milliseconds, confidence


def read(text: str, place: str) -> list[Annotation]:
    """The one video of the file; its name is that of the media file, or of the .eaf."""
    try:
        root = ElementTree.fromstring(text.lstrip("\ufeff").encode())
    except ElementTree.ParseError as error:
        raise DataError(f"{place}, line {error.position[0]}: not XML ({error})") from error
    slots = {slot.get("TIME_SLOT_ID"): slot.get("TIME_VALUE") for slot in root.iter("TIME_SLOT")}
    notes = {
        note.get("ANNOTATION_REF", ""): note.findtext("ANNOTATION_VALUE", "")
        for tier in root.iter("TIER")
        if tier.get("TIER_ID", "").endswith(CONFIDENCE)
        for note in tier.iter("REF_ANNOTATION")
    }
    labels = [label for tier in root.iter("TIER") for label in _tier_labels(tier, slots, notes, place)]
    media = root.find("HEADER/MEDIA_DESCRIPTOR")
    file = None if media is None else media.get("RELATIVE_MEDIA_URL") or media.get("MEDIA_URL")
    return [Annotation(video_name(file or place), *sorted_out(labels), file=file or None)]


def _tier_labels(
    tier: Element, slots: dict[str | None, str | None], notes: dict[str, str], place: str
) -> Iterator[Event | Segment]:
    is_event = tier.get("TIER_ID", "").lower().startswith("event")
    for item in tier.iter("ALIGNABLE_ANNOTATION"):
        key = item.get("ANNOTATION_ID", "")
        name = item.findtext("ANNOTATION_VALUE", "").strip()
        here = f"{place}, tier {tier.get('TIER_ID')}, annotation {key}"
        start, end = (_moment(slots, item.get(f"TIME_SLOT_REF{side}"), here) for side in "12")
        sure = _confidence(notes.get(key), here)
        if name:
            yield Event(name, start, sure) if is_event else Segment(name, start, end, sure)


def _moment(slots: dict[str | None, str | None], slot: str | None, place: str) -> Moment:
    value = slots.get(slot) or ""
    if not value.isdigit():
        raise DataError(f"{place}: time slot {slot} has no time in milliseconds, but {value!r}")
    return Moment(int(value) / 1000)


def _confidence(text: str | None, place: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError as error:
        raise DataError(f"{place}: the confidence is {text!r}, expected a number") from error


def write(annotations: Sequence[Annotation]) -> str:
    """One video as ELAN opens it, with the media file beside."""
    (video,) = annotations
    root = Element(
        "ANNOTATION_DOCUMENT", AUTHOR="", DATE="1970-01-01T00:00:00+00:00", FORMAT="3.0", VERSION="3.0"
    )
    root.set("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance")
    root.set("xsi:noNamespaceSchemaLocation", SCHEMA)
    header = SubElement(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    path = PurePath(video.media)
    url = path.as_uri() if path.is_absolute() else video.media
    SubElement(
        header, "MEDIA_DESCRIPTOR", MEDIA_URL=url, MIME_TYPE="video/mp4", RELATIVE_MEDIA_URL=video.media
    )
    order = SubElement(root, "TIME_ORDER")
    new_id = _numbered()
    for tier, spans in (("events", _event_spans(video)), ("phases", _segment_spans(video))):
        _write_tier(root, order, tier, spans, new_id)
    _write_types(root)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _event_spans(video: Annotation) -> list[Span]:
    shown = max(1, round(1000 * video.frame_s))
    starts = [round(1000 * video.seconds(event.at)) for event in video.events]
    return [
        (e.name, start, start + shown, e.confidence) for e, start in zip(video.events, starts, strict=True)
    ]


def _segment_spans(video: Annotation) -> list[Span]:
    return [
        (
            each.name,
            round(1000 * video.seconds(each.start)),
            round(1000 * video.seconds(each.end)),
            each.confidence,
        )
        for each in video.segments
    ]


def _write_tier(
    root: Element, order: Element, tier: str, spans: Sequence[Span], new_id: Callable[[str], str]
) -> None:
    stretches = SubElement(root, "TIER", LINGUISTIC_TYPE_REF=STRETCH, TIER_ID=tier)
    notes = SubElement(root, "TIER", LINGUISTIC_TYPE_REF=NOTE, PARENT_REF=tier, TIER_ID=tier + CONFIDENCE)
    for name, start, end, sure in spans:
        ends = {f"TIME_SLOT_REF{side}": new_id("ts") for side in "12"}
        for slot, time in zip(ends.values(), (start, end), strict=True):
            SubElement(order, "TIME_SLOT", TIME_SLOT_ID=slot, TIME_VALUE=str(time))
        key = new_id("a")
        item = SubElement(
            SubElement(stretches, "ANNOTATION"), "ALIGNABLE_ANNOTATION", {"ANNOTATION_ID": key} | ends
        )
        SubElement(item, "ANNOTATION_VALUE").text = name
        if sure is not None:
            note = SubElement(
                SubElement(notes, "ANNOTATION"),
                "REF_ANNOTATION",
                ANNOTATION_ID=new_id("a"),
                ANNOTATION_REF=key,
            )
            SubElement(note, "ANNOTATION_VALUE").text = str(sure)


def _write_types(root: Element) -> None:
    SubElement(
        root, "LINGUISTIC_TYPE", GRAPHIC_REFERENCES="false", LINGUISTIC_TYPE_ID=STRETCH, TIME_ALIGNABLE="true"
    )
    SubElement(
        root,
        "LINGUISTIC_TYPE",
        CONSTRAINTS="Symbolic_Association",
        GRAPHIC_REFERENCES="false",
        LINGUISTIC_TYPE_ID=NOTE,
        TIME_ALIGNABLE="false",
    )
    SubElement(
        root,
        "CONSTRAINT",
        DESCRIPTION="1-1 association with a parent annotation",
        STEREOTYPE="Symbolic_Association",
    )


def _numbered() -> Callable[[str], str]:
    """Names such as ts1, a1, ts2, each once."""
    counts: dict[str, int] = {}

    def new_id(prefix: str) -> str:
        counts[prefix] = counts.get(prefix, 0) + 1
        return f"{prefix}{counts[prefix]}"

    return new_id


FORMAT = Format("elan", (".eaf",), read, write, one_video=True)
