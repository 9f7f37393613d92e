"""In which arithmetic the network runs; losses are always computed in float32.

Shapes: B videos, T frames, C context frames, H W pixels, F feature channels, D embedding size.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from cycleback.models import Encoder

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class Arithmetic:
    """How to run the network while training.

    Attributes:
        precision: of the network's forward pass. Weights, gradients and losses stay in float32.
        channels_last: lay images out as (H, W, channels) in the base: faster convolutions on GPUs.
        compile: let torch.compile fuse the forward pass; the first update then takes a minute.
        deterministic: use only operations that give the same bits each time, and refuse others.
        record: on a GPU, replay each update as one recording (see `cycleback.training.recording`).
    """

    precision: Precision = "float32"
    channels_last: bool = False
    compile: bool = False
    deterministic: bool = False
    record: bool = True

    def __post_init__(self) -> None:
        if self.precision not in get_args(Precision):
            raise ValueError(f"precision must be one of {get_args(Precision)}, got {self.precision!r}")


class Forward:
    """The encoder as training runs it: inputs in, float32 embeddings out."""

    def __init__(self, encoder: Encoder, arithmetic: Arithmetic) -> None:
        self.is_bfloat16 = arithmetic.precision == "bfloat16"
        if arithmetic.channels_last:  # the embedder's weights may have five axes, which have no such layout
            encoder.base.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        wrap = torch.compile if arithmetic.compile else lambda function: function
        self._from_frames, self._from_features = wrap(encoder.forward), wrap(encoder.embed)

    def __call__(self, inputs: Tensor, *, are_features: bool) -> Tensor:
        """Embeddings (B, T, D) of frames (B, T, C, ...), or of their feature maps (B, T, C, F, h, w)."""
        run = self._from_features if are_features else self._from_frames
        with torch.autocast(
            inputs.device.type, torch.bfloat16, enabled=self.is_bfloat16, cache_enabled=False
        ):
            embeddings: Tensor = run(inputs)
        return embeddings.float()


@contextmanager
def deterministic(enabled: bool) -> Iterator[None]:
    """Same input, same bits, or an error; the process's settings are put back after."""
    if not enabled:
        yield
        return
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    benchmark = torch.backends.cudnn.benchmark
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS refuses without it
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn_only)
        torch.backends.cudnn.benchmark = benchmark
