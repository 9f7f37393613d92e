"""Find, count and separate the repetitions of an action, such as ten push-ups in one video.

Frames one repetition apart look and move alike, and frames half a repetition apart do not. So the mean
distance of frames, as a function of the lag between them, has a dip at the period. A dip is measured against
the distances at about half and one and a half of its lag. It is about 0 where nothing repeats, also where a
video holds still or drifts, and up to 1 where a video repeats itself exactly.

    find_repetitions   all of this for one video
    measure_dips       how deep the dip is for each period, at each frame
    track_periods      the period at each frame; it changes slowly, or there is none
    trim_bouts         leaves out what is unlike the mean repetition
    refine_phases      the phase of each frame: the video is warped onto its own mean repetition
    place_cuts         where repetitions begin: as many whole ones as possible, cut where least moves

A bout is a part of the video in which repetitions follow each other without a break.

Shapes: N frames of a video, n frames of a bout, D embedding size, L lags, P periods, Q phases.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.embeddings import EmbeddingSet
from cycleback.progress import Counter, ignore

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
EQUAL_STREAMS = {"appearance": 1.0, "motion": 1.0, "pose": 1.0}
"""The weights of the untrained streams that find repetitions best."""

COLUMNS = ("video", "repetition", "start_frame", "end_frame", "start_s", "end_s", "share", "whole")  # of rows
MIN_PERIOD = 4  # frames
MIN_FRAMES = 3 * MIN_PERIOD
LAG_RATIO = 1.03  # between neighbouring lags, where whole frames allow it
MAX_LAG = 0.8  # share of the video
NEAR_HALF = (0.3, 0.7)  # lags about half a period, in periods; those about one and a half lie 1 further
SMOOTHING = 2.0  # periods over which a dip is averaged
WHOLE_VIDEO = 0.75  # weight of the mean dip over the whole video, against the dip at a frame
USUAL_DIP = 0.05  # of frames that repeat nothing: less than this does not begin or prolong a bout
MIN_LEVEL = 0.4  # share of the usual likeness to the mean repetition that a bout keeps
MAX_GAP = 1.5  # periods for which it may have less
CHANGE_PRICE = 0.3  # of a change of the period by a factor e within a period
MAX_STEPS = 3  # lags by which the period may change between two frames
MIN_DIP = 0.12  # mean over a bout: less is no repetition
MIN_SHARE = 0.75  # of a repetition that counts as a whole one, so that ends may be cut off a little
MIN_PARTIAL = 0.1  # share of a repetition that is told at all
ROUNDS = 2  # of `refine_phases`
PHASES = (8, 48)  # at least and at most, of the mean repetition
SPEEDS = (0.4, 2.0)  # least and greatest speed of a repetition, against the period found for it
SPEED_PRICE = 0.1  # of a frame at twice the speed


@dataclass(frozen=True)
class Repetition:
    """One repetition: frames `start` to `stop`, without the last."""

    start: int
    stop: int
    start_s: float
    end_s: float
    share: float  # of a repetition that is shown; less than 1 at the ends of the video
    is_whole: bool  # whether it counts


@dataclass(frozen=True, eq=False)
class Repetitions:
    """The repetitions of one video."""

    times: Floats  # (N,) seconds of each frame
    phases: Floats  # (N,) repetitions done since the first whole one began; NaN where nothing repeats
    segments: tuple[Repetition, ...]  # whole repetitions, and partial ones at the ends of a bout
    dip: float  # mean depth over the repetitions

    @property
    def whole(self) -> tuple[Repetition, ...]:
        """The repetitions that count."""
        return tuple(segment for segment in self.segments if segment.is_whole)

    @property
    def count(self) -> int:
        """How many repetitions there are; 0 if nothing repeats."""
        return len(self.whole)

    @property
    def confidence(self) -> float:
        """How sure it is that something repeats, in [0, 1]; repetitions are told from 0.5 on."""
        return self.dip / (self.dip + MIN_DIP)

    @property
    def periods(self) -> Floats:
        """Seconds (N,) of one repetition around each frame; NaN where nothing repeats."""
        periods = np.full(len(self.times), np.nan)
        for start, stop in _find_runs(np.isfinite(self.phases)):
            phases, seconds = self.phases[start:stop], self.times[start:stop]
            for frame in range(start, stop):
                low = min(max(self.phases[frame] - 0.5, phases[0]), max(phases[-1] - 1, phases[0]))
                ends = np.interp([low, low + 1], phases, seconds)
                periods[frame] = ends[1] - ends[0]
        return periods

    def rows(self, video: str = "") -> list[dict[str, Any]]:
        """Make one row per repetition: video, repetition, frames, seconds, share and whole (1 or 0)."""
        rows: list[dict[str, Any]] = []
        number = 0
        for segment in self.segments:
            number += segment.is_whole
            row: dict[str, Any] = {"video": video, "repetition": number if segment.is_whole else ""}
            row |= {"start_frame": segment.start, "end_frame": segment.stop - 1}
            row |= {"start_s": round(segment.start_s, 6), "end_s": round(segment.end_s, 6)}
            row |= {"share": round(segment.share, 2), "whole": int(segment.is_whole)}
            rows.append(row)
        return rows

    def to_json(self) -> dict[str, Any]:
        """Summarise: count, confidence, period in seconds, and the boundaries of the whole repetitions."""
        lengths = [segment.end_s - segment.start_s for segment in self.whole if segment.share == 1]
        return {
            "count": self.count,
            "confidence": round(self.confidence, 4),
            "period_s": round(float(np.median(lengths)), 4) if lengths else None,
            "boundaries_s": [[round(s.start_s, 4), round(s.end_s, 4)] for s in self.whole],
            "boundaries_frames": [[s.start, s.stop - 1] for s in self.whole],
        }

    def _repr_html_(self) -> str:
        """Show the count and a table in a notebook."""
        rows = self.rows()
        cells = ["".join(f"<td>{escape(str(value))}</td>" for value in row.values()) for row in rows]
        head = "".join(f"<th>{escape(name)}</th>" for name in (rows[0] if rows else ()))
        table = "".join(f"<tr>{row}</tr>" for row in cells)
        title = f"{self.count} repetitions, confidence {self.confidence:.2f}"
        return f"<p>{title}</p><table><tr>{head}</tr>{table}</table>"


def find_repetitions(embeddings: ArrayLike, times: ArrayLike | None = None) -> Repetitions:
    """Find the repetitions in a video.

    Args:
        embeddings: (N, D), such as those of `embed_videos("pretrained", ..., streams=EQUAL_STREAMS)`.
        times: (N,) seconds of the frames; default: one second per frame.
    """
    rows = np.asarray(embeddings, dtype=np.float32)
    if rows.ndim != 2 or not len(rows):
        raise ValueError(f"embeddings must be (N, D) with at least one frame, got {rows.shape}")
    clock: Floats = np.asarray(np.arange(len(rows)) if times is None else times, dtype=np.float64)
    if clock.shape != (len(rows),):
        raise ValueError(f"times must be (N={len(rows)},), got {clock.shape}")
    rows = rows - rows.mean(axis=0)
    bouts = find_bouts(rows)
    if bouts:
        bouts = trim_bouts(rows, bouts, refine_phases(rows, bouts))
    dip = float(np.concatenate([bout.dips for bout in bouts]).mean()) if bouts else 0.0
    phases, segments = np.full(len(rows), np.nan), list[Repetition]()
    if dip >= MIN_DIP:
        found = refine_phases(rows, bouts)
        stillness = fold_stillness(rows, bouts, found)
        for bout, phase in zip(bouts, found, strict=True):
            done = sum(segment.is_whole for segment in segments)
            phase = phase - place_cuts(phase, stillness)
            segments += _cut(phase, bout.start, clock)
            phases[bout.start : bout.stop] = phase + done
    return Repetitions(clock, phases, tuple(segments), max(dip, 0.0))


@dataclass(frozen=True, eq=False)
class Bout:
    """Frames `start` to `stop`, without the last, in which an action is repeated."""

    start: int
    stop: int
    periods: Floats  # (n,) frames
    dips: Floats  # (n,)

    @property
    def phases(self) -> Floats:
        """Repetitions (n,) done at each frame, by the periods alone."""
        return np.cumsum(1 / self.periods)


def find_bouts(rows: NDArray[np.float32]) -> list[Bout]:
    """Find the parts of a video (N, D) in which at least two repetitions follow each other."""
    periods, dips = measure_dips(rows)
    if not len(periods):
        return []
    blend = dips + WHOLE_VIDEO * (dips.mean(axis=1, keepdims=True) - dips)
    track = track_periods(periods, blend)
    bouts = []
    for start, stop in _find_runs(track >= 0):
        places = track[start:stop]
        exact = _refine_periods(periods, blend[:, start:stop], places)
        bouts.append(Bout(start, stop, exact, blend[places, np.arange(start, stop)]))
    return [bout for bout in bouts if bout.phases[-1] >= 1 + MIN_SHARE]


def trim_bouts(rows: NDArray[np.float32], bouts: Sequence[Bout], phases: Sequence[Floats]) -> list[Bout]:
    """Leave out the frames of bouts that are not like their moment of the mean repetition.

    A video (N, D) may hold still, or show something else, before and after a bout.
    """
    num_phases = PHASES[1]
    mean = _fold(np.concatenate([rows[b.start : b.stop] for b in bouts]), np.concatenate(phases), num_phases)
    parts = []
    for bout, phase in zip(bouts, phases, strict=True):
        own, usual = rows[bout.start : bout.stop], mean[np.round(phase * num_phases).astype(int) % num_phases]
        period = float(np.median(bout.periods))
        gain = _moving_covariance(own, usual, round(period))
        is_inside = _close_gaps(gain >= MIN_LEVEL * np.quantile(gain, 0.75), MAX_GAP * period)
        for a, b in _find_runs(is_inside):
            parts.append(Bout(bout.start + a, bout.start + b, bout.periods[a:b], bout.dips[a:b]))
    return [part for part in parts if part.phases[-1] >= 1 + MIN_SHARE]


def _moving_covariance(a: NDArray[np.float32], b: Floats, window: int) -> Floats:
    """Return the covariance (n,) of frames a and b (n, D) over a window; 0 where either holds still."""
    total = moving_mean(np.einsum("nd,nd->n", a, b), window)
    for start in range(0, a.shape[1], 64):  # a long video has no room for all columns at once
        part = np.s_[:, start : start + 64]
        total -= (moving_mean(a[part], window) * moving_mean(b[part], window)).sum(axis=1)
    return total


def _close_gaps(flags: NDArray[np.bool_], longest: float) -> NDArray[np.bool_]:
    """Set the flags (N,) between two runs of true ones that are at most `longest` frames apart."""
    closed, runs = flags.copy(), _find_runs(flags)
    for (_, end), (start, _) in pairwise(runs):
        closed[end:start] |= start - end <= longest
    return closed


def measure_dips(rows: NDArray[np.float32]) -> tuple[Floats, Floats]:
    """Measure how deep the dip of the distances is for each period (P,) in frames and each frame: (P, N).

    Distances are in units of the mean distance of any two frames. The dip is averaged over some periods
    around the frame. A video that is too short, or constant, has no periods.
    """
    mean = 2 * float(np.square(rows).sum(axis=1).mean())
    if len(rows) < MIN_FRAMES or mean <= 1e-9:
        return np.empty(0), np.empty((0, len(rows)))
    lags = _choose_lags(int(MAX_LAG * len(rows)))
    distances = _lag_distances(rows, lags) / mean  # (L, N)
    places = np.flatnonzero((lags >= MIN_PERIOD) & (2 * lags <= len(rows)))
    dips = np.empty((len(places), len(rows)))
    for row, place in enumerate(places):
        ratios, (low, high) = lags / lags[place], NEAR_HALF
        half = distances[(ratios >= low) & (ratios <= high)].mean(axis=0)
        further = distances[(ratios >= 1 + low) & (ratios <= 1 + high)].mean(axis=0)
        dip = (half + further) / 2 - distances[place]
        shown = len(rows) / lags[place]  # repetitions: chance makes deep dips where there are few
        dips[row] = (1 - 1 / shown) * moving_mean(dip, round(SMOOTHING * lags[place]))
    return lags[places].astype(np.float64), dips


def _choose_lags(max_lag: int) -> Indices:
    """Return lags (L,) from 1 to `max_lag` frames: all the short ones, then a constant ratio apart."""
    lags = [1]
    while (following := max(lags[-1] + 1, round(lags[-1] * LAG_RATIO))) <= max_lag:
        lags.append(following)
    return np.array(lags)


def _lag_distances(rows: NDArray[np.float32], lags: Indices) -> Floats:
    """Return the squared distance of the frames half a lag before and after each frame: (L, N).

    It is averaged over one lag. Frames near the ends take the value of the nearest frame that has one.
    """
    lengths, frames = np.square(rows).sum(axis=1, dtype=np.float64), np.arange(len(rows))
    table = np.empty((len(lags), len(rows)))
    for line, lag in zip(table, lags, strict=True):
        apart = lengths[:-lag] + lengths[lag:] - 2 * np.einsum("nd,nd->n", rows[:-lag], rows[lag:])
        line[:] = moving_mean(apart, lag)[np.clip(frames - lag // 2, 0, len(apart) - 1)]
    return table


def track_periods(periods: Floats, dips: Floats) -> Indices:
    """Choose the place in `periods` (P,) at each frame, or -1 where nothing repeats: (N,).

    The choice has the greatest sum of dips (P, N), less their usual depth where nothing repeats, less the
    price of changes.
    """
    count, num_frames = dips.shape
    offsets = [offset for offset in range(-MAX_STEPS, MAX_STEPS + 1) if offset]
    places = np.arange(count)
    sources = np.stack([places, *((places + offset).clip(0, count - 1) for offset in offsets)])  # (2S + 1, P)
    prices = CHANGE_PRICE * periods * np.abs(np.log(periods[sources] / periods))
    gains, enter = dips - USUAL_DIP, USUAL_DIP * periods
    totals, outside = gains[:, 0].copy(), 0.0
    came_from = np.empty((num_frames, count + 1), dtype=np.int32)
    for frame in range(1, num_frames):
        candidates = totals[sources] - prices
        choice = candidates.argmax(axis=0)
        best, origin = candidates[choice, places], sources[choice, places]
        is_entered = outside - enter > best
        came_from[frame, :count] = np.where(is_entered, -1, origin)
        left = int(totals.argmax())
        came_from[frame, count] = left if totals[left] > outside else -1
        best = np.where(is_entered, outside - enter, best)
        outside, totals = max(outside, totals[left]), best + gains[:, frame]
    track = np.empty(num_frames, dtype=np.int64)
    track[-1] = int(totals.argmax()) if totals.max() > outside else -1
    for frame in range(num_frames - 1, 0, -1):
        track[frame - 1] = came_from[frame, track[frame]]  # place -1 is the last column
    return track


def _refine_periods(periods: Floats, dips: Floats, places: Indices) -> Floats:
    """Return the periods (n,) at `places` (n,), moved to the top of a parabola through dips (P, n)."""
    if len(periods) < 3:
        return periods[places]
    frames, inner = np.arange(len(places)), places.clip(1, len(periods) - 2)
    before, here, after = (dips[inner + offset, frames] for offset in (-1, 0, 1))
    bend = before - 2 * here + after
    is_top = (inner == places) & (bend < 0)
    offset = np.where(is_top, 0.5 * (before - after) / np.where(is_top, bend, 1), 0).clip(-0.5, 0.5)
    exact: Floats = np.exp(np.interp(places + offset, np.arange(len(periods)), np.log(periods)))
    return exact


def refine_phases(rows: NDArray[np.float32], bouts: Sequence[Bout]) -> list[Floats]:
    """Return for each bout how many repetitions are done at each of its frames: (n,), which never falls.

    The longest bout is folded into a mean repetition, and warped onto it, some times. The other bouts are
    warped onto the same mean repetition, so that equal phases are equal moments in all of them.
    """
    longest = max(bouts, key=lambda bout: bout.stop - bout.start)
    own = rows[longest.start : longest.stop]
    num_phases = int(np.clip(round(2 * float(np.median(longest.periods))), *PHASES))
    phases = longest.phases
    for _ in range(ROUNDS):
        mean = _fold(own, phases, num_phases)
        phases = _warp_onto(own, mean, longest.periods)
    return [
        phases if bout is longest else _warp_onto(rows[bout.start : bout.stop], mean, bout.periods)
        for bout in bouts
    ]


def _fold(values: NDArray[Any], phases: Floats, num_phases: int) -> Floats:
    """Average values (n, D) by phase: (Q, D). Each counts for the two phases next to its own."""
    places = (phases % 1) * num_phases
    before = np.floor(places).astype(np.int64)
    share = places - before
    weights, frames = np.zeros((num_phases, len(values))), np.arange(len(values))
    weights[before % num_phases, frames] = 1 - share
    weights[(before + 1) % num_phases, frames] += share
    mean: Floats = weights @ values / (weights.sum(axis=1, keepdims=True) + 1e-9)
    return mean


def _warp_onto(rows: NDArray[np.float32], mean: Floats, periods: Floats) -> Floats:
    """Warp the frames (n, D) of a bout onto a mean repetition (Q, D) that follows itself: phases (n,).

    A frame may advance the phase by SPEEDS times what its period (n,) tells, and by one whole step at least
    where the steps are too coarse for that.
    """
    count, rates = len(mean), len(mean) / periods  # steps per frame
    cost = _squared(rows, mean)  # (n, Q)
    cost /= max(float(cost.mean()), 1e-9)
    steps, phases = np.arange(int(np.ceil(SPEEDS[1] * rates.max())) + 1), np.arange(count)
    sources = (phases - steps[:, None]) % count  # (steps, Q)
    is_allowed = (steps >= np.minimum(SPEEDS[0] * rates, np.floor(rates))[:, None] - 1e-9) & (
        steps <= np.maximum(SPEEDS[1] * rates, np.ceil(rates))[:, None] + 1e-9
    )  # (n, steps)
    prices = np.where(is_allowed, SPEED_PRICE * np.square(steps / rates[:, None] - 1), np.inf)
    totals, taken = cost[0], np.zeros((len(rows), count), dtype=np.int32)
    for frame in range(1, len(rows)):
        candidates = totals[sources] + prices[frame][:, None]
        taken[frame] = candidates.argmin(axis=0)
        totals = candidates[taken[frame], phases] + cost[frame]
    advance, place = np.zeros(len(rows)), int(totals.argmin())
    for frame in range(len(rows) - 1, 0, -1):
        advance[frame] = taken[frame, place]
        place = (place - taken[frame, place]) % count
    return (place + np.cumsum(advance)) / count


def _squared(rows: NDArray[np.float32], mean: Floats) -> Floats:
    """Return the squared distances (n, Q) of frames (n, D) to the phases of a mean repetition (Q, D)."""
    distances: Floats = np.square(rows).sum(axis=1)[:, None] + np.square(mean).sum(axis=1) - 2 * rows @ mean.T
    return distances


def fold_stillness(rows: NDArray[np.float32], bouts: Sequence[Bout], phases: Sequence[Floats]) -> Floats:
    """Return how little the embeddings (N, D) change at each phase of a repetition: (Q,)."""
    change = np.sqrt(np.square(np.gradient(rows, axis=0)).sum(axis=1, keepdims=True))  # (N, 1)
    values = np.concatenate([change[bout.start : bout.stop] for bout in bouts])
    folded = _fold(values, np.concatenate(phases), PHASES[1])[:, 0]
    radius = PHASES[1] // 8
    return -moving_mean(np.pad(folded, radius, mode="wrap"), 2 * radius + 1)[radius:-radius]


def place_cuts(phases: Floats, stillness: Floats) -> float:
    """Return the phase at which the first whole repetition of a bout begins, for phases (n,) of its frames.

    Of all phases that leave as many whole repetitions as possible, it is the stillest; `stillness` is (Q,).
    """
    total = _num_repetitions(phases)
    spare = total - int(total + 1 - MIN_SHARE)  # negative if the last one is not quite complete
    margin = (1 - MIN_SHARE) / 2
    low, high = (0.0, spare) if spare > margin else (spare / 2 - margin, spare / 2 + margin)
    choices = np.linspace(phases[0] + low, phases[0] + high, PHASES[1])
    values = np.interp(
        choices % 1 * len(stillness), np.arange(len(stillness) + 1), [*stillness, stillness[0]]
    )
    return float(choices[int(values.argmax())])


def _num_repetitions(phases: Floats) -> float:
    """Return how many repetitions the frames of a bout show; the last frame lasts as long as the others."""
    return float(phases[-1] - phases[0]) * len(phases) / (len(phases) - 1)


def _cut(phases: Floats, start: int, times: Floats) -> list[Repetition]:
    """Cut a bout that begins at frame `start` where its phases (n,) are whole numbers."""
    total = _num_repetitions(phases)
    count = int(total + 1 - MIN_SHARE)
    cuts = np.searchsorted(phases, np.arange(count + 1) - 1e-9)  # frames of the bout
    first, last = float(phases[0]), float(phases[0]) + total
    edges = [(max(number, first), min(number + 1, last)) for number in range(count)]
    segments = [(cuts[k], cuts[k + 1], high - low, True) for k, (low, high) in enumerate(edges)]
    segments.insert(0, (0, cuts[0], 0 - first, False))
    segments.append((cuts[-1], len(phases), last - count, False))
    ends = np.append(times[1:], times[-1] + np.diff(times[-2:]).sum())  # a frame lasts until the next
    return [
        Repetition(
            start=start + int(a),
            stop=start + int(b),
            start_s=float(times[start + a]),
            end_s=float(ends[start + b - 1]),
            share=min(float(share), 1.0),
            is_whole=is_whole,
        )
        for a, b, share, is_whole in segments
        if b > a and (is_whole or share >= MIN_PARTIAL)
    ]


def split_takes(embeddings: EmbeddingSet, repetitions: Mapping[str, Repetitions]) -> EmbeddingSet:
    """Split each video that holds several whole repetitions into takes `NAME#1`, `NAME#2` and so on.

    All other videos stay whole. Takes keep the seconds of their video, and `EmbeddingSet.first_frame` tells
    where in it they begin, so what is found in them can be shown and told in the file itself.

    Args:
        repetitions: name of a video -> what `find_repetitions` found in it, perhaps by another encoder.
    """
    parts = {}
    for name in embeddings.names:
        whole = repetitions[name].whole if name in repetitions else ()
        spans = [(part.start, part.stop) for part in whole] if len(whole) > 1 else []
        for number, (start, stop) in enumerate(spans, start=1):
            parts[f"{name}#{number}"] = (name, start, stop)
        if not spans:
            parts[name] = (name, 0, len(embeddings[name]))
    return embeddings.cut(parts)


def write_clips(
    video: str | os.PathLike[str],
    repetitions: Repetitions,
    folder: Path,
    *,
    name: str | None = None,
    overwrite: bool = False,
    only_own: bool = False,
    progress: Counter = ignore,
) -> list[Path]:
    """Write each whole repetition of a video, with its sound, to a clip `NAME-01.mp4` and so on.

    Args:
        folder: made if it is not there.
        name: the beginning of the names; default: that of the video file.
        only_own: replace a file only if it is as this program wrote it.
        progress: called with (clips written, clips in total).
    """
    from cycleback.applications.clips import cut_clips

    return cut_clips(
        video,
        repetitions.whole,
        folder,
        name=name,
        overwrite=overwrite,
        only_own=only_own,
        progress=progress,
    )


def _find_runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first frame and one past the last of each run of true flags (N,)."""
    edges = np.flatnonzero(np.diff(np.r_[False, flags, False]))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def moving_mean(values: NDArray[Any], window: int) -> Floats:
    """Average values (N, ...) over `window` frames around each; there are fewer at the ends."""
    window, frames = max(window, 1), np.arange(len(values))
    sums = np.concatenate(
        [np.zeros_like(values[:1], dtype=np.float64), np.cumsum(values, axis=0, dtype=np.float64)]
    )
    low, high = (np.clip(frames - window // 2 + more, 0, len(values)) for more in (0, window))
    mean: Floats = (sums[high] - sums[low]) / (high - low).reshape(-1, *[1] * (values.ndim - 1))
    return mean
