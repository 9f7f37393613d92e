"""Key events and phase labels of Pouring and Penn Action, as the paper uses them.

Paper: Dwibedi et al., "Temporal Cycle-Consistency Learning", CVPR 2019, arXiv:1904.07846, table in Sec. 4.
Letters: N frames of a video, L labels, E key events.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.errors import DataError
from cycleback.prepare.writer import DatasetWriter


@dataclass(frozen=True)
class PaperAction:
    """Key events in order of time, and the number of videos of each split. E events make E + 1 phases."""

    events: tuple[str, ...]
    train: int
    val: int


POURING = PaperAction(
    ("hand touches bottle", "liquid starts exiting", "pouring complete", "bottle back on table"), 70, 14
)

# The names are those of the data set's own annotations; the order is the paper's.
PENN_ACTION = {
    "baseball_pitch": PaperAction(("knee fully up", "arm fully stretched out", "ball release"), 103, 63),
    "baseball_swing": PaperAction(("bat swung back fully", "bat hits ball"), 113, 57),
    "bench_press": PaperAction(("bar fully down",), 69, 71),
    "bowl": PaperAction(("ball swung fully back", "ball release"), 134, 85),
    "clean_and_jerk": PaperAction(
        ("bar at hip", "fully squatting", "standing", "begin thrusting", "beginning balance"), 40, 42
    ),
    "golf_swing": PaperAction(("stick swung fully back", "stick hits ball"), 87, 77),
    "jumping_jacks": PaperAction(
        ("hands at shoulder (going up)", "hands above head", "hands at shoulders (going down)"), 56, 56
    ),
    "pullup": PaperAction(("chin above bar",), 98, 101),
    "pushup": PaperAction(("head at floor",), 102, 105),
    "situp": PaperAction(("abs fully crunched",), 50, 50),
    "squat": PaperAction(
        ("hips at knees (going down)", "hips at floor", "hips at knee (going up)"), 114, 116
    ),
    "tennis_forehand": PaperAction(("racket swung fully back", "racket touches ball"), 79, 74),
    "tennis_serve": PaperAction(
        ("ball released from hand", "racket swung fully back", "ball touches racket"), 115, 69
    ),
}

LEFT_OUT = ("jump_rope", "strum_guitar")  # of Penn Action's fifteen: no unambiguous key events


def compare_counts(
    writer: DatasetWriter, papers: Mapping[str, PaperAction], actions: Sequence[str]
) -> list[str]:
    """List splits of `actions` with fewer videos than in the paper; those with more become a warning."""
    missing = []
    for action, paper in papers.items():
        for split, wanted in (("train", paper.train), ("val", paper.val)) if action in actions else ():
            count = writer.videos.get(action, {}).get(split, 0)
            name = f"{action} {split}".strip()
            if count > wanted:
                case = f"{name} {count}, paper {wanted}"
                writer.warn("splits of an action with more videos than in the paper", case)
            elif count < wanted:
                missing.append(f"{name}: {count} of the paper's {wanted} videos")
    return missing


def find_events(
    video: str,
    labels: NDArray[np.generic] | None,
    *,
    num_frames: int,
    events: Sequence[str],
    writer: DatasetWriter,
) -> dict[str, int]:
    """Return the key events of a video from its phase labels (L,); {} with a warning if they are unusable."""
    if labels is None:
        writer.warn("videos without frame labels", video)
        return {}
    try:
        if len(labels) != num_frames:
            case = f"{video}: {len(labels)} labels, {num_frames} frames"
            writer.warn("videos whose labels were stretched to the number of frames", case)
            labels = stretch_labels(labels, num_frames)
        return events_from_labels(labels, events)
    except DataError as error:
        kind = "videos left unlabelled, because their labels are not phases in order"
        writer.warn(kind, f"{video}: {error}")
        return {}


def events_from_labels(labels: ArrayLike, events: Sequence[str]) -> dict[str, int]:
    """Convert labels (N,) that count phases 0..E to E key events: event i, from 1, is the first frame ≥ i.

    `phases_from_events`, which counts the events at or before each frame, gives back exactly these labels. An
    event whose phase is never reached is left out; a skipped phase puts two events on one frame. A label that
    decreases is a `DataError`: one frame per event cannot express it. `events` are in order of time.
    """
    array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "iufb":
        raise DataError(f"labels are {array.dtype} {array.shape}, expected one integer per frame")
    if not np.array_equal(array, np.round(array)):
        raise DataError("labels are not integers")
    phases = array.astype(np.int64)
    outside = np.flatnonzero((phases < 0) | (phases > len(events)))
    if outside.size:
        frame = int(outside[0])
        raise DataError(f"label {phases[frame]} at frame {frame}, expected 0 to {len(events)}")
    falls = np.flatnonzero(np.diff(phases) < 0)
    if falls.size:
        frame = int(falls[0]) + 1
        raise DataError(f"labels decrease from {phases[frame - 1]} to {phases[frame]} at frame {frame}")
    first = np.searchsorted(phases, np.arange(1, len(events) + 1))  # (E,)
    return {name: int(frame) for name, frame in zip(events, first, strict=True) if frame < len(phases)}


def stretch_labels(labels: NDArray[np.generic], num_frames: int) -> NDArray[np.generic]:
    """Stretch labels (L,) to `num_frames` frames, as CARL's script pairs them.

    With more labels than frames, frame k takes label floor(k L / N). With more frames than labels, that
    script keeps frame floor(j N / L) for label j and drops the others; here they take the label before them.
    """
    count = len(labels)
    if count == 0:
        raise DataError("there are no labels")
    if count >= num_frames:
        return labels[np.arange(num_frames) * count // num_frames]
    starts = np.arange(count) * num_frames // count  # (L,)
    return labels[np.searchsorted(starts, np.arange(num_frames), side="right") - 1]
