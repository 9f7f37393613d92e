"""How long one search over a million frames takes, and how much faster that is than sorting all distances.

10,000 videos of 100 frames, D = 32: each video follows one common path at its own pace, moved a little, as
embeddings of one action do. They lie in a search index on disk and are memory-mapped; after the first query,
which reads them, each query is for a frame of another video and asks for 8 hits.

The plain way, taking turns with ours: `np.argsort(((frames - query) ** 2).sum(1))`, then the first frame of
each of 8 other videos. Both must find the same frames.

Example:
    python benchmarks/search_scores.py
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.embeddings import EmbeddingSet
from cycleback.search import BACKENDS, Corpus, SearchIndex, add_videos, find, make_frame_query, open_backend

VIDEOS, FRAMES, SIZE, HITS = 10_000, 100, 32, 8
QUERIES = 15
Found = list[tuple[str, int]]


def videos(seed: int = 0) -> EmbeddingSet:
    """Embeddings (FRAMES, SIZE) of each video: a common path, at its own pace, moved and with noise."""
    generator = np.random.default_rng(seed)
    waves = generator.normal(size=(2, 6, SIZE)) / np.arange(1, 7)[None, :, None]
    arrays = {}
    for number in range(VIDEOS):
        pace = np.sort(generator.uniform(0, 1, FRAMES))[:, None] * np.arange(1, 7) * np.pi
        path = np.sin(pace) @ waves[0] + np.cos(pace) @ waves[1]
        moved = path + generator.normal(0, 0.2, SIZE) + generator.normal(0, 0.05, (FRAMES, SIZE))
        arrays[f"video_{number:05d}"] = moved.astype(np.float32)
    return EmbeddingSet.from_arrays(arrays, fps=30, encoder="benchmark")


def full_sort(frames: NDArray[np.float32], names: list[str], row: int) -> Found:
    """The nearest frame of each of the 8 nearest other videos, by sorting every distance."""
    order = np.argsort(((frames - frames[row]) ** 2).sum(axis=1))
    found: dict[str, int] = {}
    for place in order:
        video = names[place // FRAMES]
        if place // FRAMES != row // FRAMES and video not in found:
            found[video] = int(place % FRAMES)
        if len(found) == HITS:
            break
    return list(found.items())


def time_search(corpus: Corpus, row: int, backend: Any = None) -> tuple[float, Found]:
    """Return the seconds of one search, and the frames it found."""
    query = make_frame_query(corpus, corpus.videos[row // FRAMES].name, frame=row % FRAMES)
    start = time.perf_counter()
    hits = find(corpus, query, k=HITS, backend=backend)
    return time.perf_counter() - start, [(hit.video, hit.frame) for hit in hits]


def score() -> dict[str, float]:
    """Milliseconds a query over 1,000,000 frames, and how many times faster than a full sort."""
    ours, plain, same = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        add_videos(index, videos())
        corpus = SearchIndex.load(index).corpus
        names = list(corpus.names)
        frames = np.array(corpus.shards[0].embeddings)
        rows = np.random.default_rng(1).integers(0, VIDEOS * FRAMES, QUERIES)
        time_search(corpus, int(rows[0]))  # reads the frames
        for row in map(int, rows):
            seconds, found = time_search(corpus, row)
            start = time.perf_counter()
            expected = full_sort(frames, names, row)
            plain.append(time.perf_counter() - start)
            ours.append(seconds)
            same += found == expected
    if same < QUERIES:
        raise RuntimeError(f"only {same} of {QUERIES} searches agree with the full sort")
    milliseconds = float(np.median(ours)) * 1e3
    ratio = float(np.median(plain) / np.median(ours))
    return {
        "search_ms_per_query_1m": round(milliseconds, 2),
        "search_speedup_vs_full_sort_1m": round(ratio, 1),
    }


def compare_backends() -> dict[str, dict[str, float]]:
    """Seconds to build, milliseconds per query and recall of each approximate backend."""
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        add_videos(Path(folder) / "index", videos())
        index = SearchIndex.load(Path(folder) / "index")
        rows = [int(row) for row in np.random.default_rng(1).integers(0, VIDEOS * FRAMES, QUERIES)]
        exact = [time_search(index.corpus, row)[1] for row in rows]
        for name in BACKENDS[1:]:
            start = time.perf_counter()
            backend = open_backend(name, index)
            built = time.perf_counter() - start
            found = [time_search(index.corpus, row, backend) for row in rows]
            shared = [len({*hits} & {*best}) / HITS for (_, hits), best in zip(found, exact, strict=True)]
            results[name] = {
                "build_s": round(built, 1),
                "ms_per_query": round(float(np.median([seconds for seconds, _ in found])) * 1e3, 2),
                "recall": round(float(np.mean(shared)), 3),
            }
    return results


if __name__ == "__main__":
    print(json.dumps({**score(), "backends": compare_backends()}, indent=1))
