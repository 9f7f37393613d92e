"""A computation recorded once and replayed: the GPU gets hundreds of operations as one (a CUDA graph).

Starting an operation costs the processor more than a small one costs the GPU. What is recorded reads and
writes fixed places in memory, so inputs are copied in, results copied out, and gradients lie where they were
recorded.

Shapes: B videos, T sampled frames, D embedding size.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from cycleback.errors import TrainingError
from cycleback.losses import LossParts

Compute = Callable[[torch.Generator], tuple[Tensor, LossParts]]


class Recording:
    """One recorded forward and backward pass.

    Args:
        compute: forward and backward on `inputs`, which draws from the generator it is given.
        inputs: tensors that `compute` reads; `replay` fills them.
        weights: those that may get gradients.
    """

    def __init__(self, compute: Compute, inputs: Sequence[Tensor], weights: Sequence[nn.Parameter]) -> None:
        self._inputs = list(inputs)
        self._compute = compute  # what it reads must live as long as the recording
        self._weights = [weight for weight in weights if weight.requires_grad]
        self._generator = torch.Generator(self._inputs[0].device)
        self._graph = torch.cuda.CUDAGraph()
        self._graph.register_generator_state(self._generator)
        for weight in self._weights:
            weight.grad = None
        try:
            with torch.cuda.graph(self._graph):
                self._embeddings, self._loss = compute(self._generator)
        except RuntimeError as error:
            reason = str(error).partition("\n")[0]
            raise TrainingError(f"the update cannot be recorded: {reason}. Set run.record=false.") from error
        self._gradients = [weight.grad for weight in self._weights]

    def replay(self, inputs: Sequence[Tensor], *, seed: int) -> tuple[Tensor, LossParts]:
        """The same on other inputs: embeddings (B, T, D) and loss; the gradients are replaced."""
        for place, value in zip(self._inputs, inputs, strict=True):
            place.copy_(value, non_blocking=True)
        self._generator.manual_seed(seed)
        self._graph.replay()
        for weight, gradient in zip(self._weights, self._gradients, strict=True):
            weight.grad = gradient
        parts = {name: value.clone() for name, value in self._loss.parts.items()}
        return self._embeddings.clone(), LossParts(self._loss.total.clone(), parts)
