"""Sound as a sequence to compare, and its exact place: see `cycleback.alignment.offset`.

Loudness that rises, in bands of pitch, is the same for a loud and a soft microphone, near or far, in a dull
or a bright room. It gives the place of a recording within some milliseconds. The phase of the sound
(generalised cross-correlation with phase transform, Knapp and Carter 1976) then gives it to less than one.

Shapes: N samples, T frames of 10 ms, D bands; K windows, J shifts.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment.distances import Floats
from cycleback.alignment.offset import (
    DRIFTS,
    MAX_DRIFT,
    MAX_WINDOWS,
    MIN_CURVED,
    WIDE_S,
    Line,
    Offset,
    OffsetMethod,
    Windows,
    check_method,
    common_seconds,
    cut_windows,
    find_peak,
    fit_line,
    is_drift_clear,
    place_windows,
    rate,
    sum_along_lines,
)

RATE = 16_000  # samples per second that the functions here expect
FRAME, HOP = 512, 160  # samples
NUM_BANDS, LOWEST_HZ, HIGHEST_HZ = 20, 120.0, 7500.0
PHASE_HZ = (150.0, 6000.0)  # below is rumble, above noise
STEP_S, PEAK_S = 0.01, 0.1  # of the grid of loudness; width of a peak
LOUD_STEP_S = 0.005
LOUD_REACH = ((0.06, 0.03), (0.03, 0.015))  # reach of windows of loudness, and how far one is from the line
PHASE_REACH = ((0.2, 0.03, 0.004), (0.3, 0.015, 0.002), (0.4, 0.01, 0.001))  # length, reach, as above
SURE_DRIFT, LONG_ENOUGH_S = 8.0, 15.0  # standard errors and length that a drift by loudness alone needs
CLEAR_PHASE = 1.5  # best sum of phases over the next best one
SAME_PHASE_S = 0.001  # phases nearer than this are one peak
CURVED_S = 0.02
MIN_SOUND_S = 0.5
SOUND_WEIGHTS = (2.0, 1.0, -7.0, 2.5)  # of 1 and the evidence: correlation, next peak, sharp phases
SILENT = 1e-4  # root mean square, of full scale: -80 dB


def is_silent(sound: NDArray[np.floating]) -> bool:
    """Whether a sound (N,) is so soft that nothing can be heard in it."""
    return not len(sound) or float(np.sqrt(np.mean(np.square(sound, dtype=np.float64)))) < SILENT


def rising_loudness(sound: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Return how much louder each band of pitch becomes (T, D), and the seconds (T,) of the frames.

    Levels are compared with the usual level of the band, which hides its noise.
    """
    edges = np.unique((np.geomspace(LOWEST_HZ, HIGHEST_HZ, NUM_BANDS + 1) / RATE * FRAME).round().astype(int))
    padded = np.pad(np.asarray(sound, dtype=np.float64), (FRAME // 2, FRAME // 2))
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP]
    levels = np.empty((len(frames), len(edges) - 1))
    window = np.hanning(FRAME)
    for start in range(0, len(frames), 4096):
        power = np.square(np.abs(np.fft.rfft(frames[start : start + 4096] * window, axis=1)))
        levels[start : start + 4096] = np.add.reduceat(power, edges, axis=1)[:, :-1]
    loudness = np.log(levels + np.median(levels, axis=0) + 1e-9 * levels.max() + 1e-20)
    rise = np.maximum(np.diff(loudness, axis=0, prepend=loudness[:1]), 0)
    rise /= np.maximum(rise.std(axis=0), 1e-9)
    return rise, np.arange(len(frames)) * HOP / RATE


def match_phases(
    a: NDArray[np.floating], b: NDArray[np.floating], line: Line, *, window_s: float, reach_s: float
) -> Windows:
    """Match the phases of windows of the sound `a` (N,) with those of `b` (M,) around a line."""
    size, reach = round(window_s * RATE), round(reach_s * RATE)
    start = max(0, int(np.ceil(line.to_a(0.0) * RATE)))
    stop = min(len(a), int(line.to_a(len(b) / RATE) * RATE))
    shifts = np.arange(-reach, reach + 1) / RATE
    count = max(0, 2 * (stop - start) // size - 1)
    if count == 0 or size <= 2 * reach:
        return Windows(np.empty(0), shifts, np.empty((0, len(shifts))), np.empty(0))
    firsts = np.linspace(start, stop - size, min(count, MAX_WINDOWS)).astype(np.int64)
    taper = np.hanning(size)
    padded = 1 << (2 * size - 1).bit_length()
    hertz = np.fft.rfftfreq(padded, 1 / RATE)
    band = (hertz >= PHASE_HZ[0]) & (hertz <= PHASE_HZ[1])
    scores, weights = np.empty((len(firsts), len(shifts))), np.empty(len(firsts))
    for k, first in enumerate(firsts.tolist()):
        moments = np.arange(first, first + size) / RATE
        own = a[first : first + size] * taper
        places = line.to_b(moments) * RATE
        low = max(0, int(places[0]) - 1)
        nearby = b[low : int(places[-1]) + 3]
        other = np.interp(places, low + np.arange(len(nearby)), nearby) * taper if len(nearby) else 0 * own
        spectrum = np.conj(np.fft.rfft(own, padded)) * np.fft.rfft(other, padded)
        size_of = np.abs(spectrum)
        spectrum = np.where(band, spectrum / np.maximum(size_of, 1e-12 + 1e-3 * size_of.max()), 0)
        values = np.fft.irfft(spectrum, padded) * padded / (2 * max(band.sum(), 1))
        scores[k] = np.concatenate([values[-reach:], values[: reach + 1]])
        weights[k] = np.sqrt(np.sqrt(np.square(own).sum() * np.square(other).sum()))
    return Windows((firsts + size / 2) / RATE, shifts, scores, weights / max(weights.max(), 1e-300))


def fit_sound_offset(
    a: NDArray[np.floating], b: NDArray[np.floating], *, method: OffsetMethod = "affine"
) -> Offset:
    """Find the line that maps the seconds of the sound `a` (N,) to those of `b` (M,), both at RATE.

    Raises:
        ValueError: a sound is silent or too short.
    """
    check_method(method)
    for sound in (a, b):
        if len(sound) < MIN_SOUND_S * RATE:
            raise ValueError(f"{len(sound) / RATE:.2f} s of sound are too short to find an offset")
        if is_silent(sound):
            raise ValueError("a silent recording has no offset by its sound")
    x, y = (np.asarray(sound, dtype=np.float64) for sound in (a, b))
    (loud_a, times_a), (loud_b, times_b) = rising_loudness(x), rising_loudness(y)
    find = partial(find_peak, loud_a, loud_b, times_a, times_b, step_s=STEP_S, width_s=PEAK_S)
    affine = method == "affine"

    def cut(line: Line, reach_s: float) -> Windows:
        return cut_windows(loud_a, loud_b, times_a, times_b, line=line, step_s=LOUD_STEP_S, reach_s=reach_s)

    def follow(line: Line, affine: bool) -> tuple[Line, float]:
        error = np.inf
        for reach_s, gate_s in LOUD_REACH:
            windows = cut(line, reach_s)
            if len(windows.centers):
                fit = fit_line(windows, line, gate_s=gate_s, affine=affine)
                if is_drift_clear(fit) or not affine:
                    line, error = fit.line, fit.drift_error
        return line, error

    drifts = DRIFTS if affine else (0.0,)
    peak = find(drifts=drifts)
    line, error = follow(peak.line, affine)
    line, error, residual, sharpness = follow_phases(x, y, line, error=error, affine=affine)
    is_short = np.diff(common_seconds(line, times_a, times_b))[0] < LONG_ENOUGH_S
    if residual is None and (is_short or abs(line.drift) < SURE_DRIFT * error):  # drifts may be noise
        peak = find()
        line, error = follow(peak.line, False)
    wide = cut(line, WIDE_S)
    places, clear = place_windows(wide, np.zeros(len(wide.centers)), gate_s=np.inf)
    curve = float(np.median(np.abs(places[clear]))) if clear.any() else np.inf
    is_linear = not (clear.sum() >= MIN_CURVED and curve > CURVED_S)
    common = common_seconds(line, times_a, times_b)
    ratio = peak.next_score / max(peak.score, 1e-9)
    evidence = peak.correlation, ratio, float(np.log(max(sharpness, 1.0)))
    return Offset(
        line,
        rate(evidence, SOUND_WEIGHTS),
        common,
        error,
        curve if residual is None or not is_linear else residual,
        is_linear,
        evidence,
    )


def follow_phases(
    a: Floats, b: Floats, line: Line, *, error: float, affine: bool
) -> tuple[Line, float, float | None, float]:
    """Refine a line by phases, as long as their sum over all windows has one clear peak.

    Returns:
        The line, the standard error of its drift, the median distance of the windows from it (None if phases
        did not help), and the peak over the next best one at the first step.
    """
    residual, sharpness = None, 0.0
    for number, (window_s, reach_s, gate_s) in enumerate(PHASE_REACH):
        windows = match_phases(a, b, line, window_s=window_s, reach_s=reach_s)
        if not len(windows.centers):
            break
        fit = fit_line(windows, line, gate_s=gate_s, affine=affine)
        again = match_phases(a, b, fit.line, window_s=window_s, reach_s=reach_s)
        found = measure_sharpness(again) if len(again.centers) else 0.0
        sharpness = found if number == 0 else sharpness
        if found < CLEAR_PHASE or abs(fit.line.drift) > MAX_DRIFT:
            break
        line, error, residual = fit.line, fit.drift_error, float(np.median(np.abs(fit.residuals)))
    return line, error, residual, sharpness


def measure_sharpness(windows: Windows) -> float:
    """Return the best sum of phases over all windows, divided by the next best one."""
    total = sum_along_lines(windows, np.zeros(1), 0.0)[0]
    best = int(total.argmax())
    elsewhere = total[np.abs(windows.shifts - windows.shifts[best]) > SAME_PHASE_S]
    return float(total[best] / max(elsewhere.max(), 1e-9)) if len(elsewhere) else 0.0
