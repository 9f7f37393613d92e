"""Find a moment in many videos: the nearest frame of each, nearest first (paper, fine-grained retrieval).

Shapes: n frames of a video that are searched, D embedding size.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cycleback.embeddings import check_same_encoder
from cycleback.errors import EmbeddingError
from cycleback.search.corpus import Corpus, Floats, Rows
from cycleback.search.exact import nearest_spans, squared_distances_to
from cycleback.search.filters import Filter, Spans, spans_of
from cycleback.search.query import Query

NARROW_ROWS = 20_000  # so few frames are searched exactly in a millisecond, whatever the backend
FIRST_ROWS = 256


class Backend(Protocol):
    """Another way to find near frames; what it finds is ranked exactly afterwards."""

    def nearest_rows(self, query: Floats, count: int) -> Rows:
        """About the `count` rows nearest to `query` (D,); fewer where it cannot find more."""


@dataclass(frozen=True)
class Hit:
    """One frame that was found.

    Attributes:
        video: its name.
        frame: number of the frame in the video.
        seconds: time of the frame in the video.
        distance: length of the difference of the two embeddings; 0 for equal ones.
        similarity: 1 - distance² / typical distance² of the query, in [0, 1]: 1 for an equal frame, 0 for one
            no nearer than most frames. It ranks hits and is no probability.
        path: the video file, where known.
    """

    video: str
    frame: int
    seconds: float
    distance: float
    similarity: float
    path: Path | None = None


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
    """The `k` frames nearest to the query, nearest first; fewer where there are no more.

    Args:
        corpus: what is searched.
        query: made by the same encoder.
        k: most hits.
        per_video: most hits in one video.
        apart: least seconds between two hits in one video, so that neighbours do not fill the list.
        where: which videos, and which part of each; by default all.
        own_video: search the query's own video too.
        backend: an approximate search, or None for the exact one.
    """
    _check(corpus, query, k=k, per_video=per_video, apart=apart)
    where = where or Filter()
    if query.video is not None and not own_video:
        where = replace(where, leave_out={*where.leave_out, query.video})
    spans = spans_of(corpus, where)
    places = _candidates(corpus, query.vector, spans, k=k, backend=backend)
    typical = typical_distance(corpus, query.vector)
    found: list[tuple[float, int, int]] = []  # squared distance, video number, frame
    for place in places:
        number = int(spans.videos[place])
        first = int(spans.starts[place] - corpus.starts[number])
        part = slice(first, int(spans.stops[place] - corpus.starts[number]))
        distances = squared_distances_to(corpus.embeddings(number)[part], query.vector)
        for frame in separate_minima(distances, corpus.times(number)[part], most=per_video, apart=apart):
            found.append((float(distances[frame]), number, first + frame))
    return [_hit(corpus, *entry, typical=typical) for entry in sorted(found)[:k]]


def separate_minima(
    distances: NDArray[np.float64], times: NDArray[np.float64], *, most: int, apart: float
) -> Iterator[int]:
    """Up to `most` places of the least `distances` (n,), the least first, `apart` seconds from each other."""
    left = distances.copy()
    for _ in range(most):
        place = int(left.argmin())
        if not np.isfinite(left[place]):
            return
        yield place
        left[np.abs(times - times[place]) < apart] = np.inf
        left[place] = np.inf


def typical_distance(corpus: Corpus, vector: Floats) -> float:
    """Median squared distance of `vector` (D,) to frames spread evenly over all videos."""
    apart = corpus.sample - vector
    return float(np.median(np.einsum("nd,nd->n", apart, apart)))


def _check(corpus: Corpus, query: Query, *, k: int, per_video: int, apart: float) -> None:
    if min(k, per_video) < 1 or not 0 <= apart < float("inf"):
        raise ValueError(
            f"expected k >= 1, per_video >= 1 and apart >= 0 seconds, got {k}, {per_video} and {apart}"
        )
    check_same_encoder({"the query": query.encoder, "the videos": corpus.encoder})
    if query.vector.shape != (corpus.size,):
        raise EmbeddingError(
            f"the query has {query.vector.shape} numbers, the frames have ({corpus.size},). "
            "Embed it with the same run."
        )


def _candidates(corpus: Corpus, vector: Floats, spans: Spans, *, k: int, backend: Backend | None) -> Rows:
    """Spans to rank. A hit in the top k can only lie in a video whose best frame is in the top k."""
    if backend is not None and spans.num_rows > NARROW_ROWS:
        total, count = int(corpus.offsets[-1]), max(FIRST_ROWS, 16 * k)
        while True:
            rows = backend.nearest_rows(vector, min(count, total))
            places = np.unique(spans.place_of(rows))
            if len(places) >= min(k, len(spans)):
                return places
            if len(rows) < count:  # it cannot find more: the exact way can
                break
            count *= 4
    return nearest_spans(corpus, vector, spans, k=k)


def _hit(corpus: Corpus, squared: float, number: int, frame: int, *, typical: float) -> Hit:
    video = corpus.videos[number]
    return Hit(
        video=video.name,
        frame=frame,
        seconds=float(corpus.times(number)[frame]),
        distance=squared**0.5,
        similarity=max(0.0, 1 - squared / typical) if typical > 0 else float(squared == 0),
        path=None if video.path is None else Path(video.path),
    )
