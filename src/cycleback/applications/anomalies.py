"""Where a take leaves the typical trajectory (paper, anomaly detection): scores, spans and a verdict.

Shapes: N frames of a take.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.spans import Flags, Floats, Span, flags_of, spans_above, threshold_for

Verdict = Literal["typical", "something differs", "looks like another action"]
QUIET_TENTH = 0.1  # of the frames: a take that went wrong has moments that went well
FAR_BEYOND = 0.5  # another action scores this much above every good take, even in its quietest tenth


@dataclass(frozen=True, eq=False)
class AnomalyScores:
    """The scores of one take, and what they mean; see `cycleback.applications.typical` for their unit.

    Attributes:
        scores: (N,), how far each frame is from typical.
        progress: (N,) in [0, 1], where in the action each frame is.
        matches: (N, 2), the nearest good take (its number) and its frame.
        spans: stretches that stand out, each as first and last frame.
        threshold: frames above it are flagged; good takes have the stated share of them.
        peak_threshold: a take whose highest score is above it is odd; so many good takes are.
        verdict: of the whole take.
    """

    scores: Floats
    progress: Floats
    matches: NDArray[np.int64]
    spans: tuple[Span, ...]
    threshold: float
    peak_threshold: float
    verdict: Verdict

    @classmethod
    def calibrated(
        cls,
        scores: Floats,
        own_scores: Sequence[Floats],
        *,
        progress: Floats,
        matches: NDArray[np.int64],
        false_alarms: float,
    ) -> Self:
        """Set `scores` (N,) beside those of good takes, each left out in turn."""
        if not 0 < false_alarms < 1:
            raise ValueError(f"false_alarms must be between 0 and 1, got {false_alarms}")
        threshold = threshold_for(own_scores, false_alarms)
        peaks = [float(own.max()) for own in own_scores]
        peak_threshold = float(np.quantile(peaks, 1 - false_alarms, method="higher"))
        verdict: Verdict = "something differs" if scores.max() > peak_threshold else "typical"
        quiet, *own_quiet = (float(np.quantile(curve, QUIET_TENTH)) for curve in (scores, *own_scores))
        if quiet > max(0.0, *own_quiet) + FAR_BEYOND:
            verdict = "looks like another action"
        spans = tuple(spans_above(scores, threshold))
        return cls(scores, progress, matches, spans, threshold, peak_threshold, verdict)

    @property
    def flagged(self) -> Flags:
        """Whether each frame (N,) lies in a span."""
        return flags_of(self.spans, len(self.scores))

    @property
    def peak(self) -> int:
        """The frame that is furthest from typical."""
        return int(self.scores.argmax())


def anomaly_rows(name: str, found: AnomalyScores, times: Floats) -> list[dict[str, Any]]:
    """One row a frame: video, frame, seconds, score, flagged (1 or 0)."""
    flagged = found.flagged
    return [
        {
            "video": name,
            "frame": frame,
            "seconds": round(float(times[frame]), 6),
            "score": round(float(score), 4),
            "flagged": int(flagged[frame]),
        }
        for frame, score in enumerate(found.scores)
    ]
