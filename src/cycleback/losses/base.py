"""What every loss is: a module called with embeddings first and the rest by keyword."""

from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True)
class LossParts:
    """A loss and what it is made of, for the log.

    Attributes:
        total: Scalar to call `backward` on.
        parts: Scalar of each part by name, before its weight.
    """

    total: Tensor
    parts: dict[str, Tensor]


class Loss(nn.Module):
    """`loss(embeddings (B, T, D), *, ...) -> scalar`.

    Attributes:
        needs: The keywords `forward` takes, among "times", "positives", "phases", "mask" and "generator".
            A caller that has them all passes these and no others.
        capturable: Whether it may be recorded as a CUDA graph: it never waits for the device.
    """

    needs: frozenset[str] = frozenset()
    capturable: bool = True
