"""Find where a take differs from good takes of the same action (paper: anomaly detection).

A take is aligned with each good take by dynamic time warping, so order counts: a normal start is abnormal in
the middle. The distance of a frame is its mean squared distance to the matched frames of the NEAREST good
takes. Some moments always vary more than others, so each distance is divided by the expected distance at its
moment. The good takes calibrate the score: each is left out in turn and scored against the others.

    score    0: as far as good takes are from each other. 1: one standard deviation further.

Embeddings trained for alignment tell moments apart and ignore much else. The same takes may therefore be
embedded by several encoders. Each is a view. Besides, the cells of the frames may be compared, stream by
stream (`anomaly_cells`), and the time spent in each part of the action (`anomaly_timing`). A frame gets its
highest score over all views, which is then pooled with those of the streams. `oddities` names what is odd.

Shapes: N frames of a take, D embedding size, K good takes, G cells of a frame, V size of the vector of one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment import dtw_path, match_frames, squared_distances
from cycleback.applications.anomaly_cells import (
    MOMENTS,
    NEAREST,
    OWN_SHARE,
    SMOOTHING,
    CellView,
    combine_streams,
    find_tail,
    moment_centres,
    running_mean,
    scale_tail,
)
from cycleback.applications.anomaly_timing import PaceChange, PaceModel, sum_runs
from cycleback.applications.oddities import TIMING, Oddity, Span, flag_frames, name_oddities
from cycleback.display import show_rows
from cycleback.embeddings import EmbeddingSet, check_one_action, check_same_encoder
from cycleback.embeddings.cells import VECTOR_SIZES
from cycleback.embeddings.embedding_set import ASSUMED_FPS
from cycleback.errors import EmbeddingError, UserError

MIN_TAKES = 5
MAX_GAP = 5  # frames below the threshold that do not end a span
MIN_SPAN = 3  # frames; a shorter span is a single bad match
QUIET_TENTH = 0.1  # of the frames: a take that went wrong has moments that went well
ODD_DEVIATIONS = 3.0  # beyond the usual peak, where no take is known to be good
NORMAL_MAD = 0.6745  # median distance from the median of a normal distribution, in standard deviations
FAR_BEYOND = 0.5  # another action scores this much above every good take, even in its quietest tenth

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
CellSets = Mapping[str, EmbeddingSet]
"""The cells of some takes, by stream."""
Verdict = Literal["typical", "something differs", "looks like another action"]
EMBEDDING = "embedding"
"""The stream of the embeddings themselves, which aligns the takes."""
TIMING_SHARE = 0.25  # of the good takes called odd may be so by their timing, the others by their frames


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
    streams: Mapping[str, Floats] = field(default_factory=dict)  # (N,) by stream, where there are several
    oddities: tuple[Oddity, ...] = ()  # what is odd, in the order of the frames

    @classmethod
    def calibrate(
        cls,
        scores: Floats,
        own_scores: Sequence[Floats],
        *,
        progress: Floats,
        matches: NDArray[np.int64],
        false_alarms: float,
        streams: Mapping[str, Floats] | None = None,
        own_pace: Sequence[float] = (),
        pace: "TakePace | None" = None,
        is_missing: Flags | None = None,
    ) -> Self:
        """Judge `scores` (N,) by the scores of good takes, each left out in turn.

        Args:
            scores: of the take.
            own_scores: K arrays (N,), of the good takes.
            progress: (N,), where in the action each frame of the take is.
            matches: (N, 2), the nearest good take and its frame.
            false_alarms: see `AnomalyModel.score`.
            streams: the scores (N,) of the take by stream.
            own_pace: (K,), how far the pace of each good take is from that of the others.
            pace: how the take passes through the action.
            is_missing: whether less has changed in each frame (N,) than in the good takes.
        """
        if not 0 < false_alarms < 1:
            raise ValueError(f"false_alarms must be between 0 and 1, got {false_alarms}")
        threshold = find_threshold(own_scores, false_alarms)
        peaks = [float(own.max()) for own in own_scores]
        by_timing = 0.0 if pace is None else TIMING_SHARE * false_alarms
        peak_threshold = bound_peak(peaks, false_alarms - by_timing)
        changes = [] if pace is None else pace.find_changes(bound_peak(own_pace, by_timing))
        is_odd = bool(changes) or float(scores.max()) > peak_threshold
        verdict: Verdict = "something differs" if is_odd else "typical"
        quiet, *own_quiet = (float(np.quantile(curve, QUIET_TENTH)) for curve in (scores, *own_scores))
        if quiet > max(0.0, *own_quiet) + FAR_BEYOND:
            verdict = "looks like another action"
        spans = tuple(find_spans(scores, threshold))
        by_stream = dict(streams or {})
        found = cls(scores, progress, matches, spans, threshold, peak_threshold, verdict, by_stream)
        oddities = name_oddities(spans, changes, by_stream or {EMBEDDING: scores}, is_missing=is_missing)
        return replace(found, oddities=oddities)

    @property
    def flagged(self) -> Flags:
        """Whether each frame (N,) lies in a span."""
        return flag_frames(self.spans, len(self.scores))

    @property
    def kinds(self) -> list[str]:
        """What is odd about each frame; empty for most."""
        kinds = [""] * len(self.scores)
        for oddity in self.oddities:
            for frame in range(oddity.first, oddity.last + 1):
                kinds[frame] = kinds[frame] or oddity.kind
        return kinds

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
    indices: NDArray[np.int64]  # (K, N), the frame of each good take that goes with each frame


@dataclass(frozen=True, eq=False)
class TakePace:
    """How a take passes through the action, beside what is usual."""

    model: PaceModel
    progress: Floats  # (N,) in [0, 1]
    seconds: Floats  # (N,)

    def find_changes(self, threshold: float) -> list[PaceChange]:
        """Find the parts that take longer or shorter than usual by more than `threshold` deviations."""
        return self.model.find_changes(self.progress, self.seconds, threshold=threshold)


@dataclass(frozen=True, eq=False)
class View:
    """The good takes as embedded by one encoder."""

    takes: tuple[NDArray[np.float32], ...]  # K arrays (N, D)
    expected: Floats  # (MOMENTS,), mean distance of a good take from the others at each moment
    spread: float  # standard deviation of distance / expected over all frames of good takes

    def score(self, comparison: Comparison) -> Floats:
        """Return the scores (N,) of a comparison, before smoothing."""
        expected = np.interp(comparison.progress, moment_centres(), self.expected)
        return (comparison.distances / expected - 1) / self.spread


@dataclass(frozen=True, eq=False)
class AnomalyModel:
    """What is normal in an action; made by `fit_anomaly_model`."""

    names: tuple[str, ...]  # of the good takes
    views: tuple[View, ...]  # one per encoder
    own_scores: tuple[Floats, ...]  # K arrays (N,), the scores of each good take when it is left out
    own_comparisons: tuple[Comparison, ...]  # of each good take with the others, in the first view
    cells: tuple[CellView, ...]  # one per stream; none where only embeddings are known
    tail: tuple[float, float] | None  # of the scores of good takes in the views, where there are cells
    own_streams: tuple[Mapping[str, Floats], ...]  # K mappings from a stream to the scores (N,)
    seconds: tuple[Floats, ...]  # K arrays (N,), of the frames of the good takes

    def score_own(self, name: str, *, false_alarms: float = 0.05) -> AnomalyScores:
        """Score one of the good takes against the others; see `score`."""
        k = self.names.index(name)
        compared = self.own_comparisons[k]
        matches = compared.matches  # the good takes are counted without this one
        durations = self.own_durations
        others = durations[:k] + durations[k + 1 :]
        return AnomalyScores.calibrate(
            self.own_scores[k],
            self.own_scores[:k] + self.own_scores[k + 1 :],
            progress=compared.progress,
            matches=matches + np.stack([matches[:, 0] >= k, np.zeros(len(matches), bool)], axis=1),
            false_alarms=false_alarms,
            streams=self.own_streams[k],
            own_pace=leave_out_each(others),
            pace=TakePace(PaceModel.fit(others), compared.progress, self.seconds[k]),
            is_missing=self._find_missing(
                {each.stream: each.takes[k] for each in self.cells}, compared.indices, without=k
            ),
        )

    def score(
        self,
        *embeddings: ArrayLike,
        false_alarms: float = 0.05,
        cells: Mapping[str, ArrayLike] | None = None,
        seconds: ArrayLike | None = None,
    ) -> AnomalyScores:
        """Score a take.

        Args:
            embeddings: (N, D), one array per view, in the same order.
            false_alarms: share of the frames of good takes that may be flagged, and of good takes that may
                be said to differ.
            cells: (N, G * V) by stream, of the streams of this model.
            seconds: (N,) of the frames; default: 30 frames per second.
        """
        if len(embeddings) != len(self.views):
            raise ValueError(f"need embeddings for {len(self.views)} views, got {len(embeddings)}")
        takes = [np.asarray(array, dtype=np.float32) for array in embeddings]
        comparisons = [_compare(take, view.takes) for take, view in zip(takes, self.views, strict=True)]
        first = comparisons[0]
        scores = _scale([v.score(each) for v, each in zip(self.views, comparisons, strict=True)], self.tail)
        parts = {each.stream: _split_cells(each.stream, (cells or {})[each.stream]) for each in self.cells}
        streams = {EMBEDDING: scores} if self.cells else {}
        for view in self.cells:
            streams[view.stream] = view.score(parts[view.stream], first.indices, first.progress)
        clock = np.arange(len(takes[0])) / ASSUMED_FPS if seconds is None else np.asarray(seconds, np.float64)
        durations = self.own_durations
        return AnomalyScores.calibrate(
            combine_streams(list(streams.values()) or [scores]),
            self.own_scores,
            progress=first.progress,
            matches=first.matches,
            false_alarms=false_alarms,
            streams={stream: running_mean(own, window=SMOOTHING) for stream, own in streams.items()},
            own_pace=leave_out_each(durations),
            pace=TakePace(PaceModel.fit(durations), first.progress, clock),
            is_missing=self._find_missing(parts, first.indices),
        )

    @property
    def own_durations(self) -> list[Floats]:
        """The seconds that each good take spends in each run of parts of the action."""
        pairs = zip(self.own_comparisons, self.seconds, strict=True)
        return [sum_runs(compared.progress, seconds) for compared, seconds in pairs]

    def _find_missing(
        self, cells: Mapping[str, NDArray[np.float32]], indices: NDArray[np.int64], without: int | None = None
    ) -> Flags | None:
        """Tell whether less has changed in each frame (N,) of a take than in the good takes."""
        view = next((each for each in self.cells if each.stream == "change"), None)
        if view is None:
            return None
        takes = [take for k, take in enumerate(view.takes) if k != without]
        usual = [take[frames].mean(axis=(1, 2)) for take, frames in zip(takes, indices, strict=True)]
        flags: Flags = cells["change"].mean(axis=(1, 2)) < np.median(usual, axis=0)
        return flags


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
        """Make one row per frame: video, frame, seconds, score, flagged (1 or 0), kind, and stream scores."""
        rows: list[dict[str, Any]] = []
        for name, each in self.scores.items():
            times, flagged, kinds = self.videos.times(name), each.flagged, each.kinds
            first = self.videos.first_frame(name)
            for frame, score in enumerate(each.scores):
                row = {"video": name, "frame": first + frame, "seconds": round(float(times[frame]), 6)}
                row |= {"score": round(float(score), 4), "flagged": int(flagged[frame]), "kind": kinds[frame]}
                streams = {stream: round(float(own[frame]), 4) for stream, own in each.streams.items()}
                rows.append(row | streams)
        return rows

    def describe(self, name: str) -> list[str]:
        """Say in one sentence each what is odd in a take, by the seconds of its video."""
        return [oddity.describe(self.videos.times(name)) for oddity in self.scores[name].oddities]

    def _repr_html_(self) -> str:
        """Show the verdict on each take as a table in a notebook, the oddest first."""
        takes = sorted(self.to_json().items(), key=lambda item: -item[1]["peak_score"])
        rows = [{"video": name, **take, "oddities": "; ".join(self.describe(name))} for name, take in takes]
        return show_rows(rows, caption=f"{len(rows)} takes against {len(self.good)} good ones")

    def to_json(self) -> dict[str, Any]:
        """Summarise each take: verdict, peak, threshold, spans and oddities, in frames of its file."""
        first = {name: self.videos.first_frame(name) for name in self.scores}
        return {
            name: {
                "verdict": each.verdict,
                "peak_frame": first[name] + each.peak,
                "peak_score": round(float(each.scores.max()), 4),
                "threshold": round(each.threshold, 4),
                "spans": [[first[name] + frame for frame in span] for span in each.spans],
                "oddities": [
                    {
                        "kind": oddity.kind,
                        "stream": oddity.stream,
                        "first_frame": first[name] + oddity.first,
                        "last_frame": first[name] + oddity.last,
                        "text": oddity.describe(self.videos.times(name)),
                    }
                    for oddity in each.oddities
                ],
            }
            for name, each in self.scores.items()
        }


def find_anomalies(
    videos: EmbeddingSet | Sequence[EmbeddingSet],
    good: EmbeddingSet | Sequence[EmbeddingSet],
    *,
    false_alarms: float = 0.05,
    cells: tuple[CellSets, CellSets] | None = None,
) -> AnomalyReport:
    """Score videos against good takes of the same action; videos that are themselves good takes are skipped.

    Args:
        videos: embeddings by one encoder, or one set per encoder.
        good: embeddings of at least MIN_TAKES good takes by the same encoders, in the same order.
        false_alarms: see `AnomalyModel.score`.
        cells: the cells of the videos and of the good takes (`runs.cells.embed_cells`), to compare them
            stream by stream.
    """
    views = [videos] if isinstance(videos, EmbeddingSet) else list(videos)
    known = [good] if isinstance(good, EmbeddingSet) else list(good)
    for view, takes in zip(views, known, strict=True):
        check_same_encoder({"the good takes": takes.encoder, "the videos": view.encoder})
    check_one_action(known[0], views[0])
    names = _exclude_good_takes(views[0], known[0])
    own, theirs = cells or ({}, {})
    model = fit_anomaly_model(*known, cells={stream: theirs[stream] for stream in theirs if stream in own})
    scores = {name: score_take(model, name, views, own, false_alarms=false_alarms) for name in names}
    return AnomalyReport(views[0], known[0], scores)


def score_take(
    model: AnomalyModel,
    name: str,
    views: Sequence[EmbeddingSet],
    cells: CellSets,
    *,
    false_alarms: float = 0.05,
) -> AnomalyScores:
    """Score one take of some embedding sets, by its cells, too, if the model knows those of good takes."""
    return model.score(
        *(view[name] for view in views),
        false_alarms=false_alarms,
        cells={view.stream: cells[view.stream][name] for view in model.cells},
        seconds=views[0].times(name),
    )


def compare_takes(
    *views: EmbeddingSet, false_alarms: float = 0.05, cells: CellSets | None = None
) -> AnomalyReport:
    """Score each take against all others, such as the repetitions of one video; none is known to be good.

    Args:
        views: embeddings of the same takes, at least MIN_TAKES + 1, by one or more encoders.
        false_alarms: see `AnomalyModel.score`.
        cells: the cells of the takes by stream (`runs.cells.embed_cells`), to compare these, too.
    """
    check_one_action(views[0])
    names = views[0].names
    if len(names) <= MIN_TAKES:
        raise EmbeddingError(f"{len(names)} takes cannot say which is odd: give at least {MIN_TAKES + 1}")
    model = fit_anomaly_model(*views, cells=cells)
    scores = {name: model.score_own(name, false_alarms=false_alarms) for name in names}
    peaks = np.array([each.scores.max() for each in scores.values()])
    for number, (name, each) in enumerate(scores.items()):
        others = np.delete(peaks, number)
        usual = float(np.median(others))
        spread = float(np.median(np.abs(others - usual))) / NORMAL_MAD
        if (
            peaks[number] <= usual + ODD_DEVIATIONS * spread
        ):  # some take is always the furthest from the others
            scores[name] = replace(each, verdict="typical", spans=(), oddities=())
        else:  # an odd take widens what is usual, so only what no other take ever shows stands out
            spans = tuple(find_spans(each.scores, each.peak_threshold))
            odd: Verdict = "something differs" if each.verdict != "typical" else "typical"
            seen = flag_frames(spans, len(each.scores))
            kept = tuple(o for o in each.oddities if seen[o.first : o.last + 1].any() or o.stream == TIMING)
            changed = {"verdict": odd, "spans": spans, "oddities": kept, "threshold": each.peak_threshold}
            scores[name] = replace(each, **changed)  # type: ignore[arg-type]
    return AnomalyReport(views[0], views[0], scores)


def fit_anomaly_model(*views: EmbeddingSet, cells: CellSets | None = None) -> AnomalyModel:
    """Learn what is normal from good takes.

    Args:
        views: embeddings of the same takes, at least MIN_TAKES, by one or more encoders.
        cells: the cells of the takes by stream, if these are to be compared, too.
    """
    names = _check_takes([*views, *(cells or {}).values()], MIN_TAKES)
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
    whole = [np.max(each, axis=0) for each in zip(*own, strict=True)]  # K arrays (N,)
    tail = find_tail(np.concatenate(whole)) if cells else None
    cell_views = tuple(
        CellView.fit(
            stream,
            tuple(_split_cells(stream, videos[name]) for name in names),
            matches=[each.indices for each in compared[0]],
            progress=[each.progress for each in compared[0]],
        )
        for stream, videos in (cells or {}).items()
    )
    streams = [
        {EMBEDDING: _scale([scores], tail)} | {each.stream: each.own_scores[k] for each in cell_views}
        for k, scores in enumerate(whole)
    ]
    smooth = [{s: running_mean(each, window=SMOOTHING) for s, each in own.items()} for own in streams]
    return AnomalyModel(
        names,
        tuple(fitted),
        tuple(combine_streams(list(each.values())) for each in streams),
        compared[0],
        cell_views,
        tail,
        tuple(smooth) if cell_views else ({},) * len(names),
        tuple(np.array(views[0].times(name)) for name in names),
    )


def find_spans(curve: Floats, threshold: float) -> list[Span]:
    """Find the parts of `curve` (N,) above the threshold: close short gaps, then drop short parts."""
    frames = np.flatnonzero(curve > threshold)
    if not len(frames):
        return []
    breaks = np.flatnonzero(np.diff(frames) > MAX_GAP + 1)
    firsts, lasts = frames[np.r_[0, breaks + 1]], frames[np.r_[breaks, len(frames) - 1]]
    spans = zip(firsts.tolist(), lasts.tolist(), strict=True)
    return [(first, last) for first, last in spans if last - first + 1 >= MIN_SPAN]


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


def _check_takes(views: Sequence[EmbeddingSet], min_takes: int) -> tuple[str, ...]:
    """Check that all views hold the same takes, and enough of them; return their names."""
    names = views[0].names if views else ()
    if len(names) < min_takes:
        few = f"{len(names)} good take{'s' * (len(names) != 1)}"
        raise EmbeddingError(f"{few} cannot say what is typical: give at least {min_takes}")
    if any(set(view.names) != set(names) for view in views[1:]):
        raise EmbeddingError("all views must be of the same good takes: embed them again, together")
    return names


def _fit_view(takes: tuple[NDArray[np.float32], ...], left_out: Sequence[Comparison]) -> View:
    """Estimate the expected distance at each moment, a weighted mean over nearby frames, and the spread."""
    distances = np.concatenate([comparison.distances for comparison in left_out])
    progress = np.concatenate([comparison.progress for comparison in left_out])
    reach = 1.5 / MOMENTS
    away = (progress - moment_centres()[:, None]) / reach  # (MOMENTS, sum N)
    weights = np.exp(-0.5 * away**2) + 1e-12
    own = (weights @ distances) / weights.sum(axis=1)
    mean = float(distances.mean())
    if mean <= 0:
        raise EmbeddingError("the good takes are all the same video: give different takes of the action")
    expected = OWN_SHARE * own + (1 - OWN_SHARE) * mean
    ratios = distances / np.interp(progress, moment_centres(), expected)
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
        indices=indices,
    )


def _follow_path(take: NDArray[np.float32], other: NDArray[np.float32]) -> tuple[Floats, NDArray[np.int64]]:
    """For each frame of `take`, the least distance to the frames the path pairs it with, and their middle."""
    cost = squared_distances(take, other)
    path = dtw_path(cost)
    least = np.full(len(take), np.inf)
    np.minimum.at(least, path[:, 0], cost[path[:, 0], path[:, 1]])
    return least, match_frames(path)


def _scale(scores: Sequence[Floats], tail: tuple[float, float] | None) -> Floats:
    """Return the highest score (N,) of all views, as comparable with other streams, if there are any."""
    highest: Floats = np.max(scores, axis=0)
    return highest if tail is None else scale_tail(highest, tail)


def _split_cells(stream: str, rows: ArrayLike) -> NDArray[np.float32]:
    """Return rows (N, G * V) as cells (N, G, V)."""
    array = np.asarray(rows, dtype=np.float32)
    return array.reshape(len(array), -1, VECTOR_SIZES[stream])


def leave_out_each(durations: Sequence[Floats]) -> list[float]:
    """Return how far each good take is from the pace of the others; `durations` are K arrays (R,)."""
    others = [[own for n, own in enumerate(durations) if n != k] for k in range(len(durations))]
    return [PaceModel.fit(rest).peak(own) for rest, own in zip(others, durations, strict=True)]


def bound_peak(peaks: Sequence[float], false_alarms: float) -> float:
    """Return the score that the stated share of new good takes exceeds somewhere.

    The logarithm of 1 + the highest score of a take is taken as normal. Few good takes then give a higher
    bound, as they say less about the next one (a one-sided prediction interval).
    """
    from scipy.special import stdtrit

    logs = np.log1p(np.maximum(peaks, 0))
    if len(logs) < 2:
        return float(np.expm1(logs.max()))
    quantile = float(stdtrit(len(logs) - 1, 1 - false_alarms))
    return float(np.expm1(logs.mean() + quantile * logs.std(ddof=1) * (1 + 1 / len(logs)) ** 0.5))
