"""Temporal cycle-consistency losses: walk from video U to video V and back, and land where you started.

Paper: Dwibedi et al., "Temporal Cycle-Consistency Learning", CVPR 2019, arXiv:1904.07846.

    the paper                                                  here
    3.2  alpha, soft nearest neighbour v~ = sum alpha_j v_j    soft_nearest_neighbors
    3.2  logits x_k = -||v~ - u_k||^2                          cycle_back_logits
    3.2  L_cbc = -sum y_j log y^_j                             cycle_back_classification
    3.3  beta, mu and sigma^2                                  landing_moments
    3.3  L_cbr = |i - mu|^2 / sigma^2 + lambda log sigma       cycle_back_regression
    5.2  |i - mu|^2 alone, the ablation                        cycle_back_mse
    --   only in the authors' program                          cycle_back_huber
    3.4  over all pairs of sequences                           TCCLoss
    3.4  for randomly selected frames                          StochasticTCCLoss, in stochastic.py

`TCCLoss.paper()` follows the text and `TCCLoss.reference()` the authors' program. Where these differ, the
reason for our default stands beside it. The hard nearest neighbours of 3.1 are in `cycleback.alignment`.

Shapes: B videos, T sampled frames per video, S frames of the other video, D embedding size,
P = B * (B - 1) ordered pairs (U, V), R walks from U: row i starts from frame i, and R is T unless only the
first frames start. A mask is True for real frames and False for padding.
"""

from typing import Literal, Self, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.losses.base import Loss
from cycleback.losses.inputs import (
    check_choice,
    check_embeddings,
    check_mask,
    check_per_frame,
    check_positive,
    full_precision,
    without_autocast,
)
from cycleback.losses.masks import erase_padding, hide_padding, mean_of_real
from cycleback.losses.similarity import (
    Scaling,
    Similarity,
    ordered_pairs,
    scaled_similarity,
    soft_matches,
)

Kind = Literal["regression", "classification", "mse", "huber"]
VarianceTerm = Literal["log_variance", "log_sigma"]
Index = Literal["time", "position"]

# A walk that lands on one frame for certain has variance 0, and 0 / 0 and log 0 are not numbers. 1e-8 is a
# spread of 1/10,000 of the video, less than one frame of five minutes at 30 fps: no walk need be surer.
VARIANCE_FLOOR = 1e-8


def soft_nearest_neighbors(
    u: Tensor,
    v: Tensor,
    *,
    temperature: float = 0.1,
    scaling: Scaling = "dimension",
    similarity: Similarity = "l2",
    v_mask: Tensor | None = None,
) -> Tensor:
    """For each row of `u` (..., T, D), the mean (..., T, D) of the rows of `v` (..., S, D) by nearness.

    Rows of `v` that `v_mask` (..., S) hides weigh nothing. Other options as in `scaled_similarity`.
    """
    alpha = soft_matches(
        u, v, temperature=temperature, scaling=scaling, similarity=similarity, v_mask=v_mask
    )  # (..., T, S)
    return alpha @ v


def cycle_back_logits(
    u: Tensor,
    v: Tensor,
    *,
    temperature: float = 0.1,
    scaling: Scaling = "dimension",
    similarity: Similarity = "l2",
    u_mask: Tensor | None = None,
    v_mask: Tensor | None = None,
) -> Tensor:
    """Logits (..., T, T): row i says where frame i of `u` (..., T, D) lands after the walk u -> v -> u.

    The walk never visits frames of `v` (..., S, D) that `v_mask` (..., S) hides, and never lands on frames of
    `u` that `u_mask` (..., T) hides: their logits are -inf. Other options as in `scaled_similarity`.
    """
    there = soft_nearest_neighbors(
        u, v, temperature=temperature, scaling=scaling, similarity=similarity, v_mask=v_mask
    )
    back = scaled_similarity(there, u, temperature=temperature, scaling=scaling, similarity=similarity)
    return hide_padding(back, u_mask)


def mean_over_walks(errors: Tensor, mask: Tensor | None) -> Tensor:
    """Scalar mean of `errors` (P, R) over the walks that start from a frame `mask` (P, T) does not hide."""
    return mean_of_real(errors, None if mask is None else mask[..., : errors.shape[-1]])


