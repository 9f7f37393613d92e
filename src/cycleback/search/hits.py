"""Find a moment in many videos: the nearest frames, nearest first (the paper's fine-grained retrieval).

The exact search selects the nearest videos with a blocked matrix product, then measures distances in float64:
||x - q||^2 = ||x||^2 - 2 x.q + ||q||^2 needs one pass over the rows, but it cancels in float32. The margin of
the selection is as wide as the rounding error, so no hit is missed.

Shapes: V videos to search, n frames or rows, D embedding size.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cycleback.embeddings import check_same_encoder
from cycleback.errors import EmbeddingError
from cycleback.search.corpus import BLOCK_ROWS, Corpus, Floats, Rows, Tags
from cycleback.search.query import Query

NARROW_ROWS = 20_000  # up to here the exact search takes about a millisecond and is used with any backend
FIRST_ROWS = 256
MAX_ROWS = 65_536  # that a backend is asked for; if they are of too few videos, the exact search finds more

Distances = NDArray[np.float64]


class Backend(Protocol):
    """An approximate search for near rows; its candidates are ranked exactly afterwards."""

    def nearest_rows(self, query: Floats, count: int, where: "Filter") -> Rows:
        """Return about the `count` rows nearest to `query` (D,); fewer if it cannot find more.

        It may leave out rows that do not pass the filter, so that more of the others are among them.
        """


@dataclass(frozen=True)
class Hit:
    """A frame that was found."""

    video: str  # name of its video
    frame: int  # number of the frame in the video
    seconds: float  # time of the frame in the video
    distance: float  # euclidean distance of the two embeddings; 0 if they are equal
    # 1 - distance² / median distance² of the query to all videos, at least 0: 1 for an equal frame, 0 for
    # one no nearer than most frames. It ranks hits and is not a probability.
    similarity: float
    path: Path | None = None  # the video file, if known


@dataclass(frozen=True)
class Filter:
    """Restricts a search; a frame must pass all conditions."""

    action: str | None = None  # only videos of this action; None for all
    names: str = "*"  # a pattern for the video's name, such as `monday/*`
    between: tuple[float, float] = (0.0, 1.0)  # the part of each video by time, from 0.0 (start) to 1.0 (end)
    seconds: tuple[float, float] | None = None  # only frames at these times of their video; None for all
    tags: Mapping[str, str] = field(default_factory=dict)  # only videos with all of these tags
    leave_out: Collection[str] = field(default_factory=frozenset)  # names of videos that are not searched

    def __post_init__(self) -> None:
        low, high = self.between
        if not 0 <= low < high <= 1:
            raise ValueError(
                f"between must be two fractions of the video, 0 <= from < to <= 1, got {low} {high}"
            )
        if self.seconds is not None and not -np.inf < self.seconds[0] < self.seconds[1] < np.inf:
            raise ValueError(f"seconds must be two times, from < to, got {self.seconds[0]} {self.seconds[1]}")


@dataclass(frozen=True)
class Spans:
    """Ranges of rows to search, one per video, in order of rows."""

    videos: Rows  # (V,) numbers
    starts: Rows  # (V,)
    stops: Rows  # (V,), each beyond its start

    def __len__(self) -> int:
        return len(self.videos)

    @property
    def num_rows(self) -> int:
        """Number of frames to search."""
        return int((self.stops - self.starts).sum())

    def find(self, rows: Rows) -> Rows:
        """Return the position of the span of each row; rows outside all spans are left out."""
        places = np.searchsorted(self.starts, rows, side="right") - 1
        inside = (places >= 0) & (rows < self.stops[places])
        return places[inside]


def find(
    corpus: Corpus,
    query: Query,
    *,
    k: int = 8,
    per_video: int = 1,
    apart: float = 1.0,
    where: Filter | None = None,
    own_video: bool = False,
    backend: Backend | None = None,
) -> list[Hit]:
    """Find the `k` frames nearest to the query, nearest first; fewer if there are no more.

    Args:
        corpus: the videos to search.
        query: made by the same encoder.
        k: maximum number of hits.
        per_video: maximum number of hits in one video.
        apart: minimum seconds between two hits in one video, so that neighbours do not fill the list.
        where: which videos, and which part of each; by default all.
        own_video: search the query's own video too.
        backend: an approximate search, or None for the exact one.
    """
    _check(corpus, query, k=k, per_video=per_video, apart=apart)
    where = where or Filter()
    if query.video is not None and not own_video:
        where = replace(where, leave_out={*where.leave_out, query.video})
    spans = select_spans(corpus, where)
    found: list[tuple[float, int, int]] = []  # squared distance, video number, frame
    for place in _candidates(corpus, query.vector, spans, k=k, where=where, backend=backend):
        number = int(spans.videos[place])
        first = int(spans.starts[place] - corpus.starts[number])
        part = slice(first, int(spans.stops[place] - corpus.starts[number]))
        distances = _squared_distances(corpus.embeddings(number)[part], query.vector)
        for frame in _pick_minima(distances, corpus.times(number)[part], count=per_video, apart=apart):
            found.append((float(distances[frame]), number, first + frame))
    median = float(np.median(_squared_distances(corpus.sample, query.vector)))
    return [_make_hit(corpus, *entry, median=median) for entry in sorted(found)[:k]]


def _check(corpus: Corpus, query: Query, *, k: int, per_video: int, apart: float) -> None:
    if min(k, per_video) < 1 or not 0 <= apart < float("inf"):
        raise ValueError(
            f"expected k >= 1, per_video >= 1 and apart >= 0 seconds, got {k}, {per_video} and {apart}"
        )
    check_same_encoder({"the query": query.encoder, "the videos": corpus.encoder})
    if query.vector.shape != (corpus.size,):
        raise EmbeddingError(
            f"the query has shape {query.vector.shape}, the frames have ({corpus.size},). "
            "Embed it with the same run."
        )


def _pick_minima(
    distances: Distances, times: NDArray[np.float64], *, count: int, apart: float
) -> Iterator[int]:
    """Yield up to `count` positions of the smallest `distances` (n,), at least `apart` seconds apart."""
    left = distances.copy()
    for _ in range(count):
        place = int(left.argmin())
        if not np.isfinite(left[place]):
            return
        yield place
        left[np.abs(times - times[place]) < apart] = np.inf
        left[place] = np.inf


def _make_hit(corpus: Corpus, squared: float, number: int, frame: int, *, median: float) -> Hit:
    video = corpus.videos[number]
    return Hit(
        video=video.name,
        frame=frame,
        seconds=float(corpus.times(number)[frame]),
        distance=squared**0.5,
        similarity=max(0.0, 1 - squared / median) if median > 0 else float(squared == 0),
        path=None if video.path is None else Path(video.path),
    )


def _candidates(
    corpus: Corpus, vector: Floats, spans: Spans, *, k: int, where: Filter, backend: Backend | None
) -> Rows:
    """Select spans to rank. A hit in the top k can only be in a video whose best frame is in the top k."""
    if backend is not None and spans.num_rows > NARROW_ROWS:
        total, count = int(corpus.offsets[-1]), max(FIRST_ROWS, 16 * k)
        while count <= MAX_ROWS:
            rows = backend.nearest_rows(vector, min(count, total), where)
            places = np.unique(spans.find(rows))
            if len(places) >= min(k, len(spans)):
                return places
            if len(rows) < count:  # it cannot find more; the exact search can
                break
            count *= 4
    return _nearest_spans(corpus, vector, spans, k=k)


def select_spans(corpus: Corpus, where: Filter) -> Spans:
    """Select the rows that pass a filter; an error if there are none."""
    numbers = np.arange(len(corpus.videos))
    if where.action is not None or where.names != "*" or where.tags:
        wanted = where.tags.items()
        fits = [
            where.action in (None, video.action)
            and wanted <= corpus.tags.get(video.name, {}).items()
            and (where.names == "*" or fnmatchcase(video.name, where.names))
            for video in corpus.videos
        ]
        numbers = numbers[fits]
    left_out = [corpus.names[name] for name in where.leave_out if name in corpus.names]
    numbers = np.setdiff1d(numbers, left_out, assume_unique=True)
    spans = Spans(numbers, corpus.starts[numbers], corpus.stops[numbers])
    if where.between != (0.0, 1.0) or where.seconds is not None:
        spans = _cut_spans(corpus, spans, where)
    if not len(spans):
        actions = sorted({video.action for video in corpus.videos})
        problem = f"none of {len(corpus.videos)} videos is left to search"
        if where.action is not None and where.action not in actions:
            problem = f"no video of action {where.action!r} (actions: {', '.join(map(repr, actions))})"
        elif unknown := _unknown_tag(corpus, where.tags):
            problem = unknown
        raise EmbeddingError(f"{problem}. Loosen the filters, or add videos.")
    return spans


def _unknown_tag(corpus: Corpus, wanted: Tags) -> str:
    """Return what is wrong with the first tag that no video has; "" if each is a tag of some video."""
    for key, value in wanted.items():
        values = {tags[key] for tags in corpus.tags.values() if key in tags}
        if value not in values:
            known = f"tags {key}: {', '.join(sorted(values)[:8])}" if values else "no video has it"
            return f"no video with the tag {key}={value} ({known})"
    return ""


def _cut_spans(corpus: Corpus, spans: Spans, where: Filter) -> Spans:
    """Cut each span to the part at the times of a filter; videos with no frame there are left out."""
    begins, ends = corpus.times_at(spans.starts), corpus.times_at(spans.stops - 1)
    low, high = (begins + share * (ends - begins) for share in where.between)
    if where.seconds is not None:
        low, high = np.maximum(low, where.seconds[0]), np.minimum(high, where.seconds[1])
    starts, stops = _first_rows(corpus, spans, low), _first_rows(corpus, spans, high, beyond=True)
    kept = np.flatnonzero(starts < stops)
    return Spans(spans.videos[kept], starts[kept], stops[kept])


def _first_rows(corpus: Corpus, spans: Spans, limits: Distances, *, beyond: bool = False) -> Rows:
    """Return the first row (V,) of each span whose time is at its limit (V,) or later; `beyond`: later.

    Bisects all spans at once: a loop over videos would take seconds for tens of thousands of them.
    """
    low, high = spans.starts.copy(), spans.stops.copy()
    while (left := np.flatnonzero(low < high)).size:
        middle = (low[left] + high[left]) // 2
        times = corpus.times_at(middle)
        is_before = times <= limits[left] if beyond else times < limits[left]
        low[left[is_before]] = middle[is_before] + 1
        high[left[~is_before]] = middle[~is_before]
    return low


def _nearest_spans(corpus: Corpus, query: Floats, spans: Spans, *, k: int) -> Rows:
    """Return the positions of the spans whose best frame may be among the `k` nearest: `k` or a few more."""
    best = np.empty(len(spans), dtype=np.float64)
    for part in _groups(corpus, spans):
        best[part] = _span_minima(corpus, query, spans, part)
    if k >= len(best):
        return np.arange(len(best))
    length = float(query.astype(np.float64) @ query)
    kth = float(np.partition(best, k - 1)[k - 1])
    reach = (2 * length**0.5 + max(kth, 0.0) ** 0.5) ** 2  # bounds the terms of all frames that near
    rounding = len(query) * float(np.finfo(np.float32).eps) * reach
    return np.flatnonzero(best <= kth + 2 * rounding)


def _squared_distances(rows: NDArray[np.floating], query: Floats) -> Distances:
    """Return the squared distances (n,) of `rows` (n, D) to `query` (D,) in float64; 0 for an equal row."""
    distances = np.empty(len(rows), dtype=np.float64)
    step = max(1, BLOCK_ROWS * 32 // len(query))
    for start in range(0, len(rows), step):
        apart = rows[start : start + step].astype(np.float64) - query
        np.einsum("nd,nd->n", apart, apart, out=distances[start : start + step])
    return distances


def _groups(corpus: Corpus, spans: Spans) -> Iterator[slice]:
    """Group neighbouring spans of one shard that fit into a block of rows; a longer video stands alone."""
    limits = np.searchsorted(spans.starts, corpus.offsets)  # first span of each shard
    for first, last in pairwise(limits):
        place = int(first)
        while place < last:
            reach = spans.starts[place] + BLOCK_ROWS
            beyond = int(np.searchsorted(spans.stops[place:last], reach, side="right")) + place
            stop = max(beyond, place + 1)
            yield slice(place, stop)
            place = stop


def _span_minima(corpus: Corpus, query: Floats, spans: Spans, part: slice) -> Distances:
    """Return the smallest squared distance in each span of a group, with the rounding error of float32."""
    first, last = int(spans.starts[part.start]), int(spans.stops[part.stop - 1])
    shard, offset = corpus.shard_of(first)
    minima = np.full(part.stop - part.start, np.inf)
    for start in range(first, last, BLOCK_ROWS):  # one step, except for a video longer than a block
        stop = min(start + BLOCK_ROWS, last)
        here = slice(start - offset, stop - offset)
        distances = np.empty(stop - start + 1, dtype=np.float32)
        np.matmul(shard.embeddings[here], -2 * query, out=distances[:-1])
        distances[:-1] += shard.norms[here]
        distances[-1] = np.inf  # so that a span may end with the block
        edges = np.stack([spans.starts[part], spans.stops[part]], axis=1).ravel() - start
        edges = np.clip(edges, 0, stop - start)
        minima = np.minimum(minima, np.minimum.reduceat(distances, edges)[::2])
    return minima + float(query.astype(np.float64) @ query)
