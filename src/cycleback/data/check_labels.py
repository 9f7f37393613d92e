"""What can be wrong with labels: each check yields a problem with the place and what to do.

Letters: N frames of a video.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cycleback.data.labels import nearest_frame
from cycleback.data.names import NameIndex
from cycleback.data.records import Dataset, Label, VideoRecord
from cycleback.data.report import Level, Problem

Times = Mapping[str, NDArray[np.float64]]


def label_problems(dataset: Dataset, times: Times) -> Iterator[Problem]:
    """Every problem of the labels; `times` holds the frame times (N,) of the videos that can be read."""
    index = NameIndex(dataset.names)
    yield from _unknown_videos(dataset.labels, index)
    yield from _repeated(dataset.labels)
    for label in dataset.labels:
        yield from _outside(label, times)
    for action in dataset.actions:
        records = [record for record in dataset.records if record.action == action]
        yield from _missing_events(records)
        yield from _unusual_order(records)


def _unknown_videos(labels: Sequence[Label], index: NameIndex) -> Iterator[Problem]:
    known = set(index.names)
    for label in {label.video: label for label in reversed(labels)}.values():
        if label.video not in known:
            guess = index.closest(label.video)
            advice = f"Did you mean {guess!r}?" if guess else "Remove its rows, or add the video."
            yield Problem("error", label.video, f"{label.source} labels a video that is not here. {advice}")


def _repeated(labels: Sequence[Label]) -> Iterator[Problem]:
    first: dict[tuple[str, str], Label] = {}
    for label in labels:
        earlier = first.setdefault((label.video, label.event), label)
        if earlier is not label:
            again = f"{label.event!r} is at {earlier.value:g} and again at {label.value:g} ({label.source})"
            level: Level = "warning" if earlier.value == label.value else "error"
            yield Problem(level, label.video, f"{again}. The first counts: remove one of the rows.")


def _outside(label: Label, times: Times) -> Iterator[Problem]:
    where = f"{label.event!r} is at {label.unit} {label.value:g} ({label.source})"
    if label.value < 0:
        advice = "Frames count from 0" if label.unit == "frame" else "Seconds count from the first frame"
        yield Problem("error", label.video, f"{where}, before the start. {advice}: correct the row.")
    elif label.video in times:
        shown = times[label.video]
        frame = int(label.value) if label.unit == "frame" else nearest_frame(label.value, shown)
        if frame >= len(shown):
            end = f"frame {len(shown) - 1}" if label.unit == "frame" else f"{shown[-1]:.3f} s"
            yield Problem("error", label.video, f"{where}, but the video ends at {end}. Correct the row.")


def _missing_events(records: Sequence[VideoRecord]) -> Iterator[Problem]:
    """Videos without an event that others of the action have; few-label evaluation needs all or none."""
    have = Counter(event for record in records for event in record.events)
    labelled = sum(bool(record.events) for record in records)
    for record in records:
        missing = [event for event in have if event not in record.events]
        if labelled and not record.events:
            message = f"has no labels, {labelled} of {len(records)} videos have."
            yield Problem(
                "warning", record.name, f"{message} Training needs none; label it to evaluate on it."
            )
        elif missing:
            counts = ", ".join(
                f"{event!r} (labelled in {have[event]} of {labelled} videos)" for event in missing
            )
            yield Problem(
                "warning", record.name, f"misses {counts}. Add it, or the phases of this video differ."
            )


def _unusual_order(records: Sequence[VideoRecord]) -> Iterator[Problem]:
    """Videos in which two events come in another order than in most videos of the action."""
    before: Counter[tuple[str, str]] = Counter()
    for record in records:
        before.update(_ordered_pairs(record))
    for record in records:
        for first, second in _ordered_pairs(record):
            same, opposite = before[first, second], before[second, first]
            if same < opposite:
                message = (
                    f"{first!r} ({record.events[first]:g}) comes before {second!r} "
                    f"({record.events[second]:g}), but after it in {opposite} of {same + opposite} videos. "
                    "Check both labels."
                )
                yield Problem("warning", record.name, message)


def _ordered_pairs(record: VideoRecord) -> Iterator[tuple[str, str]]:
    """Pairs (earlier event, later event); events at one moment have no order."""
    for first, second in combinations(sorted(record.events, key=lambda event: record.events[event]), 2):
        if record.events[first] < record.events[second]:
            yield first, second
