"""Progress as a signal: how far an action has come, and how far it still is from its goal.

Shapes: N frames of a video, S frames of the reference, D embedding size.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment import align
from cycleback.alignment.align import AlignmentMethod
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProgressSignal:
    """Where in the action each frame is.

    Attributes:
        progress: (N,) in [0, 1], by the clock of the reference.
        confidence: (N,) in [0, 1], how sure each match is.
        indices: (N,), the frame of the reference.
    """

    progress: Floats
    confidence: Floats
    indices: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Goal:
    """Where good takes end, as in XIRL (Zakka et al., 2021): a reward for getting there.

    Attributes:
        embedding: (D,), the mean last frame.
        scale: one over the mean distance of the first frames, so that rewards begin near -1.
    """

    embedding: Floats
    scale: float

    def reward(self, embeddings: ArrayLike) -> Floats:
        """Reward (N,) of each frame of `embeddings` (N, D): 0 at the goal, about -1 where takes begin."""
        rows = np.asarray(embeddings, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.embedding):
            raise ValueError(f"embeddings must be (N, D={len(self.embedding)}), got {rows.shape}")
        distances: Floats = np.linalg.norm(rows - self.embedding, axis=1)
        return -self.scale * distances


def progress(
    embeddings: ArrayLike,
    reference: ArrayLike,
    *,
    times: ArrayLike | None = None,
    method: AlignmentMethod = "dtw",
) -> ProgressSignal:
    """How far the action has come at each frame.

    Args:
        embeddings: (N, D).
        reference: (S, D), a take that shows the whole action.
        times: (S,) seconds of the reference's frames; default: equal steps.
        method: "dtw" never runs backwards and goes through to the end; "nearest" follows the picture alone,
            so a step back or an unfinished action shows.
    """
    found = align(embeddings, reference, method=method)
    num_frames = len(np.asarray(reference))
    clock = np.arange(num_frames) if times is None else np.asarray(times, dtype=np.float64)
    if num_frames < 2 or clock[-1] <= clock[0]:
        raise EmbeddingError(f"the reference needs at least 2 frames to show an action, got {num_frames}")
    share = (clock - clock[0]) / (clock[-1] - clock[0])
    return ProgressSignal(share[found.indices], found.confidence, found.indices)


def goal_of(good: EmbeddingSet) -> Goal:
    """The goal of an action: where its good takes end."""
    firsts = np.array([good[name][0] for name in good], dtype=np.float64)
    lasts = np.array([good[name][-1] for name in good], dtype=np.float64)
    goal = lasts.mean(axis=0)
    away = float(np.linalg.norm(firsts - goal, axis=1).mean())
    if away <= 0:
        raise EmbeddingError("the takes of the goal end where they begin: no way to it can be measured")
    return Goal(goal, 1 / away)


def progress_rows(
    name: str, found: ProgressSignal, times: Floats, *, rewards: Floats | None = None
) -> list[dict[str, Any]]:
    """One row a frame: video, frame, seconds, progress, confidence, frame of the reference, reward."""
    rows: list[dict[str, Any]] = []
    for frame, share in enumerate(found.progress):
        row = {
            "video": name,
            "frame": frame,
            "seconds": round(float(times[frame]), 6),
            "progress": round(float(share), 4),
            "confidence": round(float(found.confidence[frame]), 4),
            "reference_frame": int(found.indices[frame]),
        }
        rows.append(row if rewards is None else {**row, "reward": round(float(rewards[frame]), 4)})
    return rows
