"""One label a frame ↔ key events: what Pouring's records and Penn Action's label files hold.

Letters: N frames of a video, L labels, E key events.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.errors import DataError
from cycleback.prepare.findings import Findings


def events_from_labels(labels: ArrayLike, events: Sequence[str]) -> dict[str, int]:
    """Key events of labels that count phases 0..E: event i, from 1, is the first frame with a label ≥ i.

    So `phases_from_events`, which counts the events at or before a frame, gives back exactly these labels. An
    event whose phase is never reached is left out; a phase that is skipped puts two events on one frame.

    Args:
        labels: (N,) phase of each frame, whole numbers that never fall.
        events: (E,) names of the key events in order of time.

    Raises:
        DataError: a label is not in 0..E or falls back: one frame an event cannot say that.
    """
    phases = _whole_numbers(labels)
    outside = np.flatnonzero((phases < 0) | (phases > len(events)))
    if outside.size:
        frame = int(outside[0])
        raise DataError(f"label {phases[frame]} at frame {frame}, expected 0 to {len(events)}")
    falls = np.flatnonzero(np.diff(phases) < 0)
    if falls.size:
        frame = int(falls[0]) + 1
        raise DataError(f"labels fall from {phases[frame - 1]} to {phases[frame]} at frame {frame}")
    first = np.searchsorted(phases, np.arange(1, len(events) + 1))  # (E,)
    return {name: int(frame) for name, frame in zip(events, first, strict=True) if frame < len(phases)}


def _whole_numbers(labels: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "iufb":
        raise DataError(f"labels are {array.dtype} {array.shape}, expected one whole number a frame")
    if not np.array_equal(array, np.round(array)):
        raise DataError("labels are not whole numbers")
    return array.astype(np.int64)


def stretch_labels(labels: NDArray[np.generic], num_frames: int) -> NDArray[np.generic]:
    """Labels for `num_frames` frames from (L,) when the counts disagree: as CARL's script pairs them.

    With more labels than frames, frame k takes label floor(k L / N). With more frames than labels that script
    keeps frame floor(j N / L) for label j and drops the others; here the others take the label before them.
    """
    count = len(labels)
    if count == 0:
        raise DataError("there are no labels")
    if count >= num_frames:
        return labels[np.arange(num_frames) * count // num_frames]
    starts = np.arange(count) * num_frames // count  # (L,)
    return labels[np.searchsorted(starts, np.arange(num_frames), side="right") - 1]


def labelled_events(
    video: str,
    labels: NDArray[np.generic] | None,
    *,
    num_frames: int,
    events: Sequence[str],
    warnings: Findings,
) -> dict[str, int]:
    """Key events of a video from its labels (L,); {} with a warning where none can be used."""
    if labels is None:
        warnings.add("videos without frame labels", video)
        return {}
    try:
        if len(labels) != num_frames:
            case = f"{video}: {len(labels)} labels, {num_frames} frames"
            warnings.add("videos with as many labels as frames only after stretching the labels", case)
            labels = stretch_labels(labels, num_frames)
        return events_from_labels(labels, events)
    except DataError as error:
        warnings.add("videos left unlabelled, since their labels are no phases in order", f"{video}: {error}")
        return {}
