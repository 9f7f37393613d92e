"""Labels of the training videos as phases, for the losses that learn from them.

Shapes: N frames of a video.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.data import VideoRecord, event_frames, phases_from_events
from cycleback.errors import DataError

UNLABELLED = -1


@dataclass(frozen=True)
class PhaseLabels:
    """The phases of videos; each action has numbers of its own.

    Attributes:
        videos: (N,) int64 for each video; all -1 where it lacks an event that others of its action have.
        num_phases: of all actions together.
    """

    videos: list[Tensor]
    num_phases: int


def label_phases(
    records: Sequence[VideoRecord], times: Mapping[str, NDArray[np.float64]], *, batch_size: int
) -> PhaseLabels:
    """Phases of each record from its key events.

    Args:
        records: the training videos.
        times: name → presentation time (N,) of each frame in seconds.
        batch_size: videos a batch; each batch must hold one with labels.
    """
    first_phase, wanted = (
        0,
        {action: _events(records, action) for action in sorted({r.action for r in records})},
    )
    starts: dict[str, int] = {}
    for action, events in wanted.items():
        _require_labels(action, [r for r in records if r.action == action], events, batch_size)
        starts[action] = first_phase
        first_phase += len(events) + 1
    videos = [_phases(r, times[r.name], wanted[r.action], starts[r.action]) for r in records]
    return PhaseLabels(videos, first_phase)


def _events(records: Sequence[VideoRecord], action: str) -> set[str]:
    return {event for record in records if record.action == action for event in record.events}


def _phases(record: VideoRecord, times: NDArray[np.float64], wanted: set[str], first_phase: int) -> Tensor:
    if not wanted <= record.events.keys():
        return torch.full((len(times),), UNLABELLED)
    frames = list(event_frames(record, times).values())
    return torch.from_numpy(phases_from_events(frames, len(times)) + first_phase)


def _require_labels(action: str, records: Sequence[VideoRecord], wanted: set[str], batch_size: int) -> None:
    """Refuse an action of which a batch could hold no labelled video."""
    lacking = [record.name for record in records if not wanted or not wanted <= record.events.keys()]
    if len(lacking) >= min(batch_size, len(records)):
        of = f"action {action!r}" if action else "the data set"
        raise DataError(
            f"the supervised loss needs labels: {len(lacking)} of {len(records)} training videos of {of} "
            f"lack key events (the first: {lacking[0]}). Label them in labels.csv, "
            "or set loss.weights.supervised=0."
        )
