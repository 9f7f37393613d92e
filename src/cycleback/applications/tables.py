"""Tables of alignments: which frames go together and when; `cycleback.tables.write_table` writes them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import Alignment
from cycleback.embeddings import EmbeddingSet


def tabulate_alignment(
    alignment: Alignment,
    *,
    times_a: NDArray[np.float64],
    times_b: NDArray[np.float64],
    first_a: int = 0,
    first_b: int = 0,
) -> list[dict[str, Any]]:
    """Make one row per frame of A: its frame and second in B, the confidence, and whether it is matched.

    The second in B has fractions of frames (`Alignment.positions`), up to half a frame from its frame. Frames
    count from `first_a` and `first_b`, which are `EmbeddingSet.first_frame` of parts of videos.
    """
    seconds_b = np.interp(alignment.positions, np.arange(len(times_b)), times_b)
    return [
        {
            "frame_a": first_a + frame,
            "seconds_a": round(float(times_a[frame]), 6),
            "frame_b": first_b + int(match),
            "seconds_b": round(float(seconds_b[frame]), 6),
            "confidence": round(float(confidence), 4),
            "matched": bool(is_matched),
            "sure": not abstain,
        }
        for frame, (match, confidence, is_matched, abstain) in enumerate(
            zip(alignment.indices, alignment.confidence, alignment.matched, alignment.abstain, strict=True)
        )
    ]


def locate_part(
    alignment: Alignment, *, times_a: NDArray[np.float64], times_b: NDArray[np.float64]
) -> dict[str, Any]:
    """Return where all of A was found in B: first and last frame, seconds, and the speed against A.

    `times_a` (T,) and `times_b` (S,) are the seconds of their frames.
    """
    first, last = (int(alignment.indices[alignment.matched][end]) for end in (0, -1))
    start_s, end_s = float(times_b[first]), float(times_b[last])
    lasts = end_s - start_s
    speed = float(times_a[-1] - times_a[0]) / lasts if lasts > 0 else 1.0
    return {
        "start_frame": first,
        "end_frame": last,
        "start_s": round(start_s, 6),
        "end_s": round(end_s, 6),
        "speed": round(speed, 4),
    }


def tabulate_clock(
    embeddings: EmbeddingSet, names: Sequence[str], indices: NDArray[np.int64]
) -> list[dict[str, Any]]:
    """Make one row per tick of a shared clock: the frame and the second of each video.

    Args:
        names: the videos on the clock.
        indices: (videos, ticks), the frame of each video at every tick.
    """
    rows: list[dict[str, Any]] = [{"tick": tick} for tick in range(len(indices[0]))]
    for name, frames in zip(names, indices, strict=True):
        times, first = embeddings.times(name), embeddings.first_frame(name)
        for row, frame in zip(rows, frames.tolist(), strict=True):
            row[f"{name} frame"], row[f"{name} seconds"] = first + frame, round(float(times[frame]), 6)
    return rows
