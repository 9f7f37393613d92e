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

`TCCLoss.paper()` follows the text and `TCCLoss.reference()` the authors' program. Where they differ, the
reason for our default is beside it. The hard nearest neighbours of 3.1 are in `cycleback.alignment`.

Shapes: B videos, T sampled frames per video, S frames of the other video, D embedding size,
P = B * (B - 1) ordered pairs (U, V), R walks from U: row i starts from frame i, and R is T unless only the
first frames start.
"""

from typing import Literal, Self, Unpack, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from cycleback.losses.base import (
    Loss,
    check_choice,
    check_embeddings,
    check_per_frame,
    check_positive,
    full_precision,
    without_autocast,
)
from cycleback.losses.similarity import (
    Scaling,
    Similarity,
    SimilarityOptions,
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


def soft_nearest_neighbors(u: Tensor, v: Tensor, **options: Unpack[SimilarityOptions]) -> Tensor:
    """Return for each row of `u` (..., T, D) the mean (..., T, D) of the rows of `v`, weighted by similarity.

    `v` is (..., S, D); options as in `scaled_similarity`.
    """
    return soft_matches(u, v, **options) @ v


def cycle_back_logits(u: Tensor, v: Tensor, **options: Unpack[SimilarityOptions]) -> Tensor:
    """Return logits (..., T, T): row i says where frame i of `u` (..., T, D) lands after u -> v -> u.

    `v` is (..., S, D); options as in `scaled_similarity`.
    """
    return scaled_similarity(soft_nearest_neighbors(u, v, **options), u, **options)


def cycle_back_classification(logits: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy of landing on the frame that the walk started from (paper 3.2), a scalar.

    `logits` are (P, R, T), from `cycle_back_logits`; `label_smoothing` is the share of the target that is
    spread evenly over all frames.
    """
    log_beta = logits.log_softmax(dim=-1)  # (P, R, T)
    own = log_beta.diagonal(dim1=-2, dim2=-1)  # (P, R)
    any_frame = log_beta.sum(dim=-1) / logits.shape[-1]  # (P, R)
    return -((1 - label_smoothing) * own + label_smoothing * any_frame).mean()


def landing_moments(logits: Tensor, times: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean mu (P, R) and variance sigma^2 (P, R) of the time at which each walk lands (paper 3.3).

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
) -> Tensor:
    """Return the squared time error over its variance plus a penalty on that variance (3.3), a scalar.

    Good embeddings bring it below zero: the log of a small variance is negative.

    Args:
        logits: (P, R, T), from `cycle_back_logits`.
        times: (P, T), the time of each frame of the start video.
        variance_weight: The paper's lambda.
        variance_term: The factor of lambda: "log_variance" is log sigma^2, as in the authors' program;
            "log_sigma" is log sigma, as printed in the paper, half as much.
    """
    check_choice("variance_term", variance_term, get_args(VarianceTerm))
    mean, variance = landing_moments(logits, times)
    variance = variance.clamp_min(VARIANCE_FLOOR)
    weight = variance_weight if variance_term == "log_variance" else variance_weight / 2
    error = times[..., : mean.shape[-1]] - mean  # (P, R)
    return (error.square() / variance + weight * variance.log()).mean()


def cycle_back_mse(logits: Tensor, times: Tensor) -> Tensor:
    """Return the squared time error alone (paper 5.2), a scalar; arguments as in `cycle_back_regression`."""
    mean, _ = landing_moments(logits, times)
    return (times[..., : mean.shape[-1]] - mean).square().mean()


def cycle_back_huber(logits: Tensor, times: Tensor, *, delta: float = 0.1) -> Tensor:
    """Return half the squared time error up to `delta`, linear beyond; the rest as in `cycle_back_mse`."""
    mean, _ = landing_moments(logits, times)
    started = times[..., : mean.shape[-1]]  # (P, R)
    return F.huber_loss(mean, started, delta=delta, reduction="none").mean()


