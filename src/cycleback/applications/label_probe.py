"""Recognise labelled moments: a linear regression learns what the frames of each label look like.

Alignment asks which moment of a labelled video a frame resembles. The probe asks what the labelled moments
of all those videos have in common that other moments lack, so it gains from every further labelled video.
Ridge regression maps each frame, with its neighbours, to a bump around the label:

    target(t) = exp(-(t - label)^2 / (2 BUMP_FRAMES^2))

Shapes: T frames of a labelled video, N of another, D embedding size, M frames of all labelled videos.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Mark = tuple[str, str, int]  # "event", "start" or "end"; name; how many of this name came before
Marks = Mapping[Mark, int]  # frame of each, in order of time; an "end" may be T
Probe = Callable[[ArrayLike], dict[Mark, Floats]]  # (N, D) -> mark -> score (N,), about 1 at the mark

BUMP_FRAMES = 2.0
NEIGHBORS = (-2, 0, 2)  # frames seen with each frame
PENALTY = 0.3  # of the weights, in units of the mean variance


def fit_probe(sources: Sequence[tuple[ArrayLike, Marks]]) -> Probe:
    """Learn the marks from embeddings (T, D) of labelled videos; videos that lack a mark do not teach it."""
    frames = [_with_neighbors(np.asarray(video, dtype=np.float64)) for video, _ in sources]
    groups: dict[tuple[int, ...], list[Mark]] = {}  # videos -> the marks that exactly these have
    for mark in dict.fromkeys(mark for _, marks in sources for mark in marks):
        groups.setdefault(tuple(i for i, (_, marks) in enumerate(sources) if mark in marks), []).append(mark)
    fits = []
    for videos, marks in groups.items():
        targets = [_bumps(len(frames[i]), [sources[i][1][mark] for mark in marks]) for i in videos]
        fits.append((marks, _regress(np.concatenate([frames[i] for i in videos]), np.concatenate(targets))))

    def probe(video: ArrayLike) -> dict[Mark, Floats]:
        seen = _with_neighbors(np.asarray(video, dtype=np.float64))
        scores: dict[Mark, Floats] = {}
        for marks, (weights, offset) in fits:
            scores |= dict(zip(marks, (seen @ weights + offset).T, strict=True))
        return scores

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
