"""Find where a take differs from good takes of the same action (paper: anomaly detection).

A take is aligned with each good take by dynamic time warping, so order counts: a normal start is abnormal in
the middle. The distance of a frame is its mean squared distance to the matched frames of the NEAREST good
takes. Some moments always vary more than others, so each distance is divided by the expected distance at its
moment. The good takes calibrate the score: each is left out in turn and scored against the others.

    score    0: as far as good takes are from each other. 1: one standard deviation further.

Embeddings trained for alignment tell moments apart and ignore much else. The same takes may therefore be
embedded by several encoders. Each is a view, and a frame gets its highest score over all views.

Shapes: N frames of a take, D embedding size, K good takes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment import dtw_path, match_frames, squared_distances
from cycleback.display import show_rows
from cycleback.embeddings import EmbeddingSet, check_one_action, check_same_encoder
from cycleback.errors import EmbeddingError, UserError

NEAREST = 3  # good takes that a frame is compared with: it need not be like any single one
MIN_TAKES = 5
MOMENTS = 20  # parts of the action with their own expected distance
OWN_SHARE = 0.5  # of a moment in its expected distance; the rest is the mean: few takes give noisy estimates
SMOOTHING = 5  # frames
MAX_GAP = 5  # frames below the threshold that do not end a span
MIN_SPAN = 3  # frames; a shorter span is a single bad match
QUIET_TENTH = 0.1  # of the frames: a take that went wrong has moments that went well
ODD_DEVIATIONS = 3.0  # beyond the usual peak, where no take is known to be good
NORMAL_MAD = 0.6745  # median distance from the median of a normal distribution, in standard deviations
FAR_BEYOND = 0.5  # another action scores this much above every good take, even in its quietest tenth

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Verdict = Literal["typical", "something differs", "looks like another action"]
Span = tuple[int, int]
"""First and last frame."""


@dataclass(frozen=True, eq=False)
class AnomalyScores:
    """The scores of one take and their meaning."""

    scores: Floats  # (N,), how far each frame is from the good takes
    progress: Floats  # (N,) in [0, 1], where in the action each frame is
    matches: NDArray[np.int64]  # (N, 2), the nearest good take (its number) and its frame
    spans: tuple[Span, ...]  # parts that stand out, each as first and last frame
    threshold: float  # frames above it are flagged; the stated share of frames of good takes is
    # a take whose highest score is above it differs; the stated share of good takes does
    peak_threshold: float
    verdict: Verdict  # on the whole take

    @classmethod
    def calibrate(
        cls,
        scores: Floats,
        own_scores: Sequence[Floats],
        *,
        progress: Floats,
        matches: NDArray[np.int64],
        false_alarms: float,
    ) -> Self:
        """Judge `scores` (N,) by the scores of good takes, each left out in turn."""
        if not 0 < false_alarms < 1:
            raise ValueError(f"false_alarms must be between 0 and 1, got {false_alarms}")
        threshold = find_threshold(own_scores, false_alarms)
        peaks = [float(own.max()) for own in own_scores]
        peak_threshold = float(np.quantile(peaks, 1 - false_alarms, method="higher"))
        verdict: Verdict = "something differs" if scores.max() > peak_threshold else "typical"
        quiet, *own_quiet = (float(np.quantile(curve, QUIET_TENTH)) for curve in (scores, *own_scores))
        if quiet > max(0.0, *own_quiet) + FAR_BEYOND:
            verdict = "looks like another action"
        spans = tuple(find_spans(scores, threshold))
        return cls(scores, progress, matches, spans, threshold, peak_threshold, verdict)

    @property
    def flagged(self) -> Flags:
        """Whether each frame (N,) lies in a span."""
        return flag_frames(self.spans, len(self.scores))

    @property
    def peak(self) -> int:
        """The frame with the highest score."""
        return int(self.scores.argmax())


@dataclass(frozen=True, eq=False)
class Comparison:
    """A take compared with all good takes."""

    distances: Floats  # (N,), mean squared distance to the nearest good takes
    progress: Floats  # (N,) in [0, 1], where in the action each frame is: the median over good takes
    matches: NDArray[np.int64]  # (N, 2), the good take that is nearest at each frame, and its frame


@dataclass(frozen=True, eq=False)
class View:
    """The good takes as embedded by one encoder."""

    takes: tuple[NDArray[np.float32], ...]  # K arrays (N, D)
    expected: Floats  # (MOMENTS,), mean distance of a good take from the others at each moment
    spread: float  # standard deviation of distance / expected over all frames of good takes

    def score(self, comparison: Comparison) -> Floats:
        """Return the scores (N,) of a comparison, before smoothing."""
        expected = np.interp(comparison.progress, _moment_centres(), self.expected)
        return (comparison.distances / expected - 1) / self.spread


@dataclass(frozen=True, eq=False)
class AnomalyModel:
    """What is normal in an action; made by `fit_anomaly_model`."""

    names: tuple[str, ...]  # of the good takes
    views: tuple[View, ...]  # one per encoder
    own_scores: tuple[Floats, ...]  # K arrays (N,), the scores of each good take when it is left out
    own_comparisons: tuple[Comparison, ...]  # of each good take with the others, in the first view

    def score_own(self, name: str, *, false_alarms: float = 0.05) -> AnomalyScores:
        """Score one of the good takes against the others; see `score`."""
        k = self.names.index(name)
        matches = self.own_comparisons[k].matches  # the good takes are counted without this one
        return AnomalyScores.calibrate(
            self.own_scores[k],
            self.own_scores[:k] + self.own_scores[k + 1 :],
            progress=self.own_comparisons[k].progress,
            matches=matches + np.stack([matches[:, 0] >= k, np.zeros(len(matches), bool)], axis=1),
            false_alarms=false_alarms,
        )

    def score(self, *embeddings: ArrayLike, false_alarms: float = 0.05) -> AnomalyScores:
        """Score a take.

        Args:
            embeddings: (N, D), one array per view, in the same order.
            false_alarms: share of the frames of good takes that may be flagged, and of good takes that may
                be said to differ.
        """
        if len(embeddings) != len(self.views):
            raise ValueError(f"need embeddings for {len(self.views)} views, got {len(embeddings)}")
        takes = [np.asarray(array, dtype=np.float32) for array in embeddings]
        comparisons = [_compare(take, view.takes) for take, view in zip(takes, self.views, strict=True)]
        scores = [view.score(each) for view, each in zip(self.views, comparisons, strict=True)]
        return AnomalyScores.calibrate(
            _combine_views(scores),
            self.own_scores,
            progress=comparisons[0].progress,
            matches=comparisons[0].matches,
            false_alarms=false_alarms,
        )


@dataclass(frozen=True, eq=False)
class AnomalyReport:
    """The scores of several takes."""

    videos: EmbeddingSet  # embeddings of the takes, by the first encoder
    good: EmbeddingSet  # embeddings of the good takes, by the first encoder
    scores: Mapping[str, AnomalyScores]  # name of the take -> its scores

    @property
    def oddest(self) -> str:
        """The take with the highest score."""
        return max(self.scores, key=lambda name: float(self.scores[name].scores.max()))

    def rows(self) -> list[dict[str, Any]]:
        """Make one row per frame: video, frame, seconds, score, flagged (1 or 0)."""
        rows: list[dict[str, Any]] = []
        for name, each in self.scores.items():
            times, flagged = self.videos.times(name), each.flagged
            first = self.videos.first_frame(name)
            for frame, score in enumerate(each.scores):
                row = {"video": name, "frame": first + frame, "seconds": round(float(times[frame]), 6)}
                rows.append(row | {"score": round(float(score), 4), "flagged": int(flagged[frame])})
        return rows

    def _repr_html_(self) -> str:
        """Show the verdict on each take as a table in a notebook, the oddest first."""
        takes = sorted(self.to_json().items(), key=lambda item: -item[1]["peak_score"])
        rows = [{"video": name, **take} for name, take in takes]
        return show_rows(rows, caption=f"{len(rows)} takes against {len(self.good)} good ones")

    def to_json(self) -> dict[str, Any]:
        """Summarise each take: verdict, peak, threshold and spans, in frames of its file."""
        first = {name: self.videos.first_frame(name) for name in self.scores}
        return {
            name: {
                "verdict": each.verdict,
                "peak_frame": first[name] + each.peak,
                "peak_score": round(float(each.scores.max()), 4),
                "threshold": round(each.threshold, 4),
                "spans": [[first[name] + frame for frame in span] for span in each.spans],
            }
            for name, each in self.scores.items()
        }


def find_anomalies(
    videos: EmbeddingSet | Sequence[EmbeddingSet],
    good: EmbeddingSet | Sequence[EmbeddingSet],
    *,
    false_alarms: float = 0.05,
) -> AnomalyReport:
    """Score videos against good takes of the same action; videos that are themselves good takes are skipped.

    Args:
        videos: embeddings by one encoder, or one set per encoder.
        good: embeddings of at least MIN_TAKES good takes by the same encoders, in the same order.
        false_alarms: see `AnomalyModel.score`.
    """
    views = [videos] if isinstance(videos, EmbeddingSet) else list(videos)
    known = [good] if isinstance(good, EmbeddingSet) else list(good)
    for view, takes in zip(views, known, strict=True):
        check_same_encoder({"the good takes": takes.encoder, "the videos": view.encoder})
    check_one_action(known[0], views[0])
    names = _exclude_good_takes(views[0], known[0])
    model = fit_anomaly_model(*known)
    scores = {n: model.score(*(view[n] for view in views), false_alarms=false_alarms) for n in names}
    return AnomalyReport(views[0], known[0], scores)


def compare_takes(*views: EmbeddingSet, false_alarms: float = 0.05) -> AnomalyReport:
    """Score each take against all others, such as the repetitions of one video; none is known to be good.

    Args:
        views: embeddings of the same takes, at least MIN_TAKES + 1, by one or more encoders.
        false_alarms: see `AnomalyModel.score`.
    """
    check_one_action(views[0])
    names = views[0].names
    if len(names) <= MIN_TAKES:
        raise EmbeddingError(f"{len(names)} takes cannot say which is odd: give at least {MIN_TAKES + 1}")
    model = fit_anomaly_model(*views)
    scores = {name: model.score_own(name, false_alarms=false_alarms) for name in names}
    peaks = np.array([each.scores.max() for each in scores.values()])
    for number, (name, each) in enumerate(scores.items()):
        others = np.delete(peaks, number)
        usual = float(np.median(others))
        spread = float(np.median(np.abs(others - usual))) / NORMAL_MAD
        if (
            peaks[number] <= usual + ODD_DEVIATIONS * spread
        ):  # some take is always the furthest from the others
            scores[name] = replace(each, verdict="typical", spans=())
        else:  # an odd take widens what is usual, so only what no other take ever shows stands out
            spans = tuple(find_spans(each.scores, each.peak_threshold))
            odd: Verdict = "something differs" if each.verdict != "typical" else "typical"
            scores[name] = replace(each, verdict=odd, spans=spans, threshold=each.peak_threshold)
    return AnomalyReport(views[0], views[0], scores)


def fit_anomaly_model(*views: EmbeddingSet) -> AnomalyModel:
    """Learn what is normal from good takes.

    Args:
        views: embeddings of the same takes, at least MIN_TAKES, by one or more encoders.
    """
    names = _check_takes(views)
    own: list[list[Floats]] = []
    compared: list[tuple[Comparison, ...]] = []
    fitted: list[View] = []
    for embeddings in views:
        takes = tuple(np.array(embeddings[name]) for name in names)
        left_out = tuple(_compare(take, takes[:k] + takes[k + 1 :]) for k, take in enumerate(takes))
        view = _fit_view(takes, left_out)
        fitted.append(view)
        compared.append(left_out)
        own.append([view.score(comparison) for comparison in left_out])
    scores = tuple(_combine_views(each) for each in zip(*own, strict=True))
    return AnomalyModel(names, tuple(fitted), scores, compared[0])


def find_spans(curve: Floats, threshold: float) -> list[Span]:
    """Find the parts of `curve` (N,) above the threshold: close short gaps, then drop short parts."""
    frames = np.flatnonzero(curve > threshold)
    if not len(frames):
        return []
    breaks = np.flatnonzero(np.diff(frames) > MAX_GAP + 1)
    firsts, lasts = frames[np.r_[0, breaks + 1]], frames[np.r_[breaks, len(frames) - 1]]
    spans = zip(firsts.tolist(), lasts.tolist(), strict=True)
    return [(first, last) for first, last in spans if last - first + 1 >= MIN_SPAN]


def flag_frames(spans: Sequence[Span], num_frames: int) -> Flags:
    """Tell whether each frame (N,) lies in one of the spans."""
    flags = np.zeros(num_frames, dtype=bool)
    for first, last in spans:
        flags[first : last + 1] = True
    return flags


def find_threshold(curves: Sequence[Floats], false_alarms: float) -> float:
    """Find the lowest threshold whose spans cover at most the share `false_alarms` of all frames."""
    values = np.unique(np.concatenate(curves))
    total = sum(map(len, curves))

    def share(threshold: float) -> float:
        return sum(int(flag_frames(find_spans(c, threshold), len(c)).sum()) for c in curves) / total

    low, high = 0, len(values) - 1  # nothing lies above the highest value, so it always fits
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if share(values[middle]) <= false_alarms else (middle + 1, high)
    return float(values[low])


def running_mean(curve: Floats, *, window: int) -> Floats:
    """Average `curve` (N,) over an odd number of frames around each; the ends hold their value."""
    padded = np.pad(curve, window // 2, mode="edge")
    return np.convolve(padded, np.full(window, 1 / window), mode="valid")


def _exclude_good_takes(videos: EmbeddingSet, good: EmbeddingSet) -> list[str]:
    """Names of the videos that are not good takes, which would match themselves."""
    known = {_place(good, name) for name in good.names if good.path(name) is not None}
    names = [name for name in videos if videos.path(name) is None or _place(videos, name) not in known]
    if not names:
        raise UserError(f"all {len(videos)} videos are among the good takes themselves: give other videos")
    return names


def _place(embeddings: EmbeddingSet, name: str) -> tuple[Path | None, int]:
    """Return the file of a take and the first frame in it, which tell takes apart."""
    path = embeddings.path(name)
    return None if path is None else path.resolve(), embeddings.first_frame(name)


def _check_takes(views: Sequence[EmbeddingSet]) -> tuple[str, ...]:
    """Check that all views hold the same takes, and enough of them; return their names."""
    names = views[0].names if views else ()
    if len(names) < MIN_TAKES:
        few = f"{len(names)} good take{'s' * (len(names) != 1)}"
        raise EmbeddingError(f"{few} cannot say what is typical: give at least {MIN_TAKES}")
    if any(set(view.names) != set(names) for view in views[1:]):
        raise EmbeddingError("all views must be of the same good takes: embed them again, together")
    return names


def _fit_view(takes: tuple[NDArray[np.float32], ...], left_out: Sequence[Comparison]) -> View:
    """Estimate the expected distance at each moment, a weighted mean over nearby frames, and the spread."""
    distances = np.concatenate([comparison.distances for comparison in left_out])
    progress = np.concatenate([comparison.progress for comparison in left_out])
    reach = 1.5 / MOMENTS
    away = (progress - _moment_centres()[:, None]) / reach  # (MOMENTS, sum N)
    weights = np.exp(-0.5 * away**2) + 1e-12
    own = (weights @ distances) / weights.sum(axis=1)
    mean = float(distances.mean())
    if mean <= 0:
        raise EmbeddingError("the good takes are all the same video: give different takes of the action")
    expected = OWN_SHARE * own + (1 - OWN_SHARE) * mean
    ratios = distances / np.interp(progress, _moment_centres(), expected)
    return View(takes, expected, max(float(ratios.std()), 1e-6))


def _compare(take: NDArray[np.float32], others: Sequence[NDArray[np.float32]]) -> Comparison:
    """Compare a take (N, D) with each of `others`."""
    if take.ndim != 2 or len(take) < 2:
        count = len(take) if take.ndim else 0
        raise EmbeddingError(f"a take needs at least 2 frames to be compared, got {count}")
    if take.shape[1] != others[0].shape[1]:
        sizes = f"{take.shape[1]}, the good takes {others[0].shape[1]}"
        raise EmbeddingError(f"the take has embeddings of size {sizes}: embed all with the same encoder")
    along = [_follow_path(take, other) for other in others]
    distances = np.array([distance for distance, _ in along])  # (K, N)
    indices = np.array([index for _, index in along])
    ends = np.array([max(len(other) - 1, 1) for other in others])
    nearest = distances.argmin(axis=0)  # (N,)
    return Comparison(
        distances=np.sort(distances, axis=0)[:NEAREST].mean(axis=0),
        progress=np.median(indices / ends[:, None], axis=0),
        matches=np.stack([nearest, indices[nearest, np.arange(len(take))]], axis=1),
    )


def _follow_path(take: NDArray[np.float32], other: NDArray[np.float32]) -> tuple[Floats, NDArray[np.int64]]:
    """For each frame of `take`, the least distance to the frames the path pairs it with, and their middle."""
    cost = squared_distances(take, other)
    path = dtw_path(cost)
    least = np.full(len(take), np.inf)
    np.minimum.at(least, path[:, 0], cost[path[:, 0], path[:, 1]])
    return least, match_frames(path)


def _combine_views(scores: Sequence[Floats]) -> Floats:
    """Take the highest score (N,) of all views and smooth it over time."""
    return running_mean(np.max(scores, axis=0), window=SMOOTHING)


def _moment_centres() -> Floats:
    """Progress (MOMENTS,) at the middle of each moment."""
    return (np.arange(MOMENTS) + 0.5) / MOMENTS
