"""What the alignment functions ask of their inputs: two dimensions, at least one row, finite numbers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def as_matrix(name: str, values: ArrayLike, *, shape: str) -> Floats:
    """`values` as finite float64 of the two axes that `shape` names, neither empty."""
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
    """Embeddings `a` (T, D) and `b` (S, D) as finite float64 of the same embedding size."""
    rows_a = as_matrix("a", a, shape="(T, D)")
    rows_b = as_matrix("b", b, shape="(S, D)")
    if rows_a.shape[1] != rows_b.shape[1]:
        raise ValueError(
            f"a and b have different embedding sizes, {rows_a.shape[1]} and {rows_b.shape[1]}: "
            "embed both videos with the same encoder"
        )
    return rows_a, rows_b


def as_videos(embeddings: Sequence[ArrayLike], *, at_least: int) -> list[Floats]:
    """The videos as finite float64 (N, D), all with the same D, and at least so many."""
    if len(embeddings) < at_least:
        raise ValueError(f"expected at least {at_least} videos, got {len(embeddings)}")
    videos = [as_matrix(f"embeddings[{i}]", video, shape="(N, D)") for i, video in enumerate(embeddings)]
    sizes = [video.shape[1] for video in videos]
    if len(set(sizes)) > 1:
        raise ValueError(f"videos have different embedding sizes {sizes}: embed all with the same encoder")
    return videos


def thinned(video: Floats, most: int) -> Floats:
    """At most `most` frames of (N, D), evenly spread; the video itself where it is short enough."""
    return video if len(video) <= most else video[even_frames(len(video), most)]


def even_frames(num_frames: int, most: int) -> Indices:
    """At most `most` of the frames, evenly spread, first and last among them."""
    if num_frames <= most:
        return np.arange(num_frames)
    return np.round(np.linspace(0, num_frames - 1, most)).astype(np.int64)
