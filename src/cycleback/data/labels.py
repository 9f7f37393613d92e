"""Key events of videos: labels.csv, frames and seconds, and the phases between events.

labels.csv has one row per event: `video,event,frame` (0-based) or `video,event,seconds` (presentation time;
the first frame is at 0). The suffix of `video` is optional. If a row has both, `frame` is used.

Letters: N frames of a video, E key events of a video.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.annotations.text_formats import read_rows
from cycleback.data.records import Label, Unit, VideoRecord
from cycleback.errors import DataError
from cycleback.files import write_text
from cycleback.reading import Cursor, read_text
from cycleback.tables import format_csv

LABELS_FILE = "labels.csv"


def read_labels(path: Path | str) -> tuple[Label, ...]:
    """Read every row of a labels file, without checking that its videos exist."""
    return tuple(_make_label(row) for row in read_rows(read_text(path), str(path)))


def _make_label(row: Cursor) -> Label:
    unit: Unit = "frame" if row.value.get("frame") else "seconds"
    value = row.at("frame").integer() if unit == "frame" else row.at("seconds").number()
    return Label(row.value["video"], row.value["event"], float(value), unit, row.place)


def write_labels(
    path: Path | str,
    events: Mapping[str, Mapping[str, float]],
    *,
    unit: Unit = "frame",
    overwrite: bool = False,
) -> Path:
    """Write `events` (video → event → frame or second) as a labels file."""
    rows = [
        {"video": video, "event": event, unit: int(value) if unit == "frame" else float(value)}
        for video, times in events.items()
        for event, value in sorted(times.items(), key=lambda item: item[1])
    ]
    return write_text(path, format_csv(rows, columns=("video", "event", unit)), overwrite=overwrite)


def collect_events(labels: Sequence[Label]) -> tuple[dict[str, float], Unit]:
    """Return the events of one video sorted by time, and their unit; the first row of an event counts."""
    events: dict[str, float] = {}
    for label in labels:
        if label.unit != labels[0].unit:
            sources = f"{labels[0].source}; {label.source}"
            raise DataError(
                f"{label.video} has labels in frames and in seconds ({sources}). Use only one unit."
            )
        events.setdefault(label.event, label.value)
    ordered = dict(sorted(events.items(), key=lambda item: item[1]))
    return ordered, (labels[0].unit if labels else "frame")


def event_order(records: Iterable[VideoRecord]) -> tuple[str, ...]:
    """Sort all event names by their mean position (0 first, 1 last) among the events of their videos."""
    positions: dict[str, list[float]] = {}
    for record in records:
        ordered = sorted(record.events, key=lambda event: record.events[event])
        for place, event in enumerate(ordered):
            positions.setdefault(event, []).append(place / max(1, len(ordered) - 1))
    return tuple(sorted(positions, key=lambda event: float(np.mean(positions[event]))))


def event_frames(record: VideoRecord, times: NDArray[np.float64]) -> dict[str, int]:
    """Return the frame index of each key event of `record`, sorted by time.

    A label in seconds becomes the frame nearest in presentation `times` (N,), which also works for variable
    frame rates. An event outside the video is a `DataError`.
    """
    num_frames = len(times)
    frames: dict[str, int] = {}
    for event, value in record.events.items():
        frame = int(value) if record.unit == "frame" else nearest_frame(value, times)
        if not 0 <= frame < num_frames:
            last = f"frame {num_frames - 1}" if record.unit == "frame" else f"{times[-1]:.3f} s"
            raise DataError(
                f"{record.name}: {event!r} is labelled at {record.unit} {value:g}, but the video runs from 0 "
                f"to {last}. Correct {LABELS_FILE}."
            )
        frames[event] = frame
    return dict(sorted(frames.items(), key=lambda item: item[1]))


def nearest_frame(seconds: float, times: NDArray[np.float64]) -> int:
    """Return the frame nearest to `seconds`; -1 before the first frame, N past the end of the last."""
    step = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    if seconds < -step / 2:
        return -1
    if seconds > times[-1] + step:
        return len(times)
    right = int(np.searchsorted(times, seconds).clip(1, max(1, len(times) - 1)))
    left = right - 1
    is_left_nearer = right >= len(times) or seconds - times[left] <= times[right] - seconds
    return left if is_left_nearer else right


def phases_from_events(event_frames: ArrayLike, num_frames: int) -> NDArray[np.int64]:
    """Return the phase of each frame (N,): the number of key events at or before it, from 0 to E.

    `event_frames` (E,) are the frames of the key events, in any order.
    """
    events = np.sort(np.asarray(event_frames, dtype=np.int64).reshape(-1))
    if events.size and (events[0] < 0 or events[-1] >= num_frames):
        outside = int(events[0] if events[0] < 0 else events[-1])
        raise ValueError(f"event frame {outside} is outside a video of {num_frames} frames")
    return np.searchsorted(events, np.arange(num_frames), side="right").astype(np.int64)
