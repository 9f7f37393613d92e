"""Embed videos with an exported model, as `cycleback.runs.embed_videos` does with a run.

Shapes: N frames of a video, n frames of a chunk, F feature channels, h w feature map, V size of a vector.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cycleback.data import Dataset, FrameCache, VideoRecord, event_frames, load_sequence
from cycleback.data.folder import names_folder, select_records
from cycleback.data.usable import keep_usable
from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.features import FusedFeatures, prepare_streams, standardize
from cycleback.embeddings.poses import PoseCache
from cycleback.errors import DataError
from cycleback.exported.model import BASE_FILE, ExportedModel, read_model
from cycleback.exported.networks import ExportedEmbedder, ExportedJoints, ExportedMaps, Floats, Network
from cycleback.models.streams import StreamFusion
from cycleback.progress import Counter, ignore


def embed_exported(
    model: ExportedModel | Path | str,
    videos: Dataset | Path | str | Sequence[Path | str],
    *,
    cache: Path | None = None,
    streams: Mapping[str, float] | None = None,
    alike: EmbeddingSet | None = None,
    one_event: bool = False,
    leave_out: bool | None = None,
    progress: Counter = ignore,
) -> EmbeddingSet:
    """Embed every frame of a folder of videos, or of the named files, with onnxruntime.

    `model` is an exported model, or its folder; all else is as in `cycleback.runs.embed_videos`.
    """
    model = model if isinstance(model, ExportedModel) else read_model(model)
    records, event_names = select_records(videos)
    _check_kinds(model, records)
    frames = FrameCache(cache, size=model.frame_size, fit=model.fit)
    if leave_out or (leave_out is None and names_folder(videos)):
        records = keep_usable(records, cache=frames)
    if not records:
        raise DataError("no videos to embed")
    embedder = ExportedEmbedder(model)
    features = _open_features(model, frames)
    if isinstance(features, FusedFeatures):
        prepare_streams(
            features,
            records,
            is_weighed=model.is_weighed,
            streams=streams,
            alike=alike,
            one_event=one_event,
            progress=progress,
        )
    arrays: dict[str, Floats] = {}
    times: dict[str, NDArray[np.float64]] = {}
    done = 0
    for record in records:
        maps, times[record.name] = _load_features(model, frames, features, record)
        embeddings = embedder.embed(maps, record.name)
        arrays[record.name] = standardize(embeddings) if model.standardize else embeddings
        if record.kind != "sequence":
            frames.release(record)
        done += len(embeddings)
        progress(done, done * len(records) // len(arrays))
    return EmbeddingSet.from_arrays(
        arrays,
        times=times,
        events={record.name: event_frames(record, times[record.name]) for record in records},
        actions={record.name: record.action for record in records},
        paths={record.name: str(record.path) for record in records},
        encoder=model.fingerprint,
        can_count_frames=model.can_count_frames,
        streams=features.base.stream_weights if isinstance(features, FusedFeatures) else None,
        mirrored=features.mirrored if isinstance(features, FusedFeatures) else (),
        event_names=list(event_names) or None,
    )


def _check_kinds(model: ExportedModel, records: Sequence[VideoRecord]) -> None:
    kinds = ("sequences (.npz)", "videos")
    expected, other = kinds if model.input_kind == "vectors" else kinds[::-1]
    for record in records:
        if (record.kind == "sequence") != (model.input_kind == "vectors"):
            raise DataError(f"{record.name}: this model was made for {expected}, not for {other}")


def _open_features(model: ExportedModel, frames: FrameCache) -> "FusedFeatures | ExportedMaps | Network":
    """Open what gives the features of videos: streams, the base, or the base of vectors."""
    if model.input_kind == "vectors":
        return Network(model, BASE_FILE)
    maps = ExportedMaps(frames, model) if BASE_FILE in model.files else None
    if not model.streams:
        assert maps is not None
        return maps
    sizes = {stream: part.size for stream, part in model.streams.items()}
    weights = {stream: part.weight for stream, part in model.streams.items()}
    poses = PoseCache(frames, network=ExportedJoints(model)) if "pose" in model.streams else None
    return FusedFeatures(frames, StreamFusion(sizes, weights), maps=maps, poses=poses)


def _load_features(
    model: ExportedModel,
    frames: FrameCache,
    features: "FusedFeatures | ExportedMaps | Network",
    record: VideoRecord,
) -> tuple[NDArray[np.floating], NDArray[np.float64]]:
    """Return the features (N, F, h, w) of a video, and the seconds (N,) of its frames."""
    if isinstance(features, Network):
        sequence = load_sequence(record, width=model.vector_size)
        vectors = sequence.features
        if model.velocity:
            vectors = np.concatenate([vectors, np.diff(vectors, axis=0, prepend=vectors[:1])], axis=1)
        return features.run(vectors, (len(vectors), *model.feature_shape)), sequence.times
    times = frames.load(record).times
    if isinstance(features, FusedFeatures) or model.rounds_features:
        return features.load(record), times
    return np.concatenate(list(features.compute(frames.load(record).frames))), times
