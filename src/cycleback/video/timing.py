"""Frame rates from the times of frames.

Letters: N frames of a whole video.
"""

import numpy as np
from numpy.typing import NDArray

JITTER_S = 0.002  # containers round time stamps to a millisecond: such steps are still a constant rate


def average_rate(times: NDArray[np.float64], duration_s: float, *, stated: float) -> float:
    """Frames a second over times (N,); the `stated` rate where rounding alone makes the difference."""
    if len(times) < 2:
        return 1 / duration_s if duration_s > 0 else stated
    measured = (len(times) - 1) / float(times[-1])
    off_s = abs(1 / measured - 1 / stated) * (len(times) - 1)
    return stated if off_s < JITTER_S else measured


def is_variable(times: NDArray[np.float64]) -> bool:
    """Whether the steps between times (N,) differ by more than rounding."""
    steps = np.diff(times)
    if len(steps) < 2:
        return False
    usual = float(np.median(steps))
    return bool(np.abs(steps - usual).max() > max(JITTER_S, 0.1 * usual))
