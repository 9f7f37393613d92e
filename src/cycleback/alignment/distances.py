"""Distances between the frames of two videos, and the checks that every alignment function starts with.

Shapes: T frames of video a, S frames of video b, N frames of any video, D embedding size.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Item = TypeVar("Item")


def squared_distances(a: ArrayLike, b: ArrayLike) -> Floats:
    """Return squared L2 distances (T, S), float64, between the rows of `a` (T, D) and `b` (S, D)."""
    return pairwise_squared(*as_pair(a, b))


def nearest_neighbors(a: ArrayLike, b: ArrayLike, *, chunk_frames: int = 1024) -> Indices:
    """Return the index (T,) of the row of `b` (S, D) nearest to each row of `a` (T, D) (paper 3.1).

    The first of equally near rows wins. Memory grows with `chunk_frames` x S, not with T x S.
    """
    if chunk_frames < 1:
        raise ValueError(f"chunk_frames must be at least 1, got {chunk_frames}")
    rows, others = as_pair(a, b)
    starts = range(0, len(rows), chunk_frames)
    chunks = (rows[i : i + chunk_frames] for i in starts)
    return np.concatenate([pairwise_squared(chunk, others).argmin(axis=1) for chunk in chunks])


def pairwise_squared(a: Floats, b: Floats) -> Floats:
    """Return `squared_distances` of arrays that are already checked.

    ||a||^2 + ||b||^2 - 2ab is one matrix product, but it cancels. A shift changes no distance, so the rows
    are first moved near zero. Results that rounding alone can explain become 0: otherwise equal frames would
    lie at tiny random distances, and a collapsed embedding would have a random order instead of none.
    """
    origin = b[0]
    a, b = a - origin, b - origin
    norms = np.einsum("td,td->t", a, a)[:, None] + np.einsum("sd,sd->s", b, b)[None, :]  # (T, S)
    squared: Floats = norms - 2 * (a @ b.T)
    rounding = 4 * np.finfo(np.float64).eps * a.shape[1] ** 0.5
    squared[squared <= rounding * norms] = 0
    return squared


def matched_squared(a: Floats, b: Floats, indices: Indices, *, chunk_frames: int = 4096) -> Floats:
    """Return the squared L2 distance (T,) of each row of `a` (T, D) to its match `indices` (T,) in `b`."""
    distances = np.empty(len(a))
    for i in range(0, len(a), chunk_frames):
        part = slice(i, i + chunk_frames)
        distances[part] = np.square(a[part] - b[indices[part]]).sum(axis=1)
    return distances


def spread_frames(num_frames: int, max_frames: int) -> Indices:
    """Return at most `max_frames` frame numbers, evenly spread, with the first and the last frame."""
    if num_frames <= max_frames:
        return np.arange(num_frames)
    return np.round(np.linspace(0, num_frames - 1, max_frames)).astype(np.int64)


def spread_items(items: Sequence[Item], max_items: int) -> list[Item]:
    """Return at most `max_items` items, evenly spread, with the first and, from two on, the last."""
    if len(items) <= max_items:
        return list(items)
    return [items[i] for i in np.linspace(0, len(items) - 1, max_items).astype(np.int64)]


def thin(video: Floats, max_frames: int) -> Floats:
    """Return at most `max_frames` evenly spread frames of `video` (N, D)."""
    return video if len(video) <= max_frames else video[spread_frames(len(video), max_frames)]


def as_matrix(name: str, values: ArrayLike, *, shape: str) -> Floats:
    """Convert `values` to a finite float64 matrix; `shape` names its two axes, neither of them empty."""
    matrix = np.asarray(values, dtype=np.float64, order="C")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name} must be {shape} with at least one of each, got {matrix.shape}")
    finite = np.isfinite(matrix)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise ValueError(
            f"{name}[{row}, {column}] is {matrix[row, column]}: only finite numbers can be aligned"
        )
    return matrix


def as_pair(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    """Convert embeddings `a` (T, D) and `b` (S, D) to finite float64 with the same D."""
    rows_a = as_matrix("a", a, shape="(T, D)")
    rows_b = as_matrix("b", b, shape="(S, D)")
    if rows_a.shape[1] != rows_b.shape[1]:
        raise ValueError(
            f"a and b have different embedding sizes, {rows_a.shape[1]} and {rows_b.shape[1]}: "
            "embed both videos with the same encoder"
        )
    return rows_a, rows_b


def as_videos(embeddings: Sequence[ArrayLike], *, min_videos: int) -> list[Floats]:
    """Convert the embeddings of at least `min_videos` videos to finite float64 (N, D) with the same D."""
    if len(embeddings) < min_videos:
        raise ValueError(f"expected at least {min_videos} videos, got {len(embeddings)}")
    videos = [as_matrix(f"embeddings[{i}]", video, shape="(N, D)") for i, video in enumerate(embeddings)]
    sizes = [video.shape[1] for video in videos]
    if len(set(sizes)) > 1:
        raise ValueError(f"videos have different embedding sizes {sizes}: embed all with the same encoder")
    return videos
