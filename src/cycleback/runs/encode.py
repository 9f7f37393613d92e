"""From a run folder to its encoder, and from videos to embeddings."""

from collections.abc import Sequence
from pathlib import Path

import torch

from cycleback.data import Dataset, FrameCache
from cycleback.data.selection import select_records
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.embed import embed_records
from cycleback.embeddings.features import FeatureCache
from cycleback.models import Encoder, Precision, load_weights
from cycleback.progress import Counter
from cycleback.recipe import EncoderSection, Recipe, build_encoder
from cycleback.runs.folder import saved_recipe
from cycleback.runs.published import PRETRAINED, find_run


def load_encoder(source: Path | str = PRETRAINED) -> Encoder:
    """The encoder of a run folder, or one by name.

    Args:
        source: a run folder; the name of a model that comes with the package, such as `"golf-lite"`; or
            `"pretrained"`: the one that works before any training.
    """
    if str(source) == PRETRAINED:
        return build_encoder(Recipe(encoder=EncoderSection(embedder="pooled"))).eval()
    folder = find_run(source)
    encoder = build_encoder(saved_recipe(folder), saved=folder)
    load_weights(folder, encoder)
    return encoder.eval()


def embed_videos(
    encoder: Encoder | Path | str,
    videos: Dataset | Path | str | Sequence[Path | str],
    *,
    device: torch.device | str | None = None,
    cache: Path | None = None,
    precision: Precision | None = None,
    progress: Counter | None = None,
) -> EmbeddingSet:
    """Embed every frame of a folder of videos, or of the named files.

    Args:
        encoder: an Encoder, or what `load_encoder` takes: a run folder or a name.
        videos: a data set, its folder, or paths of videos.
        cache: where decoded frames are kept (default: the user's cache folder).
        precision: "float32", or "bfloat16": about 1 % off, much faster on a GPU, and the default there.
        progress: called with (frames done, frames in all, as far as is known yet).
    """
    encoder = encoder if isinstance(encoder, Encoder) else load_encoder(encoder)
    records, event_names = select_records(videos)
    frames = FrameCache(cache, size=encoder.frame_size, fit=encoder.fit)
    encoder = encoder.to(choose_device(device))
    features = None
    if encoder.train_base == "frozen" and encoder.input_kind == "images":
        features = FeatureCache(frames, encoder.base, device=encoder.device)
    return embed_records(
        encoder,
        records,
        frames=frames,
        features=features,
        event_names=event_names,
        precision=precision,
        progress=progress,
    )


def choose_device(device: torch.device | str | None = None) -> torch.device:
    """The named device, or the GPU where there is one."""
    if device is not None:
        return torch.device(device)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
