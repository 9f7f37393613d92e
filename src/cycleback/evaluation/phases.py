"""Phase classification: a simple classifier on embeddings, trained on a share of the videos (paper 4.1).

Two named protocols, since classifiers differ by several percent:
    linear   logistic regression on standardised embeddings; smaller shares are drawn with a seed.
    paper    support vector machine, RBF kernel, C = 1, raw embeddings; smaller shares are the first videos.

Shapes: N frames of a video, D embedding size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cycleback.evaluation.neighbors import Floats

Protocol = Literal["linear", "paper"]
LabelledFrames = tuple[Floats, NDArray[np.int64]]  # embeddings (N, D), phases (N,) of one video
FRACTIONS = (0.1, 0.5, 1.0)


@dataclass(frozen=True)
class PhaseAccuracy:
    """Share of held-out frames whose phase was found, by the share of training videos used."""

    by_fraction: Mapping[float, float]
    train_videos: Mapping[float, int]
    frames: int

    @property
    def value(self) -> float:
        """Accuracy with the largest share of the training videos."""
        return self.by_fraction[max(self.by_fraction)]


def phase_accuracy(
    train: Sequence[LabelledFrames],
    held_out: Sequence[LabelledFrames],
    *,
    protocol: Protocol = "linear",
    fractions: Sequence[float] = FRACTIONS,
    seed: int = 0,
) -> PhaseAccuracy:
    """Train on (embeddings (N, D), phases (N,)) of some videos, test on all frames of the others.

    A phase that does not occur in training cannot be found: its frames count as wrong.
    """
    if protocol not in get_args(Protocol):
        raise ValueError(f"protocol must be 'linear' or 'paper', got {protocol!r}")
    if not train or not held_out or not fractions or not all(0 < share <= 1 for share in fractions):
        got = f"{len(train)} training videos, {len(held_out)} held-out videos, fractions {tuple(fractions)}"
        raise ValueError(f"expected videos on both sides and fractions in (0, 1], got {got}")
    order = range(len(train)) if protocol == "paper" else np.random.default_rng(seed).permutation(len(train))
    counts = {share: max(1, int(share * len(train))) for share in fractions}
    features, phases = _pooled(held_out)
    scores = {}
    for share, count in counts.items():
        predict = _classifier(protocol, *_pooled([train[video] for video in order[:count]]))
        scores[share] = float((predict(features) == phases).mean())
    return PhaseAccuracy(scores, counts, len(phases))


def _pooled(videos: Sequence[LabelledFrames]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """All frames (sum N, D) and phases (sum N,)."""
    for features, phases in videos:
        if len(features) != len(phases):
            raise ValueError(f"{len(phases)} phase labels for {len(features)} frames")
    pooled = np.concatenate([np.asarray(features, dtype=np.float64) for features, _ in videos])
    return pooled, np.concatenate([phases for _, phases in videos])


def _classifier(protocol: Protocol, features: NDArray[np.float64], phases: NDArray[np.int64]) -> Any:
    """A function from embeddings (M, D) to phases (M,)."""
    if len(np.unique(phases)) == 1:
        return lambda rows: np.full(len(rows), phases[0])
    if protocol == "paper":
        from sklearn.svm import SVC

        return SVC(C=1.0, kernel="rbf", gamma="scale").fit(features, phases).predict
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(features, phases).predict