class TCCLoss(Loss):
    """Cycle-back loss over every ordered pair of different videos of a batch; all frames count equally."""

    needs = frozenset({"times"})

    def __init__(
        self,
        *,
        kind: Kind = "regression",  # the best of the three in the paper's ablation (5.2)
        temperature: float = 0.1,  # as in the program; the paper has none, which is 1
        scaling: Scaling = "dimension",  # as in the program: one temperature fits every embedding size
        similarity: Similarity = "l2",  # as in both; "cosine" needs scaling="none" (see scaled_similarity)
        variance_weight: float = 1e-3,  # lambda in the paper's table of hyperparameters
        variance_term: VarianceTerm = "log_variance",  # as in the program; the paper prints log sigma
        index: Index = "time",  # as in the program: frames drawn at random are not evenly spaced in time
        huber_delta: float = 0.1,  # as in the program: a tenth of the video (in frames for index="position")
        label_smoothing: float = 0.0,  # as in the paper; the program smooths by 0.1
        normalize: bool = False,  # as in both; unit vectors need scaling="none" as well
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
        self.options = SimilarityOptions(temperature=temperature, scaling=scaling, similarity=similarity)
        self.variance_weight = variance_weight
        self.variance_term: VarianceTerm = variance_term
        self.index: Index = index
        self.huber_delta = huber_delta
        self.label_smoothing = label_smoothing
        self.normalize = normalize

    @classmethod
    def paper(cls, kind: Kind = "regression") -> Self:
        """Return the loss as printed: plain squared distances, positions 1..T, lambda log sigma."""
        return cls(kind=kind, temperature=1.0, scaling="none", variance_term="log_sigma", index="position")

    @classmethod
    def reference(cls, kind: Kind = "regression") -> Self:
        """Return the loss of the authors' program with its own settings."""
        return cls(kind=kind, label_smoothing=0.1)

    def forward(self, embeddings: Tensor, *, times: Tensor | None = None) -> Tensor:
        """Return a scalar, computed in float32 even under autocast (float64 stays float64).

        Args:
            embeddings: (B >= 2, T, D).
            times: (B, T), the time of each frame as a fraction of its video; not needed for
                kind="classification" and index="position".
        """
        with without_autocast(embeddings):
            embeddings, times = self.prepare(embeddings, times)
            start, other = ordered_pairs(embeddings.shape[0], device=embeddings.device)  # (P,), (P,)
            logits = cycle_back_logits(embeddings[start], embeddings[other], **self.options)  # (P, T, T)
            return self.landing_error(logits, times[start])

    def prepare(self, embeddings: Tensor, times: Tensor | None) -> tuple[Tensor, Tensor]:
        """Check the inputs of `forward`; return embeddings (B, T, D) and the i of |i - mu| (B, T)."""
        check_embeddings(embeddings, min_videos=2)
        embeddings = full_precision(embeddings)
        if self.normalize:
            embeddings = F.normalize(embeddings, dim=-1)
        if self.index == "position" or self.kind == "classification":
            return embeddings, torch.ones_like(embeddings[..., 0]).cumsum(dim=1)
        if times is None:
            raise ValueError(
                f"kind={self.kind!r} compares times: give times= (B, T), or take index='position'"
            )
        check_per_frame("times", times, embeddings)
        return embeddings, times.to(embeddings)

    def landing_error(self, logits: Tensor, times: Tensor) -> Tensor:
        """Return the scalar of the chosen kind from `logits` (P, R, T) and `times` (P, T)."""
        match self.kind:
            case "classification":
                return cycle_back_classification(logits, label_smoothing=self.label_smoothing)
            case "mse":
                return cycle_back_mse(logits, times)
            case "huber":
                return cycle_back_huber(logits, times, delta=self.huber_delta)
            case "regression":
                return cycle_back_regression(
                    logits, times, variance_weight=self.variance_weight, variance_term=self.variance_term
                )
