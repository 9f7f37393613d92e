"""Measure how far an action has come at each frame, and how far it is from its goal.

Shapes: N frames of a video, S frames of the reference, D embedding size.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment import align, align_many
from cycleback.alignment.align import AlignmentMethod
from cycleback.display import show_rows
from cycleback.embeddings import EmbeddingSet, check_one_action, check_same_encoder
from cycleback.errors import EmbeddingError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProgressSignal:
    """Where in the action each frame is."""

    progress: Floats  # (N,) in [0, 1], by the clock of the reference
    confidence: Floats  # (N,) in [0, 1], of each match
    indices: NDArray[np.int64]  # (N,), the matched frame of the reference


@dataclass(frozen=True, eq=False)
class Goal:
    """Where good takes end, as in XIRL (Zakka et al., 2021): a reward for getting there."""

    embedding: Floats  # (D,), the mean last frame
    scale: float  # one over the mean distance of the first frames, so that rewards begin near -1

    def reward(self, embeddings: ArrayLike) -> Floats:
        """Return the reward (N,) of each frame (N, D): 0 at the goal, about -1 where takes begin."""
        rows = np.asarray(embeddings, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.embedding):
            raise ValueError(f"embeddings must be (N, D={len(self.embedding)}), got {rows.shape}")
        distances: Floats = np.linalg.norm(rows - self.embedding, axis=1)
        return -self.scale * distances


@dataclass(frozen=True, eq=False)
class ProgressReport:
    """The progress of several videos."""

    videos: EmbeddingSet  # their embeddings
    reference: str  # name of the video that progress is measured by
    signals: Mapping[str, ProgressSignal]  # name -> progress
    rewards: Mapping[str, Floats]  # name -> reward (N,) of each frame; empty without a goal
    reference_start: int = 0  # first frame of the reference in its file, where it is a part of a video

    def rows(self) -> list[dict[str, Any]]:
        """Make one row per frame: video, frame, seconds, progress, confidence, reference_frame, reward.

        Of takes of a video, the rows name the video, and then the number of the repetition.
        """
        has_takes = any(self.videos.source(name) != name for name in self.signals)
        numbers: Counter[str] = Counter()
        rows: list[dict[str, Any]] = []
        for name, signal in self.signals.items():
            first, video = self.videos.first_frame(name), self.videos.source(name)
            numbers[video] += 1
            head = {"video": video, "repetition": numbers[video]} if has_takes else {"video": name}
            for frame, seconds in enumerate(self.videos.times(name)):
                row: dict[str, Any] = head | {"frame": first + frame, "seconds": round(float(seconds), 6)}
                row["progress"] = round(float(signal.progress[frame]), 4)
                row["confidence"] = round(float(signal.confidence[frame]), 4)
                row["reference_frame"] = self.reference_start + int(signal.indices[frame])
                if self.rewards:
                    row["reward"] = round(float(self.rewards[name][frame]), 4)
                rows.append(row)
        return rows

    def _repr_html_(self) -> str:
        """Show where each video begins and ends as a table in a notebook."""
        rows = [
            {
                "video": name,
                "frames": len(signal.progress),
                "from": float(signal.progress[0]),
                "to": float(signal.progress[-1]),
                "mean confidence": float(signal.confidence.mean()),
            }
            for name, signal in self.signals.items()
        ]
        return show_rows(rows, caption=f"Progress of {len(rows)} videos, measured by {self.reference}")


def measure_progress(
    videos: EmbeddingSet,
    reference: str,
    *,
    source: EmbeddingSet | None = None,
    goal: EmbeddingSet | None = None,
    method: AlignmentMethod = "auto",
) -> ProgressReport:
    """Measure the progress of all videos by the clock of a reference.

    Args:
        reference: name of a video that shows the whole action.
        source: the embedding set that holds the reference; default: `videos`.
        goal: good takes; adds a reward for getting where they end.
        method: see `progress_signal`.
    """
    source = videos if source is None else source
    check_one_action(videos, source.subset([reference]))
    if goal is not None:
        check_same_encoder({"the good takes": goal.encoder, "the videos": videos.encoder})
        check_one_action(goal, videos)
    rows, times = source[reference], source.times(reference)
    signals = {name: progress_signal(videos[name], rows, times=times, method=method) for name in videos}
    aim = None if goal is None else fit_goal(goal)
    rewards = {} if aim is None else {name: aim.reward(videos[name]) for name in videos}
    return ProgressReport(videos, reference, signals, rewards, source.first_frame(reference))


def find_typical(videos: EmbeddingSet) -> str:
    """Return the name of the video that all others are warped onto most cheaply."""
    return videos.names[align_many([videos[name] for name in videos], iterations=0).medoid]


def progress_signal(
    embeddings: ArrayLike,
    reference: ArrayLike,
    *,
    times: ArrayLike | None = None,
    method: AlignmentMethod = "auto",
) -> ProgressSignal:
    """Measure how far the action has come at each frame.

    Args:
        embeddings: (N, D).
        reference: (S, D), a take that shows the whole action.
        times: (S,) seconds of the reference's frames; default: equal steps.
        method: "auto" never runs backwards, and an action that stops early stays below 1; "dtw" always
            reaches the end; "nearest" matches each frame alone, so steps back show.
    """
    alignment = align(embeddings, reference, method=method)
    num_frames = len(np.asarray(reference))
    clock = np.arange(num_frames) if times is None else np.asarray(times, dtype=np.float64)
    if num_frames < 2 or clock[-1] <= clock[0]:
        raise EmbeddingError(f"the reference needs at least 2 frames to show an action, got {num_frames}")
    share = (clock - clock[0]) / (clock[-1] - clock[0])
    value = np.interp(alignment.positions, np.arange(num_frames), share)
    return ProgressSignal(value, alignment.confidence, alignment.indices)


def fit_goal(good: EmbeddingSet) -> Goal:
    """Find the goal of an action: where its good takes end."""
    firsts = np.array([good[name][0] for name in good], dtype=np.float64)
    lasts = np.array([good[name][-1] for name in good], dtype=np.float64)
    goal = lasts.mean(axis=0)
    away = float(np.linalg.norm(firsts - goal, axis=1).mean())
    if away <= 0:
        raise EmbeddingError("the takes of the goal end where they begin: no way to it can be measured")
    return Goal(goal, 1 / away)
