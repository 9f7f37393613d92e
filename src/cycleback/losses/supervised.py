"""Supervised learning: predict the phase of each frame from its embedding by one linear layer.

Paper: Dwibedi et al., CVPR 2019, section 5, the rows "Supervised Learning". The layer is used in training
only; the embeddings are evaluated like those of any other loss.

With several actions, `num_phases` is the total and each action has its own numbers: the phases of two actions
of 5 and 4 phases are 0..4 and 5..8.

Shapes: B videos, T sampled frames per video, D embedding size, K phases.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.losses.base import Loss, check_embeddings, check_per_frame, without_autocast

UNLABELLED = -1


def _check_phases(phases: Tensor | None, embeddings: Tensor, *, num_phases: int) -> Tensor:
    """Return `phases` (B, T) as int64; refuse phases outside the `num_phases` classes."""
    if phases is None:
        raise ValueError("supervised learning needs labels: give phases= (B, T), got None")
    check_per_frame("phases", phases, embeddings)
    if phases.is_floating_point() or phases.dtype == torch.bool:
        raise ValueError(f"phases must be integers, got {phases.dtype}")
    phases = phases.long()
    if phases.is_cuda and torch.cuda.is_current_stream_capturing():
        return phases  # values cannot be read while a CUDA graph is captured
    low, high = int(phases.min()), int(phases.max())
    if low < UNLABELLED or high >= num_phases:
        raise ValueError(
            f"phases must be 0 to {num_phases - 1}, or {UNLABELLED} for no label, got {low} to {high}"
        )
    if high == UNLABELLED:
        raise ValueError(
            f"no frame of the batch has a label: all phases are {UNLABELLED}; add labelled videos"
        )
    return phases


def phase_errors(logits: Tensor, phases: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy (B, T) of the phase of each frame, 0 where it has no label.

    `logits` are (B, T, K), `phases` (B, T) int64. `label_smoothing` spreads its share of the target evenly.
    """
    return F.cross_entropy(
        logits.mT, phases, ignore_index=UNLABELLED, label_smoothing=label_smoothing, reduction="none"
    )


class SupervisedLoss(Loss):
    """Cross-entropy of a linear classifier, trained along with the encoder; mean over all labelled frames."""

    needs = frozenset({"phases"})

    def __init__(
        self,
        embedding_size: int,
        num_phases: int,
        *,
        label_smoothing: float = 0.0,  # as in the program
        dropout: float = 0.0,  # as in the program; of the embedding's channels
    ) -> None:
        super().__init__()
        if num_phases < 2:
            raise ValueError(f"num_phases must be at least 2, got {num_phases!r}")
        self.embedding_size = embedding_size
        self.num_phases = num_phases
        self.label_smoothing = label_smoothing
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(embedding_size, num_phases)

    def forward(self, embeddings: Tensor, *, phases: Tensor | None = None) -> Tensor:
        """Return a scalar, computed in the precision of the classifier even under autocast.

        Args:
            embeddings: (B, T, D = `embedding_size`).
            phases: (B, T) integers, the phase of each frame; -1 where it has no label.
        """
        check_embeddings(embeddings, size=self.embedding_size)
        phases = _check_phases(phases, embeddings, num_phases=self.num_phases)
        labelled = phases != UNLABELLED  # (B, T)
        with without_autocast(embeddings):
            # NaN in an unlabelled frame must not reach the gradient
            embeddings = embeddings.to(self.classifier.weight.dtype).masked_fill(~labelled[..., None], 0)
            logits = self.classifier(self.dropout(embeddings))  # (B, T, K)
            errors = phase_errors(logits, phases, label_smoothing=self.label_smoothing)  # (B, T)
            return errors.sum() / labelled.sum()
