"""A running average of the weights, which often aligns better than the weights themselves."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """Exponential moving average of the trained parameters of a module.

    average = d * average + (1 - d) * weights, with d = min(decay, (1 + n) / (10 + n)) at update n (0-based),
    so that the first, untrained weights are soon forgotten. Buffers, such as the statistics of BatchNorm, are
    averages already and are used as they are.

    Args:
        module: what is trained; its weights now are where the average begins.
        decay: in (0, 1), such as 0.999.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        if not 0 < decay < 1:
            raise ValueError(f"ema_decay must be above 0 and below 1, got {decay!r}")
        self.module, self.decay = module, decay
        self.average: dict[str, Tensor] = {}
        self.restart()

    @torch.no_grad()
    def restart(self) -> None:
        """Begin again from the weights as they are."""
        self.average = {name: weight.detach().clone() for name, weight in self._trained()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after update `step` (0-based)."""
        decay = min(self.decay, (1 + step) / (10 + step))
        for name, weight in self._trained():
            self.average[name].lerp_(weight, 1 - decay)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """The module holds the average inside, and its own weights, bit for bit, after."""
        own = {name: weight.detach().clone() for name, weight in self._trained()}
        self._fill(self.average)
        try:
            yield
        finally:
            self._fill(own)

    def state_dict(self) -> dict[str, Tensor]:
        """The average by name."""
        return dict(self.average)

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from a saved average."""
        if state.keys() != self.average.keys():
            raise ValueError("the saved average is of other weights")
        self.average = {name: weight.clone() for name, weight in state.items()}

    @torch.no_grad()
    def _fill(self, weights: dict[str, Tensor]) -> None:
        for name, weight in self._trained():
            weight.copy_(weights[name])

    def _trained(self) -> Iterator[tuple[str, nn.Parameter]]:
        return ((name, weight) for name, weight in self.module.named_parameters() if weight.requires_grad)
