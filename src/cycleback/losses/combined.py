"""Several losses as one: TCC + TCN, TCC + SaL (Dwibedi et al., CVPR 2019, 5.1, combined losses)."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from cycleback.losses.base import Loss, LossParts


class CombinedLoss(Loss):
    """Weighted sum of losses on the same embeddings.

    Args:
        parts: Name -> (loss, weight >= 0). A part of weight 0 is left out and asks for nothing.
    """

    def __init__(self, parts: Mapping[str, tuple[Loss, float]]) -> None:
        super().__init__()
        for name, (_, weight) in parts.items():
            if not weight >= 0:
                raise ValueError(f"weight of {name!r} must not be negative, got {weight!r}")
        self.weights = {name: float(weight) for name, (_, weight) in parts.items() if weight > 0}
        if not self.weights:
            raise ValueError(f"no part has a positive weight; parts: {sorted(parts)}")
        self.losses = nn.ModuleDict({name: parts[name][0] for name in self.weights})
        self.needs_of = {name: parts[name][0].needs for name in self.weights}
        self.needs = frozenset().union(*self.needs_of.values())
        self.capturable = all(parts[name][0].capturable for name in self.weights)

    def parts(
        self,
        embeddings: Tensor,
        *,
        times: Tensor | None = None,
        positives: Tensor | None = None,
        phases: Tensor | None = None,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> LossParts:
        """The sum and each part; a part gets, of these, only what it needs.

        Args:
            embeddings: (B, T, D).
            times: (B, T), as a fraction of the video.
            positives: (B, T, D), frames close in time to the embeddings' frames.
            phases: (B, T) int64, the labels.
            mask: (B, T) bool, True for real frames.
            generator: Source of what a part draws at random.
        """
        given = {
            "times": times,
            "positives": positives,
            "phases": phases,
            "mask": mask,
            "generator": generator,
        }
        values: dict[str, Tensor] = {}
        for name, loss in self.losses.items():
            values[name] = loss(embeddings, **{key: given[key] for key in self.needs_of[name]})
        total = torch.stack([self.weights[name] * value for name, value in values.items()]).sum()
        return LossParts(total, values)

    def forward(
        self,
        embeddings: Tensor,
        *,
        times: Tensor | None = None,
        positives: Tensor | None = None,
        phases: Tensor | None = None,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The weighted sum, a scalar; arguments as in `parts`."""
        return self.parts(
            embeddings, times=times, positives=positives, phases=phases, mask=mask, generator=generator
        ).total
