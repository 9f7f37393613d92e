"""The matrix of the studio: tiles of two hours of video, and the time from a pin to all videos aligned anew.

first_picture_ratio  similarity of two videos of 6,000 frames, D = 64: the whole matrix, cut into its coarsest
                     tile, over that tile alone. Wall time, one thread. first_picture_memory_ratio: memory.
hour_tile_ms         a tile of two videos of 108,000 frames (an hour at 30 fps), at all levels. hour_tile_mib:
                     most memory it takes. hour_matrix_gib: what the whole matrix would take.
pin_ratio            sixteen videos of 135 frames, D = 1306, at the pace of one: all aligned anew by a studio
                     just opened, over all aligned after a pin, when only the pinned pair changes.
                     pin_ms: the latter, with the pin on disk.

    python benchmarks/studio_matrix.py          # writes results/studio_matrix.json
"""

import os
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy's linear algebra when it is imported

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import squared_distances
from cycleback.data.pins import Pin
from cycleback.embeddings import EmbeddingSet
from cycleback.provenance import package_versions
from cycleback.web.app import Studio
from cycleback.web.matches import Matches
from cycleback.web.project import Project, video_id
from cycleback.web.tiles import TILE, Similarity, encode_png
from result_file import write_results

RESULT = Path(__file__).resolve().parents[1] / "results" / "studio_matrix.json"
Embeddings = NDArray[np.float32]


def walks(videos: int, frames: int, size: int) -> list[Embeddings]:
    """Videos (frames, size) along one random walk, each at its own pace and with noise."""
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(frames, size)), axis=0)
    paces = [np.sort(rng.integers(0, frames, frames)) for _ in range(videos)]
    return [(walk[pace] + rng.normal(size=walk.shape)).astype(np.float32) for pace in paces]


def seconds(run: Callable[[], Any], *, repeat: int) -> float:
    """Median wall time of several runs, after one that does not count."""
    run()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def peak_mib(run: Callable[[], Any]) -> float:
    """Most memory that a run takes, as numpy and Python count it."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def first_picture(frames: int = 6000) -> dict[str, Any]:
    """The whole matrix against one tile."""
    a, b = walks(2, frames, 64)
    similarity = Similarity.measure(a, b)
    step = 1 << (similarity.levels - 1)

    def cut_whole() -> bytes:
        whole = np.exp(-squared_distances(b, a) / similarity.scale)
        return encode_png(
            np.rint(255 * whole[step // 2 :: step, step // 2 :: step][:TILE, :TILE]).astype(np.uint8)
        )

    def draw_tile() -> bytes:
        return encode_png(Similarity.measure(a, b).tile(similarity.levels - 1, 0, 0))

    return {
        "first_picture_ratio": round(seconds(cut_whole, repeat=3) / seconds(draw_tile, repeat=9), 1),
        "first_picture_memory_ratio": round(peak_mib(cut_whole) / peak_mib(draw_tile), 1),
    }


def hour(frames: int = 108_000) -> dict[str, Any]:
    """Tiles of all levels."""
    similarity = Similarity.measure(*walks(2, frames, 64))
    rng = np.random.default_rng(1)
    places = []
    for level in range(similarity.levels):
        last = -(-frames // (TILE << level)) - 1
        places += [(level, *rng.integers(0, last + 1, 2).tolist()) for _ in range(5)]
    times = [seconds(lambda place=place: encode_png(similarity.tile(*place)), repeat=1) for place in places]
    peak = max(peak_mib(lambda place=place: encode_png(similarity.tile(*place))) for place in places)
    return {
        "hour_tile_ms": {"median": round(1000 * median(times), 1), "largest": round(1000 * max(times), 1)},
        "hour_tile_mib": round(peak, 1),
        "hour_matrix_gib": round(frames**2 * 8 / 2**30, 1),
    }


def pin(videos: int = 16, frames: int = 135) -> dict[str, Any]:
    """From a pin to all videos at the new pace."""
    arrays = {f"clip{number}": each for number, each in enumerate(walks(videos, frames, 1306))}
    with tempfile.TemporaryDirectory() as folder:
        for name in arrays:
            Path(folder, f"{name}.mp4").write_bytes(name.encode())
        studio = Studio(Project.open(folder))
        studio.matches.store.store(EmbeddingSet.from_arrays(arrays, fps=30))
        reference, *others = map(video_id, arrays)
        frame = iter(range(40, 80))

        def align_anew() -> None:
            Matches(studio.project, studio.journal).align_all(reference, others)

        def set_pin() -> None:
            current = studio.matches.pins.read()
            studio.matches.pins.write(
                [Pin("clip0", number := next(frame), "clip1", number)], current.revision
            )
            studio.matches.align_all(reference, others)

        anew, after = seconds(align_anew, repeat=9), seconds(set_pin, repeat=15)
    return {"pin_ratio": round(anew / after, 1), "pin_ms": round(1000 * after, 1)}


def main() -> None:
    """Run all three and write the result."""
    result = {**first_picture(), **hour(), **pin(), "versions": package_versions()}
    write_results(RESULT, result)
    for name, value in result.items():
        print(f"{name:28s} {value}")


if __name__ == "__main__":
    main()
