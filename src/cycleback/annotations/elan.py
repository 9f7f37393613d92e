"""ELAN .eaf: XML with tiers of annotations between time slots in whole milliseconds; one file per video.

The tiers "events" and "phases" are written, and below each a tier with the confidence of every annotation.
ELAN shows only spans, so a key event is written one frame long. Annotations of a tier must not overlap: what
would overlap goes to a further tier, "events 2" or "phases 2". All tiers are read: annotations in a tier
whose name starts with "event" are key events at their start; those in other tiers are segments.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import PurePath
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

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

CONFIDENCE = " confidence"  # ends the name of a tier of confidences
SCHEMA = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
SPAN, NOTE = "default-lt", "confidence"  # linguistic types: with its own times, or tied to an annotation
MAX_DIGITS = 15  # of a time in milliseconds
Span = tuple[str, int, int, float | None]  # text, start and end in milliseconds, confidence


def read(text: str, place: str) -> list[Annotation]:
    """Read the one video of the file; it is named after the media file, or after the .eaf."""
    root = parse_xml(text, place)
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
    return [Annotation(video_name(file or place), *split_labels(labels), file=file or None)]


def _tier_labels(
    tier: Element, slots: dict[str | None, str | None], notes: dict[str, str], place: str
) -> Iterator[Event | Segment]:
    is_event = tier.get("TIER_ID", "").lower().startswith("event")
    for item in tier.iter("ALIGNABLE_ANNOTATION"):
        key = item.get("ANNOTATION_ID", "")
        name = item.findtext("ANNOTATION_VALUE", "").strip()
        here = f"{place}, tier {tier.get('TIER_ID')}, annotation {key}"
        start, end = (_moment(slots, item.get(f"TIME_SLOT_REF{side}"), here) for side in "12")
        note = notes.get(key)
        confidence = Cursor(note, f"{here}, confidence").number() if note else None
        if name:
            yield make_label(name, start, None if is_event else end, confidence)


def _moment(slots: dict[str | None, str | None], slot: str | None, place: str) -> Moment:
    value = slots.get(slot) or ""
    if not (value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS):
        raise DataError(f"{place}: time slot {slot} has no time in milliseconds, but {value[:20]!r}")
    return Moment(int(value) / 1000)


def write(annotations: Sequence[Annotation]) -> str:
    """Write one video; ELAN looks for the media file beside the .eaf."""
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
    order, ids = SubElement(root, "TIME_ORDER"), {prefix: count(1) for prefix in ("ts", "a")}
    spans: dict[str, list[Span]] = {"events": [], "phases": []}
    for label, start_s, end_s in video.spans():
        is_event, start = isinstance(label, Event), round(1000 * start_s)
        end = start + max(1, round(1000 * video.frame_s)) if is_event else round(1000 * end_s)
        spans["events" if is_event else "phases"].append((label.name, start, end, label.confidence))
    for tier, found in spans.items():
        for number, apart in enumerate(_split_overlaps(found), start=1):
            _write_tier(root, order, tier if number == 1 else f"{tier} {number}", apart, ids)
    _write_types(root)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _split_overlaps(spans: Sequence[Span]) -> list[list[Span]]:
    """Sort spans by time into as few lists as possible, at least one, without an overlap in any of them."""
    tiers: list[list[Span]] = [[]]
    for span in sorted(spans, key=lambda span: span[1:3]):
        free = next((tier for tier in tiers if not tier or tier[-1][2] <= span[1]), None)
        if free is None:
            free = []
            tiers.append(free)
        free.append(span)
    return tiers


def _write_tier(
    root: Element, order: Element, tier: str, spans: Sequence[Span], ids: Mapping[str, Iterator[int]]
) -> None:
    parent = SubElement(root, "TIER", LINGUISTIC_TYPE_REF=SPAN, TIER_ID=tier)
    notes = SubElement(root, "TIER", LINGUISTIC_TYPE_REF=NOTE, PARENT_REF=tier, TIER_ID=tier + CONFIDENCE)
    for name, start, end, confidence in spans:
        slots = {f"TIME_SLOT_REF{side}": f"ts{next(ids['ts'])}" for side in "12"}
        for slot, time in zip(slots.values(), (start, end), strict=True):
            SubElement(order, "TIME_SLOT", TIME_SLOT_ID=slot, TIME_VALUE=str(time))
        key = f"a{next(ids['a'])}"
        item = SubElement(
            SubElement(parent, "ANNOTATION"), "ALIGNABLE_ANNOTATION", {"ANNOTATION_ID": key} | slots
        )
        SubElement(item, "ANNOTATION_VALUE").text = name
        if confidence is not None:
            keys = {"ANNOTATION_ID": f"a{next(ids['a'])}", "ANNOTATION_REF": key}
            note = SubElement(SubElement(notes, "ANNOTATION"), "REF_ANNOTATION", keys)
            SubElement(note, "ANNOTATION_VALUE").text = str(confidence)


def _write_types(root: Element) -> None:
    plain = {"GRAPHIC_REFERENCES": "false", "LINGUISTIC_TYPE_ID": SPAN, "TIME_ALIGNABLE": "true"}
    SubElement(root, "LINGUISTIC_TYPE", plain)
    tied = {"GRAPHIC_REFERENCES": "false", "LINGUISTIC_TYPE_ID": NOTE, "TIME_ALIGNABLE": "false"}
    SubElement(root, "LINGUISTIC_TYPE", {"CONSTRAINTS": "Symbolic_Association", **tied})
    about = "1-1 association with a parent annotation"
    SubElement(root, "CONSTRAINT", DESCRIPTION=about, STEREOTYPE="Symbolic_Association")
