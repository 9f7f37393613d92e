"""An encoder as it embeds whole videos fastest: a frozen copy, base once a frame, temporal taps once a frame.

Shapes: N frames of a video, n of a piece of it, H W pixels, F feature channels, h w grid, D embedding size.
"""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from cycleback.models.conv_embedder import ConvEmbedder
from cycleback.models.encoder import Encoder
from cycleback.models.fast import Precision, fast_inference
from cycleback.models.fast_embedder import FastEmbedder, can_be_fast


class FastEncoder:
    """A copy of an encoder of images for whole videos; later changes of the original do not reach it.

    Args:
        encoder: on the device to use.
        precision: "float32" gives its embeddings up to rounding; "bfloat16", on a GPU, about 1 % off. None:
            bfloat16 on a GPU, float32 elsewhere.
    """

    def __init__(self, encoder: Encoder, *, precision: Precision | None = None) -> None:
        is_on_gpu = encoder.device.type == "cuda"
        self.precision: Precision = precision or ("bfloat16" if is_on_gpu else "float32")
        self.features = fast_inference(encoder.base, precision=self.precision)
        self.embedder = encoder.embedder
        if is_on_gpu and self.precision == "bfloat16" and can_be_fast(encoder.embedder):
            assert isinstance(encoder.embedder, ConvEmbedder)
            self.embedder = FastEmbedder(encoder.embedder, dtype=torch.bfloat16)

    def embed_stream(self, chunks: Iterable[Tensor]) -> Iterator[Tensor]:
        """Features (n, F, h, w) of consecutive frames, in pieces, to embeddings (n, D)."""
        return self.embedder.embed_stream(chunks)