def cycle_back_classification(
    logits: Tensor, *, label_smoothing: float = 0.0, mask: Tensor | None = None
) -> Tensor:
    """Cross-entropy of landing on the very frame the walk started from (paper 3.2).

    Args:
        logits: (P, R, T), from `cycle_back_logits`; each real frame is a class.
        label_smoothing: Share of the target that is spread evenly over the real frames.
        mask: (P, T), the frames of the start video that count.

    Returns:
        Scalar mean over all walks of all pairs.
    """
    log_beta = logits.log_softmax(dim=-1)  # (P, R, T)
    num_classes: Tensor | int = logits.shape[-1]
    if mask is not None:
        log_beta = log_beta.masked_fill(~mask[..., None, :], 0)  # smoothing would give -inf the weight 0: NaN
        num_classes = mask.sum(dim=-1, keepdim=True)
    own = log_beta.diagonal(dim1=-2, dim2=-1)  # (P, R)
    any_frame = log_beta.sum(dim=-1) / num_classes  # (P, R)
    return -mean_over_walks((1 - label_smoothing) * own + label_smoothing * any_frame, mask)


def landing_moments(logits: Tensor, times: Tensor) -> tuple[Tensor, Tensor]:
    """Mean mu (P, R) and variance sigma^2 (P, R) of the time each walk lands at (paper 3.3).

    `logits` are (P, R, T), from `cycle_back_logits`; `times` (P, T) are those of the start video.
    """
    beta = logits.softmax(dim=-1)  # (P, R, T)
    mean = (beta * times[..., None, :]).sum(dim=-1)  # (P, R)
    variance = (beta * (times[..., None, :] - mean[..., None]).square()).sum(dim=-1)  # (P, R)
    return mean, variance


def cycle_back_regression(
    logits: Tensor,
    times: Tensor,
    *,
    variance_weight: float = 1e-3,
    variance_term: VarianceTerm = "log_variance",
    mask: Tensor | None = None,
) -> Tensor:
    """Squared time error in units of its variance, plus a price on that variance (paper 3.3).

    Good embeddings bring it below zero: the log of a small variance is negative.

    Args:
        logits: (P, R, T), from `cycle_back_logits`.
        times: (P, T), when each frame of the start video is.
        variance_weight: The paper's lambda.
        variance_term: What lambda multiplies: "log_variance" is log sigma^2, as in the authors' program;
            "log_sigma" is log sigma, as printed in the paper, half as much.
        mask: (P, T), the frames of the start video that count.

    Returns:
        Scalar mean over all walks of all pairs.
    """
    check_choice("variance_term", variance_term, get_args(VarianceTerm))
    mean, variance = landing_moments(logits, times)
    variance = variance.clamp_min(VARIANCE_FLOOR)
    weight = variance_weight if variance_term == "log_variance" else variance_weight / 2
    error = times[..., : mean.shape[-1]] - mean  # (P, R)
    return mean_over_walks(error.square() / variance + weight * variance.log(), mask)


