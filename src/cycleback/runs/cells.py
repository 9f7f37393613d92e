"""Describe the cells of the frames of embedded videos: for comparing takes part by part."""

from collections.abc import Sequence
from pathlib import Path

import torch

from cycleback.data import VideoRecord
from cycleback.data.records import SEQUENCE_SUFFIX
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.cells import describe_cells
from cycleback.embeddings.features import FeatureCache, FusedFeatures
from cycleback.errors import EmbeddingError
from cycleback.progress import Counter, ignore
from cycleback.runs.folder import build_pretrained, choose_device, open_caches


def has_videos(*sets: EmbeddingSet) -> bool:
    """Whether the video of every take is still where it was embedded."""
    paths = [videos.path(name) for videos in sets for name in videos]
    return all(
        path is not None and path.exists() and path.suffix.lower() != SEQUENCE_SUFFIX for path in paths
    )


def embed_cells(
    videos: EmbeddingSet,
    *,
    device: torch.device | str | None = None,
    cache: Path | None = None,
    with_pose: bool | None = None,
    progress: Counter = ignore,
) -> dict[str, EmbeddingSet]:
    """Describe the cells of each frame of embedded videos by stream; see `cycleback.embeddings.cells`.

    The vectors of the cells of a frame lie side by side in a row of the sets, (N, G * V).

    Args:
        videos: embeddings by any encoder, whose videos are still there. Parts of videos stay parts.
        cache: folder of decoded frames (default: the user's cache folder).
        with_pose: whether to find the joints of a person. Default: if the pose counts in the embeddings.
        progress: called with (frames done, frames in total as far as known).
    """
    if not has_videos(videos):
        raise EmbeddingError("the videos that were embedded are not there: give videos, not embeddings alone")
    with_pose = videos.streams.get("pose", 0) > 0 if with_pose is None else with_pose
    encoder = build_pretrained(("appearance", "motion", "pose") if with_pose else ("appearance", "motion"))
    _, features = open_caches(encoder.to(choose_device(device)), cache)
    assert isinstance(features, FusedFeatures) and features.maps is not None
    records = {name: _record(videos, name) for name in videos}
    _fill(features, list({record.path: record for record in records.values()}.values()), progress)
    arrays: dict[str, dict[str, object]] = {}
    for name, record in records.items():
        first = videos.first_frame(name)
        rows = slice(first, first + len(videos[name]))
        raw = features.load_raw(record, ["motion", "pose"]) | {"maps": features.maps.load(record)}
        if len(raw["maps"]) < rows.stop:
            raise EmbeddingError(f"{record.path} has changed since it was embedded: embed it again")
        is_mirrored = videos.source(name) in videos.mirrored or name in videos.mirrored
        part = {stream: values[rows] for stream, values in raw.items()}
        for stream, cells in describe_cells(part, videos.times(name), is_mirrored=is_mirrored).items():
            arrays.setdefault(stream, {})[name] = cells.reshape(len(cells), -1)
    return {stream: videos.with_embeddings(own) for stream, own in arrays.items()}  # type: ignore[arg-type]


def _record(videos: EmbeddingSet, name: str) -> VideoRecord:
    path = videos.path(name)
    assert path is not None
    return VideoRecord(videos.source(name), path, kind="frames" if path.is_dir() else "video")


def _fill(features: FusedFeatures, records: Sequence[VideoRecord], progress: Counter) -> None:
    """Compute the maps of all videos as they are decoded, and release their frames."""
    maps = features.maps
    assert isinstance(maps, FeatureCache)
    done = 0
    for number, record in enumerate(
        features.frames.iter_filled(records, with_frames=lambda cached: maps.find(cached) is None), start=1
    ):
        maps.load(record)
        features.load_raw(record, ["motion", "pose"])
        done += features.frames.load(record).num_frames
        features.frames.release(record)
        progress(done, done * len(records) // number)
