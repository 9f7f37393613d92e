"""How many frames of the held-out videos cycle back: a score that needs no labels.

Shapes: N frames of a video, H W pixels, V numbers of a vector, F feature channels, D embedding size.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.alignment import cycle_consistency_rate
from cycleback.data import VideoRecord
from cycleback.embeddings.embed import embed_maps
from cycleback.embeddings.batches import CHUNK_FRAMES
from cycleback.models import Encoder
from cycleback.training.selection import require_held_out

MOST_VIDEOS = 16  # of an action; more cost time at every look and change the rate little


def held_out_records(records: Sequence[VideoRecord]) -> list[VideoRecord]:
    """Those that are measured: of each action that has two, the first MOST_VIDEOS."""
    chosen: list[VideoRecord] = []
    largest = 0
    for action in sorted({record.action for record in records}):
        group = [record for record in records if record.action == action]
        largest = max(largest, len(group))
        chosen += group[:MOST_VIDEOS] if len(group) > 1 else []
    require_held_out(largest)
    return chosen


def held_out_cycle_rate(encoder: Encoder, videos: Sequence[Tensor], actions: Sequence[str]) -> float:
    """Mean over actions of the share of frames that cycle back, over all pairs of videos of an action.

    Args:
        encoder: in evaluation mode.
        videos: frames (N, H, W, 3) uint8, vectors (N, V) or feature maps (N, F, h, w) of each video.
        actions: of each video; at least two videos each.
    """
    embeddings = [embed_video(encoder, video) for video in videos]
    rates = []
    for action in sorted(set(actions)):
        group = [array for array, of in zip(embeddings, actions, strict=True) if of == action]
        rates.append(cycle_consistency_rate(group))
    return float(np.mean(rates))


def embed_video(encoder: Encoder, video: Tensor) -> NDArray[np.float32]:
    """Embeddings (N, D) of a whole video in the form it is trained on."""
    return embed_maps(encoder.embedder, _maps(encoder, video), device=encoder.device)


def _maps(encoder: Encoder, video: Tensor) -> Iterator[Tensor]:
    for start in range(0, len(video), CHUNK_FRAMES):
        chunk = video[start : start + CHUNK_FRAMES].to(encoder.device)
        if chunk.dtype == torch.uint8:
            yield encoder.features(chunk.movedim(-1, 1))
        elif chunk.ndim == 2:
            yield encoder.features(chunk)
        else:
            yield chunk
