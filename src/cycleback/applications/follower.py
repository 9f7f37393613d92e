"""Follow an action while it happens: dynamic time warping that sees only the past.

One row of the accumulated cost is kept, one number a frame of the reference, so memory and time for a frame
do not grow with the stream. The position is the end of the cheapest path so far: the alignment is open at
its end, and what comes later never changes what was said.

Shapes: S frames of the reference, D embedding size.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment import squared_distances
from cycleback.alignment.dtw import extend_row


@dataclass(frozen=True)
class Position:
    """Where the stream is.

    Attributes:
        frame: of the reference.
        progress: in [0, 1].
        deviation: squared distance to that frame, over the median distance between frames of the reference:
            about 1 says that the picture is no more like this moment than moments are like each other.
        phase: key events passed; None where the reference is not labelled.
    """

    frame: int
    progress: float
    deviation: float
    phase: int | None


class Follower:
    """Places one embedding after another in a reference; never goes back.

    Example:
        >>> follower = Follower([[0.0], [1.0], [2.0]])
        >>> [follower.push([value]).frame for value in (0.1, 0.2, 0.9, 2.0)]
        [0, 0, 1, 2]
    """

    def __init__(self, reference: ArrayLike, *, events: Mapping[str, int] | None = None) -> None:
        """Follow `reference` (S, D); `events` are its key events, by frame."""
        self.reference = np.asarray(reference, dtype=np.float64)
        if self.reference.ndim != 2 or len(self.reference) < 2:
            raise ValueError(f"the reference must be (S >= 2, D), got {self.reference.shape}")
        self._typical = _typical_distance(self.reference)
        self._events = None if not events else np.sort(list(events.values()))
        self._cost: NDArray[np.float64] | None = None
        self._frame = 0

    def push(self, embedding: ArrayLike) -> Position:
        """The position after one more frame, `embedding` (D,)."""
        row = np.asarray(embedding, dtype=np.float64)
        distances = squared_distances(row[None], self.reference)[0]  # (S,)
        self._cost = extend_row(self._cost, distances)
        self._frame = max(self._frame, int(self._cost.argmin()))
        return Position(
            frame=self._frame,
            progress=self._frame / (len(self.reference) - 1),
            deviation=float(distances[self._frame]) / self._typical,
            phase=None
            if self._events is None
            else int(np.searchsorted(self._events, self._frame, side="right")),
        )


def _typical_distance(reference: NDArray[np.float64]) -> float:
    """Median squared distance between different frames of the reference, of at most 500 of them."""
    some = reference[:: -(-len(reference) // 500)] if len(reference) > 500 else reference
    distances = squared_distances(some, some)[np.triu_indices(len(some), k=1)]
    return float(np.median(distances)) or 1.0
