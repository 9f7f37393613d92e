"""Clips without labels that stay in one phase after the other, each for its own time."""

import numpy as np

CORNERS = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 5.0]])


def staircase(seed: int, *, spans: tuple[int, ...] = (30, 20, 40, 30)) -> tuple[np.ndarray, list[int]]:
    """A clip that stays near one corner after the other, each for its own time, and where it moves on."""
    rng = np.random.default_rng(seed)
    lengths = [round(span * rng.uniform(0.7, 1.4)) for span in spans]
    rows = np.concatenate([np.repeat(c[None], n, axis=0) for c, n in zip(CORNERS, lengths, strict=True)])
    return rows + 0.05 * rng.normal(size=rows.shape), np.cumsum(lengths)[:-1].tolist()
