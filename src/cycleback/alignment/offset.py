"""Find the constant shift, and the drift, between two recordings of one event.

Two cameras that film one event differ in when they were switched on, and a little in how fast their clocks
run. So one line maps the seconds of a to those of b,

    seconds of b = (seconds of a - offset) * (1 + drift)

Anything that changes with the event in both recordings shows the line: embeddings of frames, or loudness in
bands of pitch (`cycleback.alignment.sound_offset`). Both are put on an even grid of seconds by their own time
stamps, so that frame rates may differ and vary.

1.  The whole of a is correlated with the whole of b at every shift, for several drifts. The significance of
    a correlation grows with the part that both share, so that half a second does not match by chance. Long
    recordings vote for a line, chunk by chunk.
2.  Windows along the line are shifted a little further, each to where it correlates best; a parabola finds
    the place between two steps of the grid. A robust line through these places is the result.
3.  How far the best shift is ahead of the next best one, and how many windows agree with the line, make the
    confidence. Windows that lie off the line in order, not by chance, show a relation that is no line.

Shapes: T frames of a, S frames of b, D size of a vector; n, m steps of the grid; L = n + m - 1 shifts of the
whole; K windows, J shifts of a window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment.distances import Floats, as_pair

OffsetMethod = Literal["offset", "affine"]
OFFSET_METHODS: tuple[OffsetMethod, ...] = get_args(OffsetMethod)
DRIFTS = (0.0, 0.005, -0.005, 0.01, -0.01)  # that are tried first, with "affine"
MIN_GAIN = 1.1  # of the score, to assume a drift
MAX_DRIFT = 0.02  # clocks of cameras drift by 0.01 %, converted frame rates by 0.1 %
MAX_SIZE = 32  # of a vector; larger ones are projected on their main directions
MIN_OVERLAP = (0.5, 0.15)  # seconds, and share of the shorter recording, that both must show
PICTURE_STEP_S, PICTURE_WIDTH_S = 1 / 60, 0.3  # of the grid; of a peak
PICTURE_WEIGHTS = (1.5, 4.6, -7.7, 4.5)  # of 1 and the evidence: correlation, next peak, windows
MAX_WINDOWS = 400
WINDOW_S, WIDE_S, NEAR_S = 1.0, 0.4, 0.08  # length and reach of a window
CURVED_S = 0.05  # windows further off than this show that a relation is no line
LONG_S = 90.0  # of recordings that are both longer, chunks vote for a drift
CHUNK_S, MAX_CHUNKS, PEAKS = 8.0, 32, 4  # of the shorter one; peaks that a chunk votes for
VOTE_S = 0.15  # votes for a line lie so near to it
MIN_WINDOWS, CLEAR_DRIFT = 4, 3.0  # for a drift; standard errors by which it must differ from 0
MIN_CURVED = 3  # windows
MIN_CORRELATION, MIN_WEIGHT = 0.2, 0.1  # of a window that counts; weight of the most varied one is 1


@dataclass(frozen=True)
class Line:
    """Which second of b goes with a second of a, if both run evenly."""

    offset_s: float  # how much later b starts, on the clock of a; below 0: earlier
    drift: float = 0.0  # how much faster the clock of b runs; 0.0001 are 100 parts per million

    def to_b(self, seconds: ArrayLike) -> Floats:
        """Return the seconds of b that go with `seconds` of a."""
        return (np.asarray(seconds, dtype=np.float64) - self.offset_s) * (1 + self.drift)

    def to_a(self, seconds: ArrayLike) -> Floats:
        """Return the seconds of a that go with `seconds` of b."""
        return np.asarray(seconds, dtype=np.float64) / (1 + self.drift) + self.offset_s

    def turned(self) -> "Line":
        """Return the line from b to a."""
        return Line(-self.offset_s * (1 + self.drift), 1 / (1 + self.drift) - 1)

    def moved(self, shift_s: float, drift: float, pivot_s: float) -> "Line":
        """Add a shift at second `pivot_s` of a, and a drift around it: b is that much further ahead."""
        slope = (1 + self.drift) * (1 + drift)
        at_pivot = float(self.to_b(pivot_s)) + shift_s * (1 + self.drift)
        return Line(pivot_s - at_pivot / slope, slope - 1)


class Peak(NamedTuple):
    """The best shift of a whole recording."""

    line: Line
    score: float  # significance of the correlation
    next_score: float  # the best one elsewhere
    correlation: float


class Windows(NamedTuple):
    """How well windows of a match b at small shifts away from a line."""

    centers: Floats  # (K,) seconds of a
    shifts: Floats  # (J,) seconds of a by which b is ahead of the line
    scores: Floats  # (K, J) correlations
    weights: Floats  # (K,) how much each window varies


def correlate(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Correlate `a` (n, D) with `b` (m, D) at every shift, over the part that they share then.

    Returns:
        The correlations (L,) in [-1, 1], and the shared steps (L,). Entry k is for the shift k - (m - 1): row
        i of b beside row i + shift of a.
    """
    n, m = len(a), len(b)
    shifts = np.arange(n + m - 1) - (m - 1)
    first, last = np.maximum(0, shifts), np.minimum(n, shifts + m)  # rows of a that are shared
    shared = (last - first).astype(np.float64)
    size = 1 << (n + m - 2).bit_length()  # whole powers of 2 are fast
    product = np.zeros(size // 2 + 1, dtype=np.complex128)
    means, power_a, power_b = (np.zeros(len(shifts)) for _ in range(3))
    for x, y in zip(a.T, b.T, strict=True):
        product += np.fft.rfft(x, size) * np.fft.rfft(y[::-1], size)
        sums_x, sums_y = (np.concatenate([[0], np.cumsum(z)]) for z in (x, y))
        own_x, own_y = sums_x[last] - sums_x[first], sums_y[last - shifts] - sums_y[first - shifts]
        means += own_x * own_y / shared
        power_a -= own_x**2 / shared
        power_b -= own_y**2 / shared
    squares_a, squares_b = (np.concatenate([[0], np.cumsum(np.square(z).sum(axis=1))]) for z in (a, b))
    power_a += squares_a[last] - squares_a[first]
    power_b += squares_b[last - shifts] - squares_b[first - shifts]
    covariance = np.fft.irfft(product, size)[: len(shifts)] - means
    scale = np.sqrt(np.maximum(power_a, 0) * np.maximum(power_b, 0))
    floor = 1e-9 * np.sqrt(max(squares_a[-1], 1e-300) * max(squares_b[-1], 1e-300))
    correlation: Floats = np.where(scale > floor, covariance / np.maximum(scale, floor), 0.0).clip(-1, 1)
    return correlation, shared


def put_on_grid(values: Floats, times: Floats, moments: Floats) -> Floats:
    """Return `values` (T, D), known at `times` (T,), at other `moments` (n,) by straight lines: (n, D)."""
    after = np.clip(np.searchsorted(times, moments), 1, len(times) - 1)
    gap = times[after] - times[after - 1]
    share = np.clip((moments - times[after - 1]) / np.where(gap > 0, gap, 1.0), 0, 1)[:, None]
    grid: Floats = values[after - 1] * (1 - share) + values[after] * share
    return grid


def reduce_size(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Project vectors (T, D) and (S, D) on the main directions of both, at most MAX_SIZE."""
    if a.shape[1] <= MAX_SIZE:
        return a, b
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    _, axes = np.linalg.eigh(a.T @ a / len(a) + b.T @ b / len(b))
    axes = axes[:, -MAX_SIZE:]
    return a @ axes, b @ axes


def find_peak(
    a: Floats,
    b: Floats,
    times_a: Floats,
    times_b: Floats,
    *,
    step_s: float,
    width_s: float,
    drifts: Sequence[float] = (0.0,),
) -> Peak:
    """Find the shift of all of `b` (S, D) at which it correlates best with all of `a` (T, D).

    Args:
        step_s: of the grid.
        width_s: shifts nearer than this are one peak.
        drifts: that are tried; others than 0 only if they make the score much better. Of long recordings,
            chunks vote for a drift.
    """
    if min(np.ptp(times_a), np.ptp(times_b)) > LONG_S and len(drifts) > 1:
        drifts = (vote_drift(a, b, times_a, times_b, step_s=step_s, width_s=width_s),)
    own = put_on_grid(a, times_a, np.arange(times_a[0], times_a[-1] + 1e-9, step_s))
    best: Peak | None = None
    for drift in drifts:
        clock = times_b / (1 + drift)
        other = put_on_grid(b, clock, np.arange(clock[0], clock[-1] + 1e-9, step_s))
        scores, values = score_shifts(own, other, step_s)
        k = int(scores.argmax())
        elsewhere = scores[np.isfinite(scores) & (np.abs(np.arange(len(scores)) - k) * step_s > width_s)]
        offset_s = (k - (len(other) - 1)) * step_s + times_a[0] - clock[0]
        next_score = float(elsewhere.max()) if len(elsewhere) else 0.0
        peak = Peak(Line(float(offset_s), drift), float(scores[k]), next_score, float(values[k]))
        if best is None or peak.score > best.score * (1 if best.line.drift else MIN_GAIN):
            best = peak
    assert best is not None
    return best


def score_shifts(a: Floats, b: Floats, step_s: float) -> tuple[Floats, Floats]:
    """Return how significant the correlation is at every shift (L,), and the correlations (L,).

    Shifts at which too little is shared have the score `-inf`.
    """
    values, shared = correlate(a, b)
    shortest = step_s * min(len(a), len(b))
    least = min(max(MIN_OVERLAP[0], MIN_OVERLAP[1] * shortest), 0.9 * shortest)
    scores = np.arctanh(values.clip(-0.999, 0.999)) * np.sqrt(shared * step_s)
    return np.where(shared * step_s >= least, scores, -np.inf), values


def vote_drift(
    a: Floats, b: Floats, times_a: Floats, times_b: Floats, *, step_s: float, width_s: float
) -> float:
    """Return the drift for which most chunks of the shorter recording lie on one line in the longer one."""
    is_turned = np.ptp(times_a) > np.ptp(times_b)
    if is_turned:
        a, b, times_a, times_b = b, a, times_b, times_a
    whole = put_on_grid(b, times_b, np.arange(times_b[0], times_b[-1] + 1e-9, step_s))
    count = min(MAX_CHUNKS, int(np.ptp(times_a) / CHUNK_S))
    points = []  # (seconds of a, shift to b, score, chunk)
    for chunk, start in enumerate(np.linspace(times_a[0], times_a[-1] - CHUNK_S, count)):
        own = put_on_grid(a, times_a, np.arange(start, start + CHUNK_S, step_s))
        scores, _ = score_shifts(own, whole, step_s)
        for _ in range(PEAKS):
            k = int(scores.argmax())
            shift = times_b[0] - (k - (len(whole) - 1)) * step_s - start
            points.append((start + CHUNK_S / 2, shift, max(float(scores[k]), 0.0), chunk))
            scores[np.abs(np.arange(len(scores)) - k) * step_s <= width_s] = -np.inf
    seconds, shifts, weights, chunks = np.array(points).T
    best, drift = 0.0, 0.0
    for i, j in combinations(range(len(points)), 2):
        if chunks[i] == chunks[j]:
            continue
        slope = (shifts[j] - shifts[i]) / (seconds[j] - seconds[i])
        if abs(slope) > MAX_DRIFT:
            continue
        near = np.abs(shifts - shifts[i] - slope * (seconds - seconds[i])) < VOTE_S
        if (votes := float(weights[near].sum())) > best:
            best = votes
            drift = robust_slope(seconds[near], shifts[near])
    return Line(0.0, drift).turned().drift if is_turned else drift


def match_windows(
    a: Floats, b: Floats, *, start_s: float, step_s: float, window_s: float, reach_s: float
) -> Windows:
    """Correlate windows of `a` (n, D) with `b` (n, D), which is on the same grid, at small shifts.

    Windows overlap by half. Their means are removed, so that only changes count.

    Args:
        start_s: second of a at the first step.
        reach_s: the largest shift, to either side.
    """
    reach = max(1, round(reach_s / step_s))
    size = min(max(4, round(window_s / step_s)), len(a) - 2 * reach)
    if size < 4:
        empty = np.empty(0)
        return Windows(
            empty,
            np.arange(-reach, reach + 1, dtype=np.float64) * step_s,
            np.empty((0, 2 * reach + 1)),
            empty,
        )
    count = min(MAX_WINDOWS, max(1, round(2 * (len(a) - 2 * reach) / size) - 1))
    firsts = np.unique(np.linspace(reach, len(a) - reach - size, count).round().astype(np.int64))
    scores = np.empty((len(firsts), 2 * reach + 1))
    for k, first in enumerate(firsts.tolist()):
        own = a[first : first + size]
        own = own - own.mean(axis=0)
        around = b[first - reach : first + size + reach]
        views = np.lib.stride_tricks.sliding_window_view(around, size, axis=0)  # (J, D, size)
        sums = views.sum(axis=2)
        power = np.square(around).sum(axis=1)
        squares = np.lib.stride_tricks.sliding_window_view(power, size).sum(axis=1)
        squares = squares - np.square(sums).sum(axis=1) / size
        products = np.einsum("jdn,nd->j", views, own)  # the mean of b meets a mean of 0
        scale = np.sqrt(np.square(own).sum() * np.maximum(squares, 0))
        scores[k] = products / np.maximum(scale, 1e-12 + 1e-6 * scale.max())
    weights = np.array(
        [np.sqrt(np.square(a[f : f + size] - a[f : f + size].mean(axis=0)).sum()) for f in firsts]
    )
    centers = start_s + (firsts.astype(np.float64) + (size - 1) / 2) * step_s
    return Windows(
        centers,
        np.arange(-reach, reach + 1, dtype=np.float64) * step_s,
        scores,
        weights / max(weights.max(), 1e-300),
    )


def refine_peak(scores: Floats, k: int) -> float:
    """Return the place near entry `k` where a parabola through it and its neighbours is highest."""
    if not 0 < k < len(scores) - 1:
        return float(k)
    before, here, after = scores[k - 1 : k + 2].tolist()
    bend = before - 2 * here + after
    return k + float(np.clip((before - after) / (2 * bend), -0.5, 0.5)) if bend < 0 else float(k)


def sum_along_lines(windows: Windows, drifts: Floats, pivot_s: float) -> Floats:
    """Return the mean score of all windows (len(drifts), J) along lines through each shift at the pivot."""
    step = windows.shifts[1] - windows.shifts[0]
    numbers = np.arange(len(windows.shifts))
    totals = np.zeros((len(drifts), len(numbers)))
    for center, scores, weight in zip(windows.centers, windows.scores, windows.weights, strict=True):
        for row, drift in enumerate(drifts):
            totals[row] += weight * np.interp(numbers + drift * (center - pivot_s) / step, numbers, scores)
    mean: Floats = totals / max(float(windows.weights.sum()), 1e-12)
    return mean


class Fit(NamedTuple):
    """A line through windows."""

    line: Line
    drift_error: float  # standard error of the drift; `inf` if it cannot be told
    residuals: Floats  # (K,) seconds by which each window lies off the line
    clear: NDArray[np.bool_]  # (K,) whether a window has one clear place
    uncertainty_s: float  # standard error of the offset in the middle


def fit_line(windows: Windows, line: Line, *, gate_s: float, affine: bool) -> Fit:
    """Fit a line to the places where windows match best.

    The sum over all windows finds it roughly, which no single wrong window can spoil. The peak of each window
    nearby (`gate_s`) then counts; a median is robust against those that are wrong.
    """
    step = float(windows.shifts[1] - windows.shifts[0])
    pivot = float(np.average(windows.centers, weights=windows.weights + 1e-12))
    span = float(np.ptp(windows.centers))
    is_affine = affine and len(windows.centers) >= MIN_WINDOWS
    drifts = np.zeros(1)
    if is_affine:
        reach = min(MAX_DRIFT, float(windows.shifts[-1]) / max(span / 2, step))
        drifts = np.linspace(-reach, reach, 2 * int(np.clip(reach * span / step, 1, 60)) + 1)
    totals = sum_along_lines(windows, drifts, pivot)
    row, column = np.unravel_index(int(totals.argmax()), totals.shape)
    rough = float(drifts[row]), (refine_peak(totals[row], int(column)) - len(windows.shifts) // 2) * step
    places, clear = place_windows(windows, rough[1] + rough[0] * (windows.centers - pivot), gate_s=gate_s)
    used = clear if clear.sum() >= 3 else np.ones(len(places), dtype=bool)
    centers, weights = windows.centers[used] - pivot, windows.weights[used]
    drift, shift, error = rough[0], rough[1], np.inf
    if is_affine and used.sum() >= MIN_WINDOWS:
        drift = robust_slope(centers, places[used])
        residuals = places[used] - drift * centers
        shift = weighted_median(residuals, weights)
        noise = 1.48 * float(np.median(np.abs(residuals - shift))) + 0.02 * step
        error = noise / float(np.sqrt(np.square(centers - centers.mean()).sum() / 2))  # half overlap
    else:
        shift = weighted_median(places[used] - drift * centers, weights)
    off = places - shift - drift * (windows.centers - pivot)
    noise = 1.48 * float(np.median(np.abs(off[used]))) + 0.02 * step
    better = line.moved(shift, drift, pivot)
    return Fit(better, error, off, clear, noise / float(np.sqrt(max(used.sum() / 2, 1))))


def place_windows(windows: Windows, around: Floats, *, gate_s: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the best shift (K,) of each window within `gate_s` of `around` (K,), and whether it is clear."""
    step = float(windows.shifts[1] - windows.shifts[0])
    places, clear = np.empty(len(around)), np.zeros(len(around), dtype=bool)
    for k, scores in enumerate(windows.scores):
        inside = np.flatnonzero(np.abs(windows.shifts - around[k]) <= max(gate_s, 1.01 * step))
        if not len(inside):
            places[k] = around[k]
            continue
        best = int(inside[scores[inside].argmax()])
        places[k] = windows.shifts[0] + refine_peak(scores, best) * step
        is_inner = inside[0] < best < inside[-1]
        clear[k] = is_inner and scores[best] > MIN_CORRELATION and windows.weights[k] > MIN_WEIGHT
    return places, clear


def robust_slope(x: Floats, y: Floats) -> float:
    """Return the median slope between points that are far apart (Theil and Sen)."""
    first, second = np.triu_indices(len(x), 1)
    gap = x[second] - x[first]
    far = np.abs(gap) > 0.3 * np.ptp(x)
    return float(np.median((y[second] - y[first])[far] / gap[far])) if far.any() else 0.0


def weighted_median(values: Floats, weights: Floats) -> float:
    """Return the value with half of the weights on either side."""
    order = np.argsort(values)
    total = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(total[-1] / 2 + weights[order][-1] / 4, total, values[order]))


@dataclass(frozen=True, eq=False)
class Offset:
    """How two recordings of one event lie to each other in time, and how far to trust it."""

    line: Line
    confidence: float  # in [0, 1], that the line is right
    common_s: tuple[float, float]  # first and last second of a that both recordings show
    drift_error: float  # standard error of the drift; `inf` where there is too little to tell a drift
    residual_s: float  # median distance of the windows from the line
    is_linear: bool  # False: the windows lie off the line in order
    evidence: tuple[float, ...] = ()  # what the confidence is made of

    @property
    def offset_s(self) -> float:
        """Seconds of a that pass until b starts; below 0: b starts earlier."""
        return self.line.offset_s

    @property
    def drift_ppm(self) -> float:
        """How much faster the clock of b runs, in parts per million."""
        return 1e6 * self.line.drift

    def to_b(self, seconds: ArrayLike) -> Floats:
        """Return the seconds of b that go with `seconds` of a."""
        return self.line.to_b(seconds)


def fit_offset(
    a: ArrayLike,
    b: ArrayLike,
    *,
    times_a: ArrayLike,
    times_b: ArrayLike,
    method: OffsetMethod = "affine",
) -> Offset:
    """Find the line that maps the seconds of `a` to those of `b` from their embeddings.

    Args:
        a: (T, D), of every frame of a recording; T may differ from S.
        b: (S, D), of another recording of the same event, by the same encoder.
        times_a: (T,) seconds of the frames, which never decrease.
        times_b: (S,) seconds of the frames of b.
        method: "offset" is a constant shift; "affine" has a drift, too, where there is enough to tell it.

    Raises:
        ValueError: a recording is constant, shorter than three frames, or its times do not fit.
    """
    check_method(method)
    rows, others = as_pair(a, b)
    clocks = tuple(check_times(times, len(x)) for times, x in ((times_a, rows), (times_b, others)))
    varied = (rows.std(axis=0) > 0) & (others.std(axis=0) > 0)
    if not varied.any():
        raise ValueError("nothing changes in both recordings: no offset can be found")
    rows, others = reduce_size(rows[:, varied], others[:, varied])
    gap = max(float(np.median(np.diff(clock))) for clock in clocks)
    step = min(PICTURE_STEP_S, gap / 2)
    peak = find_peak(rows, others, *clocks, step_s=step, width_s=PICTURE_WIDTH_S)
    return follow_line(rows, others, *clocks, peak=peak, step_s=step, frame_s=gap, method=method)


def check_method(method: str) -> None:
    """Refuse a method that is not one of OFFSET_METHODS."""
    if method not in OFFSET_METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, OFFSET_METHODS))}, got {method!r}")


