"""Phase classification: a simple classifier on embeddings, trained on a share of the videos (paper 4.1).

Which classifier, and which videos a share is, the protocol says: classifiers differ by several percent.

Shapes: N frames of a video, D embedding size, V held-out videos.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cycleback.evaluation.classifiers import fit_classifier, standardised
from cycleback.evaluation.neighbors import Floats
from cycleback.evaluation.protocol import Protocol, named_protocol

LabelledFrames = tuple[Floats, NDArray[np.int64]]  # embeddings (N, D), phases (N,) of one video
FRACTIONS = (0.1, 0.5, 1.0)


@dataclass(frozen=True)
class PhaseAccuracy:
    """Share of held-out frames whose phase was found, by the share of training videos used.

    `right` and `lengths` (V,) are the frames found with the largest share, and all frames, of each video.
    """

    by_fraction: Mapping[float, float]
    train_videos: Mapping[float, int]
    frames: int
    right: NDArray[np.int64] = field(compare=False, repr=False)
    lengths: NDArray[np.int64] = field(compare=False, repr=False)

    @property
    def value(self) -> float:
        """Accuracy with the largest share of the training videos."""
        return self.by_fraction[max(self.by_fraction)]


def phase_accuracy(
    train: Sequence[LabelledFrames],
    held_out: Sequence[LabelledFrames],
    *,
    protocol: str | Protocol = "linear",
    fractions: Sequence[float] = FRACTIONS,
    seed: int = 0,
) -> PhaseAccuracy:
    """Train on (embeddings (N, D), phases (N,)) of some videos, test on all frames of the others.

    A phase that does not occur in training cannot be found: its frames count as wrong.
    """
    settings = named_protocol(protocol)
    if not train or not held_out or not fractions or not all(0 < share <= 1 for share in fractions):
        got = f"{len(train)} training videos, {len(held_out)} held-out videos, fractions {tuple(fractions)}"
        raise ValueError(f"expected videos on both sides and fractions in (0, 1], got {got}")
    order = np.random.default_rng(seed).permutation(len(train))
    order = np.arange(len(train)) if settings.first_videos else order
    counts = {share: max(1, int(share * len(train))) for share in sorted(fractions)}
    features, phases = pooled_frames(held_out)
    scores, is_right = {}, np.empty(0, dtype=bool)
    for share, count in counts.items():
        known, truth = pooled_frames([train[video] for video in order[:count]])
        others = features
        if settings.classifier == "logistic":
            known, others = standardised(known, features)
        is_right = fit_classifier(settings.classifier, known, truth)(others) == phases
        scores[share] = float(is_right.mean())
    lengths = np.array([len(block) for block, _ in held_out])
    right = np.add.reduceat(is_right.astype(np.int64), np.cumsum([0, *lengths[:-1]]))
    return PhaseAccuracy(scores, counts, len(phases), right, lengths)


def pooled_frames(videos: Sequence[LabelledFrames]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """All frames (sum N, D) and phases (sum N,)."""
    for features, phases in videos:
        if len(features) != len(phases):
            raise ValueError(f"{len(phases)} phase labels for {len(features)} frames")
    pooled = np.concatenate([np.asarray(features, dtype=np.float64) for features, _ in videos])
    return pooled, np.concatenate([phases for _, phases in videos])
