"""Selection without labels: keep the weights with which most held-out frames cycle back.

Shapes: N frames of a video, H W pixels, V numbers of a vector, F feature channels, D embedding size.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.alignment import cycle_consistency_rate
from cycleback.data import VideoRecord
from cycleback.embeddings.embed import embed_maps
from cycleback.embeddings.features import CHUNK_FRAMES
from cycleback.errors import TrainingError
from cycleback.files import write_json
from cycleback.models import Encoder

SELECTED_FILE = "selected.json"
MAX_VIDEOS = 16  # per action; more take time at every evaluation and change the rate little


@dataclass(frozen=True)
class Selected:
    """The best weights so far."""

    step: int  # updates after which they were reached
    held_out_cycle_rate: float  # share of held-out frames that cycle back, in [0, 1]
    evaluations_since: int = 0  # held-out evaluations since then


def select_better(selected: Selected | None, *, step: int, rate: float) -> Selected:
    """Return the better of the best weights so far and the current ones; of equal rates the earlier."""
    if selected is None or rate > selected.held_out_cycle_rate:
        return Selected(step, rate)
    return Selected(selected.step, selected.held_out_cycle_rate, selected.evaluations_since + 1)


def write_selected(folder: Path, selected: Selected) -> None:
    """Write `selected.json`."""
    write_json(folder / SELECTED_FILE, asdict(selected), overwrite=True)


def choose_held_out(records: Sequence[VideoRecord]) -> list[VideoRecord]:
    """Choose the videos to evaluate: the first MAX_VIDEOS of each action that has at least two."""
    actions = sorted({record.action for record in records})
    groups = [[record for record in records if record.action == action] for action in actions]
    largest = max(map(len, groups), default=0)
    if largest < 2:
        raise TrainingError(
            f"run.select_every needs at least 2 held-out videos of one action, got {largest}. "
            "Raise data.held_out, add videos, or set run.select_every=0."
        )
    return [record for group in groups if len(group) > 1 for record in group[:MAX_VIDEOS]]


def held_out_cycle_rate(
    encoder: Encoder,
    videos: Sequence[Tensor],
    actions: Sequence[str],
    *,
    sides: Sequence[Tensor] | None = None,
) -> float:
    """Return the share of frames that cycle back over all pairs of videos of an action, mean over actions.

    The encoder is in evaluation mode. `videos` are frames (N, H, W, 3) uint8, vectors (N, V) or feature maps
    (N, F, h, w); each action has at least two. `sides` are the other streams (N, V') of frames, if there are.
    """
    others: Sequence[Tensor | None] = sides or [None] * len(videos)
    embeddings = [embed_video(encoder, video, side) for video, side in zip(videos, others, strict=True)]
    rates = []
    for action in sorted(set(actions)):
        group = [array for array, of in zip(embeddings, actions, strict=True) if of == action]
        rates.append(cycle_consistency_rate(group))
    return float(np.mean(rates))


def embed_video(encoder: Encoder, video: Tensor, side: Tensor | None = None) -> NDArray[np.float32]:
    """Embed a whole video and its other streams, in the form they are trained on, to (N, D)."""
    return embed_maps(encoder.embedder, _feature_maps(encoder, video, side), device=encoder.device)


def _feature_maps(encoder: Encoder, video: Tensor, side: Tensor | None) -> Iterator[Tensor]:
    for start in range(0, len(video), CHUNK_FRAMES):
        part = slice(start, start + CHUNK_FRAMES)
        chunk = video[part].to(encoder.device)
        chunk = chunk.movedim(-1, 1) if chunk.dtype == torch.uint8 else chunk
        are_features = chunk.is_floating_point() and chunk.ndim == 4
        others = None if side is None else side[part].to(encoder.device)
        yield chunk if are_features else encoder.features(chunk, others)