def check_times(times: ArrayLike, num_frames: int) -> Floats:
    """Return times (N,) as float64; refuse those that do not fit the frames."""
    clock = np.asarray(times, dtype=np.float64)
    if clock.shape != (num_frames,) or not np.isfinite(clock).all() or (np.diff(clock) < 0).any():
        raise ValueError(f"times must be {num_frames} finite seconds that never decrease, got {clock.shape}")
    if num_frames < 3 or clock[-1] <= clock[0]:
        raise ValueError(f"a recording needs at least 3 frames to find an offset, got {num_frames}")
    return clock


def follow_line(
    a: Floats,
    b: Floats,
    times_a: Floats,
    times_b: Floats,
    *,
    peak: Peak,
    step_s: float,
    frame_s: float,
    method: OffsetMethod,
) -> Offset:
    """Refine the line of a peak window by window, and say how far the windows agree.

    `frame_s` is the time between two frames of the slower recording: nothing is told apart more finely.
    """
    reaches = (WIDE_S, WIDE_S, NEAR_S)

    def follow(line: Line, affine: bool) -> tuple[Line, Fit | None]:
        fit = None
        for reach_s in reaches:
            windows = cut(line, max(reach_s, 2.5 * frame_s))
            if not len(windows.centers):
                break
            fit = fit_line(windows, line, gate_s=max(NEAR_S, 1.5 * frame_s), affine=affine)
            line = fit.line
        return line, fit

    def cut(line: Line, reach_s: float) -> Windows:
        return cut_windows(a, b, times_a, times_b, line=line, step_s=step_s, reach_s=reach_s)

    line, fit = follow(peak.line, method == "affine")
    if fit is not None and line.drift and not is_drift_clear(fit):
        line, fit = follow(Line(peak.line.offset_s), False)
    wide = cut(line, max(WIDE_S, 4 * frame_s))
    places, clear = place_windows(wide, np.zeros(len(wide.centers)), gate_s=np.inf)
    residual = float(np.median(np.abs(places[clear]))) if clear.any() else np.inf
    evidence = peak.correlation, peak.next_score / max(peak.score, 1e-9), measure_support(wide)
    return Offset(
        line,
        rate(evidence, PICTURE_WEIGHTS),
        common_seconds(line, times_a, times_b),
        np.inf if fit is None else fit.drift_error,
        residual,
        is_linear=not (clear.sum() >= MIN_CURVED and residual > max(CURVED_S, 1.5 * frame_s)),
        evidence=evidence,
    )


