"""Align two videos, or put several on one clock.

`align` finds the frame of one video that goes with each frame of another. Aligning every pair of several
videos that way gives answers that contradict each other: u to v to w is not u to w. `align_many` warps every
video to one template instead. The template begins as the medoid, the video with the least total DTW cost to
the others (each cost is divided by the number of frames of the pair, so that long videos do not always lose).
It then becomes a DTW barycentre (Petitjean et al., 2011): a few times, each of its K frames is replaced by
the mean of all frames warped to it. No round makes the total cost of the videos to the template larger: the
mean is nearest to the frames it stands for, and the new paths cost no more than the old.

Shapes: T frames of video a, S frames of video b, D embedding size, L steps of a path; V videos of N frames,
K ticks of their clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment.bounds import (
    FIXED,
    FREE,
    Band,
    Ends,
    FreeEnds,
    default_skip_cost,
    price_ends,
    slanted_band,
)
from cycleback.alignment.confidence import estimate_confidence, pool_adjacent_violators, sample_confidence
from cycleback.alignment.distances import (
    Floats,
    Indices,
    as_pair,
    as_videos,
    matched_squared,
    pairwise_squared,
    thin,
)
from cycleback.alignment.dtw import Warp, match_frames, warp_cost
from cycleback.alignment.ends import drop_standstills, find_common_part
from cycleback.alignment.offset import OffsetMethod
from cycleback.alignment.pins import (
    Link,
    Pairs,
    Rectangle,
    check_pins,
    find_nearest,
    fit_width,
    limit_matches,
    place_pins,
    warp_through,
)
from cycleback.alignment.subsequence import PACE, Pace, check_pace, find_part
from cycleback.alignment.warp import halve, warp_long, warp_to_many
from cycleback.display import draw_line

AlignmentMethod = Literal["auto", "nearest", "dtw", "subsequence", "open_end", "overlap", "open-end"]
METHODS: tuple[AlignmentMethod, ...] = get_args(AlignmentMethod)[:-1]  # the last is another spelling
MAX_CELLS = 25_000_000  # of one matrix: two videos of 5,000 frames, 200 MB of distances
MEDOID_FRAMES = 512  # compared per video to find the medoid
MIN_CONFIDENCE = 0.5  # below it a match is more likely wrong than right


@dataclass(frozen=True, eq=False)  # arrays have no single truth value to compare by
class Alignment:
    """One frame of b per frame of a, and the confidence of each match."""

    # (T,), frame of b that goes with each frame of a. Frames left out take the match of the first or last
    # frame that is matched, so that the whole video can still be played.
    indices: Indices
    confidence: Floats  # (T,) in [0, 1], see `cycleback.alignment.confidence`; 0 for frames left out
    distances: Floats  # (T,), squared L2 distance between each frame and its match
    method: AlignmentMethod | OffsetMethod  # how the matches were found
    # (T,), False for frames left out: with "auto" and free ends, those before and after the path
    matched: NDArray[np.bool_]
    # (T,), the same matches with fractions between frames: at most half a frame from `indices`, where a
    # parabola through the distances to the match and to its two neighbours in b is least
    positions: Floats
    path: Indices | None = None  # (L, 2), every pair of frames on the warping path; None for "nearest"

    @property
    def abstain(self) -> NDArray[np.bool_]:
        """(T,), True where a frame has no match, or one that is more likely wrong than right."""
        return ~self.matched | (self.confidence < MIN_CONFIDENCE)

    def _repr_html_(self) -> str:
        """Draw the match of each frame for a notebook."""
        kept = np.flatnonzero(self.matched)
        if not len(kept):
            return f"<p>none of {len(self.indices)} frames matched ({self.method})</p>"
        caption = f"{len(kept)} of {len(self.indices)} frames matched ({self.method}), median confidence "
        caption += f"{np.median(self.confidence[kept]):.2f}. To the right: frames of a. Down: frames of b."
        size = {"width": float(len(self.indices)), "height": float(self.indices.max() + 1)}
        return draw_line(kept.tolist(), self.positions[kept].tolist(), **size, caption=caption)


def align(
    a: ArrayLike,
    b: ArrayLike,
    *,
    method: AlignmentMethod = "auto",
    center: bool = False,
    band: float | None = None,
    skip_cost: float | None = None,
    time_prior: float = 0.0,
    pace: Pace | None = None,
    pins: Pairs = (),
) -> Alignment:
    """Match every frame of `a` (T, D) with a frame of `b` (S, D).

    Above 25 million pairs of frames (T x S), the matrix of all distances is never built. "nearest" then works
    in blocks, with the same result. Warping works coarse to fine (`cycleback.alignment.warp`), which is no
    longer exact. The confidence then compares with 2,048 evenly spread frames of each video.

    Args:
        a: Embeddings of the video whose frames are matched.
        b: Embeddings of the other video, by the same encoder.
        method: "nearest" takes the nearest frame anywhere in b. All other methods warp: they never run
            backwards.
            "auto" leaves out what only one video shows before and after the action
            (`cycleback.alignment.ends`), and warps the rest like "dtw".
            "dtw" matches both first and both last frames.
            "subsequence" finds all of a somewhere in b, at a `pace` within limits: b may begin earlier and
            end later.
            "open_end" (or "open-end") starts both together, and leaves out the end of either where they part.
            "overlap" leaves out the frames before and after the part that both show, by the skip cost.
        center: Subtract each video's mean embedding first. The part that all its frames share (scene, person,
            camera) says nothing about time, but it is large in embeddings not trained for alignment. Do not
            use it for videos that overlap in part: their means differ for another reason.
        band: For "auto" and "dtw": how far the path may stray from constant speed, to either side, as a share
            of S, with "auto" of the part in common.
        skip_cost: For free ends: squared distance above which a frame is left out rather than matched; by
            default derived from the distances, see `cycleback.alignment.bounds`. With "subsequence", a skip
            cost or pins replace the limits of the pace.
        time_prior: For "auto", "dtw" and "nearest": prefer matches at the same share of both videos. Frames
            at shares s and t of their videos, in [0, 1], lie further apart by time_prior x (mean distance) x
            (s - t)^2. With "auto", shares are of the part in common.
        pace: For "subsequence": least and greatest number of frames of b per frame of a; 0.4 and 2.5 by
            default. Multiply both by the frame rate of b over that of a, where they differ. If b is too short
            for that, all of it is matched.
        pins: Pairs (i, j) set by hand: frame i of a shows what frame j of b shows. The path runs through all
            pins, and every frame is matched between the pins beside it (`cycleback.alignment.pins`). Pinned
            frames are matched exactly, with confidence 1. "auto" leaves out frames only before the first pin
            and after the last. "nearest" searches only between the pins. A band and the time prior follow
            the straight lines from pin to pin.

    Raises:
        UserError: A pin lies outside a video, a frame has two pins, or pins cross.
    """
    method = "open_end" if method == "open-end" else method
    _check(method, band=band, skip_cost=skip_cost, time_prior=time_prior, pace=pace)
    rows, others = as_pair(a, b)
    if center:
        rows, others = rows - rows.mean(axis=0), others - others.mean(axis=0)
    shape = len(rows), len(others)
    pinned = check_pins(pins, *shape)
    distances = None if len(rows) * len(others) > MAX_CELLS else pairwise_squared(rows, others)  # (T, S)
    path: Indices | None = None
    if method != "nearest":
        path = _find_path(
            rows,
            others,
            distances,
            method=method,
            band=band,
            skip_cost=skip_cost,
            time_prior=time_prior,
            pace=pace or PACE,
            pins=pinned,
        )
        indices = _choose_matches(path, pinned, num_frames=len(rows))
    elif distances is None or time_prior or len(pinned):
        indices = find_nearest(*_add_clock(rows, others, time_prior, pinned), pinned)
    else:
        indices = distances.argmin(axis=1)
    within = limit_matches(pinned, shape) if len(pinned) else None
    if distances is None:
        confidence = sample_confidence(rows, others, indices, within=within)
    else:
        confidence = estimate_confidence(distances, indices, within=within)
    confidence[pinned[:, 0]] = 1.0
    matched = np.ones(len(rows), dtype=bool)
    if path is not None:
        matched[: path[0, 0]] = matched[path[-1, 0] + 1 :] = False
    return Alignment(
        indices=indices,
        confidence=np.where(matched, confidence, 0.0),
        distances=matched_squared(rows, others, indices),
        method=method,
        matched=matched,
        positions=_refine(rows, others, indices, matched=matched, is_ordered=path is not None, within=within),
        path=path,
    )


def _check(
    method: str, *, band: float | None, skip_cost: float | None, time_prior: float, pace: Pace | None
) -> None:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    if band is not None and method not in ("auto", "dtw"):
        raise ValueError(f"a band is for methods 'auto' and 'dtw' only, got band {band} with {method!r}")
    if skip_cost is not None and method not in FREE:
        raise ValueError(
            f"skip_cost is for {', '.join(map(repr, FREE))} only, got {skip_cost} with {method!r}"
        )
    if skip_cost is not None and not 0 <= skip_cost < np.inf:
        raise ValueError(f"skip_cost must be a finite number, 0 or more, got {skip_cost}")
    if not 0 <= time_prior < np.inf:
        raise ValueError(f"time_prior must be a finite number, 0 or more, got {time_prior}")
    if time_prior and method in FREE:
        raise ValueError(
            f"time_prior is for 'auto', 'dtw' and 'nearest' only, got {time_prior} with {method!r}"
        )
    if pace is not None and method != "subsequence":
        raise ValueError(f"pace is for 'subsequence' only, got {pace} with {method!r}")
    if pace is not None:
        check_pace(pace)


def _find_path(
    a: Floats,
    b: Floats,
    distances: Floats | None,
    *,
    method: AlignmentMethod,
    band: float | None,
    skip_cost: float | None,
    time_prior: float,
    pins: Indices,
    pace: Pace = PACE,
) -> Indices:
    """Return the warping path (L, 2) of `a` (T, D) and `b` (S, D); `distances` (T, S) unless too long."""
    is_limited = method == "subsequence" and skip_cost is None and not len(pins)
    if method == "auto" or is_limited:
        if is_limited:
            part = slice(0, len(a)), _find_part(a, b, distances, pace=pace)
        else:
            part = find_common_part(a, b, distances, pins=pins)
        rest = None if distances is None else np.ascontiguousarray(distances[part])
        first = np.array([frames.start for frames in part])
        a, b, distances, pins = a[part[0]], b[part[1]], rest, pins - first
        options: dict[str, Any] = {"band": band, "skip_cost": None, "time_prior": time_prior, "pace": pace}
        path = _find_path(a, b, distances, method="dtw", pins=pins, **options)
        path = path if is_limited else drop_standstills(path, pins=pins)
        path += first
        return path
    free = FREE.get(method, FIXED)
    if skip_cost is None:
        skip_cost = default_skip_cost(a, b) if any(free) else np.inf
    if time_prior:
        (a, b), distances = _add_clock(a, b, time_prior, pins), None

    def warp(rectangle: Rectangle, loose: FreeEnds) -> Warp:
        def ends_of(x: Floats, y: Floats) -> Ends:
            ends = price_ends(len(x), len(y), free=loose, skip_cost=skip_cost)
            return ends._replace(again=float(any(free)))

        rows, others, width = a[rectangle[0]], b[rectangle[1]], band
        if width is not None and len(pins):
            width = fit_width(width, num_columns=len(b), rectangle=rectangle)
        if len(rows) * len(others) > MAX_CELLS:
            return warp_long(rows, others, ends_of=ends_of, width=width)
        cost = pairwise_squared(rows, others) if distances is None else distances[rectangle]
        allowed = None if width is None else slanted_band(*cost.shape, width=width)
        return warp_cost(np.ascontiguousarray(cost), ends=ends_of(rows, others), band=allowed)

    return warp_through(pins, (len(a), len(b)), free=free, warp=warp)[0]


def _find_part(a: Floats, b: Floats, distances: Floats | None, *, pace: Pace) -> slice:
    """Return the frames of `b` (S, D) that show all of `a` (T, D); all of them if b is too short.

    Long videos are halved first, until the distances of all frames are a matrix of MAX_CELLS.
    """
    length, scale = len(b), 1
    while len(a) * len(b) > MAX_CELLS:
        a, b, scale = halve(a), halve(b), 2 * scale
    if distances is None:
        distances = pairwise_squared(a, b)
    part = find_part(distances, pace=pace)
    return slice(0, length) if part is None else slice(scale * part.start, min(scale * part.stop, length))


def _choose_matches(path: Indices, pins: Indices, *, num_frames: int) -> Indices:
    """Return one frame of b per frame of a (T,): its pin, or the middle of its frames on `path` (L, 2)."""
    indices = match_frames(path, num_frames=num_frames)
    indices[pins[:, 0]] = pins[:, 1]
    inside = np.clip(np.arange(num_frames), path[0, 0], path[-1, 0])
    return indices[inside]


def _add_clock(a: Floats, b: Floats, time_prior: float, pins: Indices) -> tuple[Floats, Floats]:
    """Append the share of the video at each frame to `a` (T, D) and `b` (S, D), weighted by the prior.

    One more coordinate adds its squared difference to every squared distance. The clock of b runs evenly from
    pin to pin (K, 2), so that pinned frames are at the same share.
    """
    if not time_prior:
        return a, b
    mean_distance = (
        a.var(axis=0).sum() + b.var(axis=0).sum() + np.square(a.mean(axis=0) - b.mean(axis=0)).sum()
    )
    weight = np.sqrt(time_prior * mean_distance)
    clock_a, clock_b = np.linspace(0, 1, len(a)), np.linspace(0, 1, len(b))
    if len(pins):
        knots = np.unique([(0, 0), *pins, (len(a) - 1, len(b) - 1)], axis=0)
        clock_b = np.interp(np.arange(len(b)), knots[:, 1], clock_a[knots[:, 0]])
    timed_a, timed_b = (np.column_stack([x, weight * clock]) for x, clock in ((a, clock_a), (b, clock_b)))
    return timed_a, timed_b


def _refine(
    a: Floats,
    b: Floats,
    indices: Indices,
    *,
    matched: NDArray[np.bool_],
    is_ordered: bool,
    within: Band | None,
) -> Floats:
    """Return the matches `indices` (T,) with fractions (T,).

    They never run backwards if `is_ordered`, and never leave the frames of b that they may lie `within`.
    """
    inner = matched & (indices > 0) & (indices < len(b) - 1)
    before, here, after = (matched_squared(a[inner], b, indices[inner] + step) for step in (-1, 0, 1))
    bend = before - 2 * here + after
    is_between = np.minimum(here, bend) > 1e-12 * (
        before + here + after
    )  # less is an exact match, or rounding
    shift = np.divide((before - after) / 2, bend, out=np.zeros_like(bend), where=is_between)
    positions = indices.astype(np.float64)
    positions[inner] += np.clip(shift, -0.5, 0.5)
    if is_ordered:
        frames = np.flatnonzero(matched)
        ordered = pool_adjacent_violators(positions[frames])
        positions = ordered[np.clip(np.arange(len(a)), frames[0], frames[-1]) - frames[0]]
    if within is not None:
        positions = np.clip(positions, within.start, within.stop - 1)
    return positions


@dataclass(frozen=True, eq=False)  # arrays have no single truth value to compare by
class MultiAlignment:
    """V videos on one clock of K ticks."""

    template: Floats  # (K, D), the mean trajectory
    indices: Indices  # (V, K), frame of each video at each tick; never runs backwards
    ticks: tuple[Indices, ...]  # (N,) per video, the tick of each of its frames; never runs backwards
    medoid: int  # the video that the template began as
    # total DTW cost of all videos to the template, before each round and after the last
    costs: tuple[float, ...]

    def between(self, u: int, v: int) -> Indices:
        """Return the frame of video v for each frame of video u (N,), by the clock."""
        frames: Indices = self.indices[v, self.ticks[u]]
        return frames


def align_many(
    embeddings: Sequence[ArrayLike],
    *,
    iterations: int = 3,
    center: bool = False,
    pins: Sequence[Link] = (),
    names: Sequence[str] | None = None,
) -> MultiAlignment:
    """Put all videos on one clock.

    Args:
        embeddings: (N, D) per video, at least two videos; N may differ.
        iterations: Rounds of averaging; 0 keeps the medoid itself as the template.
        center: Subtract each video's mean embedding first, see `align`.
        pins: (u, i, v, j) each, set by hand: frame i of video u shows what frame j of video v shows. Both
            get the same tick. A pin between two videos that are not the medoid takes the tick of its surer
            match (`cycleback.alignment.pins`).
        names: What messages about pins call the videos.
    """
    if iterations < 0:
        raise ValueError(f"iterations must not be negative, got {iterations}")
    videos = as_videos(embeddings, min_videos=2)
    if center:
        videos = [video - video.mean(axis=0) for video in videos]
    medoid = _medoid([thin(video, MEDOID_FRAMES) for video in videos])

    def match(video: int, own: Indices) -> tuple[Indices, Floats]:
        found = align(videos[video], videos[medoid], method="dtw", pins=own[:, ::-1])
        return found.indices, found.confidence

    lengths = [len(video) for video in videos]
    pinned = place_pins(pins, lengths, reference=medoid, match=match, names=names)
    template, costs = videos[medoid], []
    for _ in range(iterations):
        warps = _warp_all(template, videos, pinned)
        costs.append(sum(cost for _, cost in warps))
        template = _barycentre(warps, videos)
    warps = _warp_all(template, videos, pinned)
    costs.append(sum(cost for _, cost in warps))
    chosen = [
        (
            _choose_matches(path, own, num_frames=len(template)),
            _choose_matches(path[:, ::-1], own[:, ::-1], num_frames=n),
        )
        for (path, _), own, n in zip(warps, pinned, lengths, strict=True)
    ]
    return MultiAlignment(
        template=template,
        indices=np.stack([frames for frames, _ in chosen]),
        ticks=tuple(ticks for _, ticks in chosen),
        medoid=medoid,
        costs=tuple(costs),
    )


def _medoid(videos: Sequence[Floats]) -> int:
    """Return the video with the least total cost to all others, the first of equals."""
    costs = np.zeros((len(videos), len(videos)))
    for u in range(1, len(videos)):
        warps = warp_to_many(videos[u], videos[:u])
        lengths = [len(videos[u]) + len(other) for other in videos[:u]]
        costs[u, :u] = [cost / length for (_, cost), length in zip(warps, lengths, strict=True)]
    return int((costs + costs.T).sum(axis=1).argmin())


def _warp_all(template: Floats, videos: Sequence[Floats], pins: Sequence[Indices]) -> list[Warp]:
    """Return path and cost of the template with each video; long videos go coarse to fine, as in `align`.

    The paths run through the `pins` (K, 2) of each video: tick and frame.
    """
    if len(template) * max(map(len, videos)) <= MAX_CELLS and not any(map(len, pins)):
        return warp_to_many(template, videos)
    return [_warp_pinned(template, video, own) for video, own in zip(videos, pins, strict=True)]


def _warp_pinned(template: Floats, video: Floats, pins: Indices) -> Warp:
    """Return path and cost of the template (K, D) with a video (N, D) that runs through all pins."""
    path = _find_path(
        template, video, None, method="dtw", band=None, skip_cost=None, time_prior=0.0, pins=pins
    )
    return path, float(matched_squared(template[path[:, 0]], video, path[:, 1]).sum())


def _barycentre(warps: Sequence[Warp], videos: Sequence[Floats]) -> Floats:
    """Return the mean (K, D) of all frames warped to each tick."""
    num_ticks = int(warps[0][0][-1, 0]) + 1
    total, count = np.zeros((num_ticks, videos[0].shape[1])), np.zeros(num_ticks)
    for (path, _), video in zip(warps, videos, strict=True):
        starts = np.searchsorted(path[:, 0], np.arange(num_ticks))
        total += np.add.reduceat(video[path[:, 1]], starts, axis=0)
        count += np.bincount(path[:, 0], minlength=num_ticks)
    return total / count[:, None]
