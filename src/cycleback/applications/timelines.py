"""Write edit decisions as timelines of editing programs: OpenTimelineIO and Final Cut Pro XML.

Both hold all videos in one file, one track per video, with their speed changes. In OpenTimelineIO every
segment is a clip with a linear time warp. In Final Cut every run of segments of one video is one clip, whose
`timeMap` lists the seconds of the video at the seconds of the timeline.
"""

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from cycleback.applications.segments import Segment, Tracks
from cycleback.video import VideoInfo
from cycleback.video.writer import exact_rate

STILL_SPEED = 1e-6  # a slower segment holds one frame
FCPXML_VERSION = "1.9"  # read by Final Cut Pro 10.4.9 and later, and by DaVinci Resolve


def format_otio(
    tracks: Tracks, videos: Sequence[Path], infos: Sequence[VideoInfo], *, fps: float, title: str
) -> str:
    """Format an OpenTimelineIO timeline (JSON) with one video track per track.

    Args:
        tracks: segments of each track, in order.
        videos: the files that `Segment.video` counts, and `infos` about them.
        fps: frames per second of the timeline.
    """
    children = [
        _otio_item("Track.1", name=_track_name(track, videos), kind="Video")
        | {"children": [_otio_clip(segment, videos, infos, fps=fps) for segment in track]}
        for track in tracks
    ]
    stack = _otio_item("Stack.1", name="tracks") | {"children": children}
    timeline = {"OTIO_SCHEMA": "Timeline.1", "metadata": {}, "name": title}
    return json.dumps(timeline | {"global_start_time": _otio_time(0, fps), "tracks": stack}, indent=1) + "\n"


def _otio_clip(
    segment: Segment, videos: Sequence[Path], infos: Sequence[VideoInfo], *, fps: float
) -> dict[str, Any]:
    """Return one segment: the range counts frames of the timeline, from a second of the video."""
    speed, info = segment.speed(fps), infos[segment.video]
    effects = []
    if speed != 1:
        is_still = abs(speed) < STILL_SPEED
        schema, kind = (
            ("FreezeFrame.1", "FreezeFrame") if is_still else ("LinearTimeWarp.1", "LinearTimeWarp")
        )
        warp = {"OTIO_SCHEMA": schema, "metadata": {}, "name": "", "effect_name": kind}
        effects.append(warp | {"time_scalar": 0.0 if is_still else speed})
    media = {
        "OTIO_SCHEMA": "ExternalReference.1",
        "metadata": {},
        "name": videos[segment.video].name,
        "available_range": _otio_range(0, info.duration_s * info.fps, info.fps),
        "available_image_bounds": None,
        "target_url": videos[segment.video].resolve().as_uri(),
    }
    clip = _otio_item("Clip.2", name=videos[segment.video].stem, effects=effects)
    clip["source_range"] = _otio_range(segment.source_start_s * fps, segment.end - segment.start, fps)
    return clip | {
        "media_references": {"DEFAULT_MEDIA": media},
        "active_media_reference_key": "DEFAULT_MEDIA",
    }


def _otio_item(schema: str, *, name: str, **fields: Any) -> dict[str, Any]:
    item: dict[str, Any] = {"OTIO_SCHEMA": schema, "metadata": {}, "name": name, "source_range": None}
    return item | {"effects": [], "markers": [], "enabled": True} | fields


def _otio_range(start: float, duration: float, rate: float) -> dict[str, Any]:
    times = {"start_time": _otio_time(start, rate), "duration": _otio_time(duration, rate)}
    return {"OTIO_SCHEMA": "TimeRange.1"} | times


def _otio_time(value: float, rate: float) -> dict[str, Any]:
    return {"OTIO_SCHEMA": "RationalTime.1", "value": float(value), "rate": float(rate)}


def format_fcpxml(
    tracks: Tracks, videos: Sequence[Path], infos: Sequence[VideoInfo], *, fps: float, title: str
) -> str:
    """Format Final Cut Pro XML: one project, whose tracks are lanes above an empty storyline.

    Args:
        tracks: segments of each track, in order.
        videos: the files that `Segment.video` counts, and `infos` about them.
        fps: frames per second of the timeline.
    """
    rate = exact_rate(fps)
    root = Element("fcpxml", version=FCPXML_VERSION)
    resources = SubElement(root, "resources")
    size = {"width": str(infos[0].width), "height": str(infos[0].height)}
    SubElement(resources, "format", size, id="timeline", frameDuration=_seconds(1 / rate))
    for number, (video, info) in enumerate(zip(videos, infos, strict=True)):
        _add_asset(resources, number, video, info)
    length = max(track[-1].end for track in tracks) / rate
    event = SubElement(SubElement(root, "library"), "event", name=title)
    project = SubElement(event, "project", name=title)
    sequence = SubElement(
        project, "sequence", format="timeline", duration=_seconds(length), tcStart="0s", tcFormat="NDF"
    )
    gap = SubElement(SubElement(sequence, "spine"), "gap", name="Gap", offset="0s", start="0s")
    gap.set("duration", _seconds(length))
    for lane, track in enumerate(tracks, start=1):
        for number, run in groupby(track, key=attrgetter("video")):
            _add_clip(gap, list(run), lane=lane, name=videos[number].stem, rate=rate)
    ElementTree.indent(root)
    body = ElementTree.tostring(root, "unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE fcpxml>\n{body}\n'


def _add_asset(resources: Element, number: int, video: Path, info: VideoInfo) -> None:
    rate = exact_rate(info.fps)
    size = {"width": str(info.width), "height": str(info.height)}
    SubElement(resources, "format", size, id=f"format{number}", frameDuration=_seconds(1 / rate))
    asset = SubElement(resources, "asset", id=f"video{number}", name=video.stem, start="0s", hasVideo="1")
    asset.set("format", f"format{number}")
    asset.set("duration", _seconds(Fraction(round(info.duration_s * rate)) / rate))
    if info.has_audio:
        asset.set("hasAudio", "1")
    SubElement(asset, "media-rep", kind="original-media", src=video.resolve().as_uri())


def _add_clip(parent: Element, run: Sequence[Segment], *, lane: int, name: str, rate: Fraction) -> None:
    """Add the segments of one video that follow each other, as one retimed clip."""
    first, last = run[0], run[-1]
    clip = SubElement(parent, "asset-clip", ref=f"video{first.video}", name=name, lane=str(lane), start="0s")
    clip.set("offset", _seconds(first.start / rate))
    clip.set("duration", _seconds((last.end - first.start) / rate))
    time_map = SubElement(clip, "timeMap", frameSampling="nearest-neighbor")
    for frame, second in _knots(run):
        point = {"time": _seconds((frame - first.start) / rate), "interp": "linear"}
        SubElement(time_map, "timept", point, value=_seconds(Fraction(second).limit_denominator(90_000)))


def _knots(run: Sequence[Segment]) -> Iterator[tuple[int, float]]:
    """Yield the output frame and the second of the video where segments begin, and where the last ends."""
    for segment in run:
        yield segment.start, segment.source_start_s
    yield run[-1].end, run[-1].source_end_s


def _track_name(track: Sequence[Segment], videos: Sequence[Path]) -> str:
    names = {videos[segment.video].stem for segment in track}
    return names.pop() if len(names) == 1 else "turns"


def _seconds(value: Fraction) -> str:
    """Format seconds as a fraction, as Final Cut counts them."""
    return f"{value.numerator}s" if value.denominator == 1 else f"{value.numerator}/{value.denominator}s"