def is_drift_clear(fit: Fit) -> bool:
    """Whether a drift is more than the noise of the windows, and no more than clocks can drift."""
    return abs(fit.line.drift) <= MAX_DRIFT and abs(fit.line.drift) > CLEAR_DRIFT * fit.drift_error


def rate(evidence: Sequence[float], weights: Sequence[float]) -> float:
    """Return the probability that a line is right: a logistic function of the evidence."""
    total = weights[0] + float(np.dot(evidence, weights[1:]))
    return float(1 / (1 + np.exp(-np.clip(total, -30, 30))))


def measure_support(windows: Windows) -> float:
    """Return the mean correlation of windows on the line; 0 without windows."""
    if not len(windows.centers):
        return 0.0
    middle = windows.scores[:, len(windows.shifts) // 2]
    return float(np.average(middle, weights=windows.weights + 1e-12))


def cut_windows(
    a: Floats, b: Floats, times_a: Floats, times_b: Floats, *, line: Line, step_s: float, reach_s: float
) -> Windows:
    """Match windows of the part of `a` that `b` shows, too, around a line."""
    first, last = common_seconds(line, times_a, times_b)
    moments = np.arange(first, last + 1e-9, step_s)
    window_s = min(WINDOW_S, max(0.3, (last - first) / 3))
    reach_s = min(reach_s, max((last - first - window_s) / 2, step_s))
    own, other = put_on_grid(a, times_a, moments), put_on_grid(b, times_b, line.to_b(moments))
    return match_windows(own, other, start_s=first, step_s=step_s, window_s=window_s, reach_s=reach_s)


def common_seconds(line: Line, times_a: Floats, times_b: Floats) -> tuple[float, float]:
    """Return the first and the last second of a that b has, too."""
    begin, end = line.to_a(times_b[[0, -1]]).tolist()
    return max(float(times_a[0]), begin), min(float(times_a[-1]), end)
