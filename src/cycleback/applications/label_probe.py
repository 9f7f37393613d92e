"""Recognise labelled moments: a linear regression learns what the frames of each label look like.

Alignment asks which moment of a labelled video a frame resembles. The probe asks what the labelled moments
of all those videos have in common that other moments lack, so it gains from every further labelled video.
Ridge regression maps each frame, with its neighbours, to a bump around the label:

    target(t) = exp(-(t - label)^2 / (2 BUMP_FRAMES^2))

Shapes: T frames of a labelled video, N of another, D embedding size, M frames of all labelled videos.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Mark = tuple[str, str, int]  # "event", "start" or "end"; name; how many of this name came before
Marks = Mapping[Mark, int]  # frame of each, in order of time; an "end" may be T

BUMP_FRAMES = 2.0
NEIGHBORS = (-2, 0, 2)  # frames seen with each frame
PENALTY = 0.3  # of the weights, in units of the mean variance


class Hint(NamedTuple):
    """What a probe sees of one mark in a video."""

    scores: Floats  # (N,), near 1 where a frame looks like the mark, near 0 elsewhere
    usual: float  # mean score of the labelled frames themselves: some marks look like many other moments


Probe = Callable[[ArrayLike], dict[Mark, Hint]]  # from embeddings (N, D) of a video


def fit_probe(sources: Sequence[tuple[ArrayLike, Marks]]) -> Probe:
    """Learn the marks from embeddings (T, D) of labelled videos; videos that lack a mark do not teach it."""
    frames = [_with_neighbors(np.asarray(video, dtype=np.float64)) for video, _ in sources]
    groups: dict[tuple[int, ...], list[Mark]] = {}  # videos -> the marks that exactly these have
    for mark in dict.fromkeys(mark for _, marks in sources for mark in marks):
        groups.setdefault(tuple(i for i, (_, marks) in enumerate(sources) if mark in marks), []).append(mark)
    fits: dict[Mark, tuple[Floats, float, float]] = {}  # weights (3 D,), offset, usual score
    for videos, marks in groups.items():
        targets = [_bumps(len(frames[i]), [sources[i][1][mark] for mark in marks]) for i in videos]
        weights, offset = _regress(np.concatenate([frames[i] for i in videos]), np.concatenate(targets))
        for n, mark in enumerate(marks):
            rows = [frames[i][min(sources[i][1][mark], len(frames[i]) - 1)] for i in videos]
            usual = float((np.stack(rows) @ weights[:, n] + offset[n]).mean())
            fits[mark] = weights[:, n], float(offset[n]), usual

    def probe(video: ArrayLike) -> dict[Mark, Hint]:
        seen = _with_neighbors(np.asarray(video, dtype=np.float64))
        return {mark: Hint(seen @ weights + offset, usual) for mark, (weights, offset, usual) in fits.items()}

    return probe


def _with_neighbors(video: Floats) -> Floats:
    """Join each frame of `video` (N, D) with its neighbours: (N, 3 D)."""
    frames = np.arange(len(video))
    return np.concatenate([video[np.clip(frames + step, 0, len(video) - 1)] for step in NEIGHBORS], axis=1)


def _bumps(num_frames: int, places: Sequence[int]) -> Floats:
    distances = np.arange(num_frames)[:, None] - np.array(places)[None, :]
    bumps: Floats = np.exp(-((distances / BUMP_FRAMES) ** 2) / 2)
    return bumps


def _regress(frames: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """Return weights (3 D, L) and offset (L,) from `frames` (M, 3 D) to `targets` (M, L)."""
    middle, mean = frames.mean(axis=0), targets.mean(axis=0)
    around = frames - middle
    system = around.T @ around
    penalty = PENALTY * max(float(np.trace(system)) / len(system), np.finfo(np.float64).tiny)
    weights = np.linalg.solve(system + penalty * np.eye(len(system)), around.T @ (targets - mean))
    return weights, mean - middle @ weights