def cycle_back_mse(logits: Tensor, times: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Squared time error alone (paper 5.2); arguments and scalar as in `cycle_back_regression`."""
    mean, _ = landing_moments(logits, times)
    return mean_over_walks((times[..., : mean.shape[-1]] - mean).square(), mask)


def cycle_back_huber(
    logits: Tensor, times: Tensor, *, delta: float = 0.1, mask: Tensor | None = None
) -> Tensor:
    """Time error, half its square up to `delta` and linear beyond; the rest as in `cycle_back_mse`."""
    mean, _ = landing_moments(logits, times)
    started = times[..., : mean.shape[-1]]  # (P, R)
    return mean_over_walks(F.huber_loss(mean, started, delta=delta, reduction="none"), mask)


class TCCLoss(Loss):
    """Cycle-back loss over every ordered pair of different videos of a batch; each frame counts the same."""

    needs = frozenset({"times", "mask"})

    def __init__(
        self,
        *,
        kind: Kind = "regression",  # the best of the three in the paper's ablation (5.2)
        temperature: float = 0.1,  # the program's; the paper prints none, which is 1
        scaling: Scaling = "dimension",  # the program's: one temperature serves every embedding size
        similarity: Similarity = "l2",  # both; with "cosine" take scaling="none" (see scaled_similarity)
        variance_weight: float = 1e-3,  # lambda in the paper's table of hyperparameters
        variance_term: VarianceTerm = "log_variance",  # the program's; the paper prints log sigma
        index: Index = "time",  # the program's: frames drawn at random are not evenly spaced in time
        huber_delta: float = 0.1,  # the program's: a tenth of the video (in frames for index="position")
        label_smoothing: float = 0.0,  # the paper's; the program smooths by 0.1
        normalize: bool = False,  # both; unit vectors need scaling="none" as well
    ) -> None:
        super().__init__()
        check_choice("kind", kind, get_args(Kind))
        check_choice("scaling", scaling, get_args(Scaling))
        check_choice("similarity", similarity, get_args(Similarity))
        check_choice("variance_term", variance_term, get_args(VarianceTerm))
        check_choice("index", index, get_args(Index))
        check_positive("temperature", temperature)
        check_positive("huber_delta", huber_delta)
        self.kind: Kind = kind
        self.temperature = temperature
        self.scaling: Scaling = scaling
        self.similarity: Similarity = similarity
        self.variance_weight = variance_weight
        self.variance_term: VarianceTerm = variance_term
        self.index: Index = index
        self.huber_delta = huber_delta
        self.label_smoothing = label_smoothing
        self.normalize = normalize

    @classmethod
    def paper(cls, kind: Kind = "regression") -> Self:
        """The equations as printed: plain squared distances, positions 1..T, lambda log sigma."""
        return cls(kind=kind, temperature=1.0, scaling="none", variance_term="log_sigma", index="position")

    @classmethod
    def reference(cls, kind: Kind = "regression") -> Self:
        """The authors' program with its own settings."""
        return cls(kind=kind, label_smoothing=0.1)

    def forward(
        self, embeddings: Tensor, *, times: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Scalar loss, computed in float32 even under autocast (float64 stays float64).

        Args:
            embeddings: (B >= 2, T, D).
            times: (B, T), when each frame is, as a fraction of its video. kind="classification" and
                index="position" do without.
            mask: (B, T) bool, True for real frames. The loss is that of the videos cropped to them.
        """
        with without_autocast(embeddings):
            embeddings, times = self.prepare(embeddings, times, mask)
            return self._over_pairs(embeddings, times, mask)

    def prepare(self, embeddings: Tensor, times: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Check what `forward` got; embeddings (B, T, D) and the i of |i - mu| (B, T) to compute with."""
        check_embeddings(embeddings, min_videos=2)
        if mask is not None:
            check_mask(mask, embeddings)
        embeddings = erase_padding(full_precision(embeddings), mask)
        if self.normalize:
            embeddings = F.normalize(embeddings, dim=-1)
        return embeddings, self._frame_index(embeddings, times, mask).to(embeddings)

    def _frame_index(self, embeddings: Tensor, times: Tensor | None, mask: Tensor | None) -> Tensor:
        """The i of |i - mu| (B, T): the times given, or the position 1..T among the real frames."""
        if self.index == "position" or self.kind == "classification":
            real = torch.ones_like(embeddings[..., 0]) if mask is None else mask
            return real.cumsum(dim=1)
        if times is None:
            raise ValueError(
                f"kind={self.kind!r} compares times: give times= (B, T), or take index='position'"
            )
        check_per_frame("times", times, embeddings)
        return erase_padding(times, mask)

    def _over_pairs(self, embeddings: Tensor, times: Tensor, mask: Tensor | None) -> Tensor:
        """Scalar loss of `embeddings` (B, T, D), `times` (B, T) and `mask` (B, T) over all ordered pairs."""
        start, other = ordered_pairs(embeddings.shape[0], device=embeddings.device)  # (P,), (P,)
        u_mask, v_mask = (None, None) if mask is None else (mask[start], mask[other])  # (P, T), (P, T)
        logits = cycle_back_logits(
            embeddings[start],
            embeddings[other],
            temperature=self.temperature,
            scaling=self.scaling,
            similarity=self.similarity,
            u_mask=u_mask,
            v_mask=v_mask,
        )  # (P, T, T)
        return self.landing_error(logits, times[start], u_mask)

    def landing_error(self, logits: Tensor, times: Tensor, mask: Tensor | None) -> Tensor:
        """Scalar of the chosen kind from `logits` (P, R, T), `times` (P, T) and `mask` (P, T)."""
        match self.kind:
            case "classification":
                return cycle_back_classification(logits, label_smoothing=self.label_smoothing, mask=mask)
            case "mse":
                return cycle_back_mse(logits, times, mask=mask)
            case "huber":
                return cycle_back_huber(logits, times, delta=self.huber_delta, mask=mask)
            case "regression":
                return cycle_back_regression(
                    logits,
                    times,
                    variance_weight=self.variance_weight,
                    variance_term=self.variance_term,
                    mask=mask,
                )
