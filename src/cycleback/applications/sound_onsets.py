"""Where a sound begins sharply: a catch, a click, a glass set down.

Letters: M samples, W windows.
"""

import numpy as np
from numpy.typing import NDArray

WINDOW_S = 0.004
BEFORE_S = 0.06  # what an onset must stand out from, and how far two onsets are apart at least
RISE_DB = 12.0  # louder than anything before it by this much
RANGE_DB = 35.0  # quieter than the loudest moment by more is left alone


def find_onsets(mono: NDArray[np.float64], rate: int) -> NDArray[np.int64]:
    """Samples (K,), ascending, at which `mono` (M,) rises sharply."""
    window = max(1, round(WINDOW_S * rate))
    loudness = _loudness(mono, window)  # (W,)
    before = max(1, round(BEFORE_S / WINDOW_S))
    if len(loudness) < 2 or not np.isfinite(loudness).any():
        return np.zeros(0, dtype=np.int64)
    rises = loudness - _loudest_before(loudness, before)
    is_onset = (rises > RISE_DB) & (loudness > loudness.max() - RANGE_DB)
    chosen: list[int] = []
    for index in sorted(np.flatnonzero(is_onset), key=lambda index: -rises[index]):
        if all(abs(index - other) >= before for other in chosen):
            chosen.append(int(index))
    return np.array([_first_loud_sample(mono, index * window, window) for index in sorted(chosen)], np.int64)


def _loudness(mono: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Power in dB (W,) of each window, low tones weakened: hum and rumble have no onsets."""
    steps = np.diff(mono, prepend=mono[:1])
    count = len(steps) // window
    power = (steps[: count * window].reshape(count, window) ** 2).mean(axis=1)
    return np.asarray(10 * np.log10(power + 1e-12))


def _loudest_before(loudness: NDArray[np.float64], before: int) -> NDArray[np.float64]:
    """The loudest (W,) of up to `before` windows before each; the one right before it is left out."""
    padded = np.concatenate([np.full(before + 1, loudness[0]), loudness])
    views = np.lib.stride_tricks.sliding_window_view(padded, before)
    return np.asarray(views[: len(loudness)].max(axis=1))


def _first_loud_sample(mono: NDArray[np.float64], start: int, window: int) -> int:
    """The first sample from a window before `start` on that is a quarter as loud as the loudest around it."""
    first = max(0, start - window)
    steps = np.abs(np.diff(mono[first : start + 2 * window], prepend=mono[first]))
    return int(first + np.argmax(steps >= 0.25 * steps.max()))
