"""A transformer over the frames of a video, with positions that cannot be stretched to the clip.

CARL and its successors add positions to their frames that run from the first to the last frame of a clip,
however long it is. Time as a share of the video is then an input, and losses need no more. Here positions are
absent, relative in frames of the video, or frame numbers shifted at random while training.

Shapes: B videos, T sampled frames, C context frames, N frames of a whole video, n of a chunk, F feature
channels, h w feature map, W token size, H heads, D embedding size.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cycleback.models.embedder import Embedder, eval_mode, glorot_linear
from cycleback.models.pooling_embedders import MLPEmbedder

Attention = Literal["full", "causal"]
Positions = Literal["none", "relative", "shifted"]

BUCKETS = 16  # of relative distance in one direction, of growing width
FARTHEST = 256  # frames from which on all distances are alike
MAX_SHIFT = 1024  # frames by which positions are shifted while training


class TransformerEmbedder(Embedder):
    """Each frame with its context as in `MLPEmbedder`, then layers of attention over the frames of the video.

    In training the frames are the sampled ones, in a whole video all of them. Memory grows with the video.

    With full attention and no positions, the embeddings of a video move with its frames if these are
    shuffled: it cannot count. In all other cases it can (see `Embedder.can_count_frames`).

    Args:
        in_channels: feature channels.
        attention: "full" over the whole video, or "causal": a frame sees only itself and earlier ones.
        positions: "none"; "relative": a learned bias for each distance in frames; "shifted": sines of the
            frame number, plus a random number while training.
        token_size: W, of the layers.
        depth: number of layers.
        heads: of attention; twice their number divides the token size.
        others: as in `MLPEmbedder`.
    """

    trait_names = ("attention", "positions", "heads", "context_frames", "context_stride", "normalize")
    mixes_frames = True

    def __init__(
        self,
        in_channels: int,
        *,
        attention: Attention = "full",
        positions: Positions = "none",
        token_size: int = 128,
        depth: int = 2,
        heads: int = 4,
        fc_channels: Sequence[int] = (256,),
        embedding_size: int = 128,
        context_frames: int = 3,
        context_stride: int = 4,
        dropout: float = 0.0,
        norm_momentum: float = 0.1,
        normalize: bool = False,
        embedding_gain: float = 1.0,
    ) -> None:
        super().__init__()
        for name, value, known in (("attention", attention, Attention), ("positions", positions, Positions)):
            if value not in get_args(known):
                raise ValueError(f"{name} must be one of {get_args(known)}, got {value!r}")
        if token_size % (2 * heads):
            wrong = f"{token_size} for {heads} heads"
            raise ValueError(f"token_size must be a multiple of twice the heads, got {wrong}")
        self.in_channels, self.embedding_size, self.normalize = in_channels, embedding_size, normalize
        self.context_frames, self.context_stride = context_frames, context_stride
        self.attention, self.positions, self.heads = attention, positions, heads
        self.can_count_frames = positions != "none" or attention == "causal"
        self.tokens = MLPEmbedder(
            in_channels,
            fc_channels=fc_channels,
            embedding_size=token_size,
            context_frames=context_frames,
            context_stride=context_stride,
            dropout=dropout,
            norm_momentum=norm_momentum,
        )
        self.layers = nn.ModuleList(AttentionLayer(token_size, heads, dropout=dropout) for _ in range(depth))
        self.bias = nn.Embedding(2 * BUCKETS, heads) if positions == "relative" else None
        self.norm = nn.LayerNorm(token_size)
        self.embedding = glorot_linear(token_size, embedding_size, gain=embedding_gain)

    def forward(self, features: Tensor, frames: Tensor | None = None) -> Tensor:
        """Map features (B, T, C, F, h, w) of frames numbered `frames` (B, T) to embeddings (B, T, D)."""
        tokens = self.tokens(features)  # (B, T, W)
        if frames is None:
            frames = torch.arange(tokens.shape[1], device=tokens.device).expand(tokens.shape[:2])
        shift = torch.zeros_like(frames[:, :1])
        if self.training:
            shift = torch.randint_like(shift, MAX_SHIFT)
        return self.attend(tokens, frames, shift)

    def attend(self, tokens: Tensor, frames: Tensor, shift: Tensor | int = 0) -> Tensor:
        """Map the tokens (B, T, W) of frames numbered `frames` (B, T) to embeddings (B, T, D).

        `shift` (B, 1) is added to shifted positions.
        """
        states = self._place(tokens, frames + shift)
        bias = self._bias(frames, frames)
        for layer in self.layers:
            states = layer(states, states, bias)
        return self._embed(states)

    def embed_stream(self, chunks: Iterable[Tensor]) -> Iterator[Tensor]:
        """Map features (n, F, h, w) of consecutive frames, in chunks, to embeddings (n, D)."""
        tokens = self.tokens.embed_stream(chunks)  # (n, W) each
        if self.attention == "causal":
            yield from self._embed_causally(tokens)
            return
        found = list(tokens)
        lengths = [len(chunk) for chunk in found]
        if found:
            for embeddings in self._embed_causally([torch.cat(found)]):
                yield from torch.split(embeddings, lengths)

    def _embed_causally(self, chunks: Iterable[Tensor]) -> Iterator[Tensor]:
        """Embed chunks of tokens (n, W), each of which sees itself and all chunks before it."""
        seen: list[Tensor] = []  # the inputs of each layer so far, (1, N, W)
        start = 0
        for tokens in chunks:
            with eval_mode(self), torch.no_grad():
                frames = torch.arange(start + len(tokens), device=tokens.device)[None]
                here = frames[:, start:]
                states = self._place(tokens[None], here)
                bias = self._bias(here, frames)
                for depth, layer in enumerate(self.layers):
                    if depth == len(seen):
                        seen.append(states[:, :0])
                    seen[depth] = torch.cat([seen[depth], states], dim=1)
                    states = layer(states, seen[depth], bias)
                embeddings = self._embed(states)[0]
            start += len(tokens)
            yield embeddings

    def _place(self, tokens: Tensor, places: Tensor) -> Tensor:
        """Add sines of the places (B, T) to tokens (B, T, W), if positions are shifted."""
        if self.positions != "shifted":
            return tokens
        half = tokens.shape[-1] // 2
        rates = torch.exp(torch.arange(half, device=tokens.device) * (-math.log(1e4) / half))  # (W / 2,)
        angles = (places[..., None] * rates).to(tokens.dtype)
        return tokens + torch.cat([angles.sin(), angles.cos()], dim=-1)

    def _bias(self, here: Tensor, there: Tensor) -> Tensor | None:
        """Return what is added to the attention (B, H or 1, T, S) of frames `here` (B, T) to `there`."""
        if self.bias is None and self.attention == "full":
            return None
        apart = there[:, None, :] - here[:, :, None]  # (B, T, S)
        bias: Tensor | None = None
        if self.bias is not None:
            bias = self.bias(_bucket(apart)).movedim(-1, 1)  # (B, H, T, S)
        if self.attention == "causal":
            hidden = torch.zeros_like(apart, dtype=self.embedding.weight.dtype)
            hidden = hidden.masked_fill(apart > 0, -math.inf)[:, None]
            bias = hidden if bias is None else bias + hidden
        return bias

    def _embed(self, states: Tensor) -> Tensor:
        """Map states (B, T, W) to embeddings (B, T, D)."""
        embeddings: Tensor = self.embedding(self.norm(states))
        return F.normalize(embeddings, dim=-1) if self.normalize else embeddings


class AttentionLayer(nn.Module):
    """Attention and a feed-forward network, each normalised first and added to its input."""

    def __init__(self, width: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm, self.forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key_value = glorot_linear(width, width), glorot_linear(width, 2 * width)
        self.output = glorot_linear(width, width)
        self.feed_forward = nn.Sequential(
            glorot_linear(width, 2 * width), nn.ReLU(), nn.Dropout(dropout), glorot_linear(2 * width, width)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, seen: Tensor, bias: Tensor | None) -> Tensor:
        """Map states (B, T, W) that see `seen` (B, S, W), with a bias (B, H or 1, T, S), to (B, T, W)."""
        query = self._split(self.query(self.attention_norm(states)))  # (B, H, T, W / H)
        key, value = map(self._split, self.key_value(self.attention_norm(seen)).chunk(2, dim=-1))
        mask = None if bias is None else bias.to(query.dtype)
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        states = states + self.dropout(self.output(found.transpose(1, 2).flatten(2)))
        added: Tensor = self.dropout(self.feed_forward(self.forward_norm(states)))
        return states + added

    def _split(self, values: Tensor) -> Tensor:
        """Split (B, T, W) among the heads: (B, H, T, W / H)."""
        return torch.unflatten(values, -1, (self.heads, -1)).transpose(1, 2)


def _bucket(apart: Tensor) -> Tensor:
    """Return the bucket of each signed distance in frames: fine near zero, coarse far away."""
    scaled = torch.log1p(apart.abs().float()) / math.log1p(FARTHEST) * BUCKETS
    bucket = scaled.long().clamp_max(BUCKETS - 1)
    return torch.where(apart < 0, bucket, bucket + BUCKETS)
