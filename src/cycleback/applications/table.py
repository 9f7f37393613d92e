"""The frame-to-frame table of an alignment, as rows and as files other programs read."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment import Alignment


def alignment_rows(
    alignment: Alignment, *, times_a: NDArray[np.float64], times_b: NDArray[np.float64]
) -> list[dict[str, Any]]:
    """One row a frame of A: where it is in B, when that is, and how sure we are."""
    return [
        {
            "frame_a": frame,
            "seconds_a": round(float(times_a[frame]), 6),
            "frame_b": int(match),
            "seconds_b": round(float(times_b[match]), 6),
            "confidence": round(float(sure), 4),
        }
        for frame, (match, sure) in enumerate(zip(alignment.indices, alignment.confidence, strict=True))
    ]
