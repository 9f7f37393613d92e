"""What the alignment functions ask of their inputs: two dimensions, at least one row, finite numbers."""

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
