"""Exact search: a blocked matrix product finds the nearest videos, float64 says how near they are.

||x - q||^2 = ||x||^2 - 2 x.q + ||q||^2 costs one pass over the rows but cancels in float32. So the product
only chooses videos, with a margin as wide as its rounding can be; their distances are then taken afresh.

Shapes: V spans (one a video), n rows, D embedding size.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cycleback.search.corpus import BLOCK_ROWS, Corpus, Floats, Rows
from cycleback.search.filters import Spans

Distances = NDArray[np.float64]


def nearest_spans(corpus: Corpus, query: Floats, spans: Spans, *, k: int) -> Rows:
    """Places of the spans whose best frame may be among the `k` nearest: `k` of them, or a few more."""
    best = np.empty(len(spans), dtype=np.float64)
    for part in _groups(corpus, spans):
        best[part] = _span_minima(corpus, query, spans, part)
    if k >= len(best):
        return np.arange(len(best))
    length = float(query.astype(np.float64) @ query)
    kth = float(np.partition(best, k - 1)[k - 1])
    reach = (2 * length**0.5 + max(kth, 0.0) ** 0.5) ** 2  # no frame that near has larger terms
    rounding = len(query) * float(np.finfo(np.float32).eps) * reach
    return np.flatnonzero(best <= kth + 2 * rounding)


def squared_distances_to(rows: Floats, query: Floats) -> Distances:
    """Squared distances (n,), float64, of `rows` (n, D) to `query` (D,); 0 for an equal row."""
    distances = np.empty(len(rows), dtype=np.float64)
    step = max(1, BLOCK_ROWS * 32 // len(query))
    for start in range(0, len(rows), step):
        apart = rows[start : start + step].astype(np.float64) - query
        np.einsum("nd,nd->n", apart, apart, out=distances[start : start + step])
    return distances


def _groups(corpus: Corpus, spans: Spans) -> Iterator[slice]:
    """Neighbouring spans that lie in one shard and together in a block of rows; a long video stands alone."""
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
    """Least squared distance of each span of a group, with the rounding of float32."""
    first, last = int(spans.starts[part.start]), int(spans.stops[part.stop - 1])
    shard, offset = corpus.shard_of(first)
    minima = np.full(part.stop - part.start, np.inf)
    for start in range(first, last, BLOCK_ROWS):  # one step, but for a video longer than a block
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
