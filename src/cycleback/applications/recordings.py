"""Write a Rerun recording in which several videos run on one clock: scrubbing shows corresponding frames.

    /videos/NAME                 the video file, and at each moment the frame of it that is shown
    /match/NAME/confidence       that the frame shows what the reference shows, in [0, 1]
    /match/NAME/distance         squared distance of the two embeddings
    /match/NAME/seconds          second of the video

All lie on the timeline `aligned`, the seconds of the reference. It needs the package rerun-sdk.

Shapes: T output frames, V videos, N frames of a video.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.alignment.confidence import sample_confidence
from cycleback.alignment.distances import matched_squared
from cycleback.applications.pace import Pace
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import VideoError, require
from cycleback.files import atomic_file, check_output

RECORDING_SUFFIXES = (".rrd",)
TIMELINE = "aligned"
PLAYABLE = (".mp4",)  # that Rerun decodes


def write_recording(
    path: Path | str,
    embeddings: EmbeddingSet,
    pace: Pace,
    videos: Sequence[Path],
    *,
    overwrite: bool = False,
) -> Path:
    """Write what `write_synced` would show as a recording; the videos are stored in it as they are.

    Args:
        path: ends in .rrd.
        embeddings: hold the videos of the pace.
        videos: the mp4 files of `pace.names`.
    """
    path = check_output(path, overwrite=overwrite, suffixes=RECORDING_SUFFIXES, inputs=videos)
    for video in videos:
        if video.suffix.lower() not in PLAYABLE:
            raise VideoError(f"{video}: a recording holds .mp4 only. Convert it, or write an .mp4 with sync")
    rerun, blueprint = require_rerun()
    shown = _number_frames(pace, embeddings)
    names = [rerun.escape_entity_path_part(name) for name in pace.names]
    views = [
        blueprint.Spatial2DView(origin=f"/videos/{name}", name=pace.names[k]) for k, name in enumerate(names)
    ]
    curves = blueprint.TimeSeriesView(
        origin="/match", contents=["/match/**", "- /match/*/seconds"], name="match"
    )
    layout = blueprint.Blueprint(blueprint.Vertical(blueprint.Horizontal(*views), curves, row_shares=[3, 1]))
    with atomic_file(path, overwrite=overwrite) as draft:
        stream = rerun.RecordingStream("cycleback")
        stream.save(str(draft), default_blueprint=layout)
        clock = rerun.TimeColumn(TIMELINE, duration=pace.seconds)
        for number, (name, video) in enumerate(zip(names, videos, strict=True)):
            _send_video(rerun, stream, clock, f"/videos/{name}", video, shown[number])
            rows, columns = (embeddings[pace.names[k]].astype(np.float64) for k in (0, number))
            own = [
                frames - embeddings.first_frame(pace.names[k])
                for k, frames in ((0, shown[0]), (number, shown[number]))
            ]
            values = {
                "confidence": sample_confidence(rows[own[0]], columns, own[1]),
                "distance": matched_squared(rows[own[0]], columns, own[1]),
                "seconds": pace.sources[number],
            }
            for what, curve in values.items():
                column = rerun.Scalars.columns(scalars=np.asarray(curve, dtype=np.float64))
                stream.send_columns(f"/match/{name}/{what}", indexes=[clock], columns=column)
        stream.flush()
        stream.disconnect()
    return path


def require_rerun() -> tuple[Any, Any]:
    """Import the SDK and its layouts, or say in one line how to get them."""
    purpose = "writing a recording"
    return require("rerun", extra="rerun", purpose=purpose), import_module("rerun.blueprint")


def _number_frames(pace: Pace, embeddings: EmbeddingSet) -> NDArray[np.int64]:
    """Return the frame of each video (V, T) that is shown at each output frame."""
    lasts = [embeddings.first_frame(name) + len(embeddings[name]) - 1 for name in pace.names]
    firsts = [embeddings.first_frame(name) for name in pace.names]
    frames = np.rint(pace.positions).astype(np.int64)
    return frames.clip(np.array(firsts)[:, None], np.array(lasts)[:, None])


def _send_video(
    rerun: Any, stream: Any, clock: Any, place: str, video: Path, frames: NDArray[np.int64]
) -> None:
    """Store a video, and which of its frames (T,) is shown when."""
    asset = rerun.AssetVideo(path=video)
    try:
        stamps = np.sort(np.asarray(asset.read_frame_timestamps_nanos(), dtype=np.int64))
    except Exception as error:  # the SDK raises RuntimeError and others for codecs that it does not know
        raise VideoError(f"{video}: Rerun cannot read it ({error}). Convert it to H.264 in .mp4") from error
    if frames.max() >= len(stamps):
        raise VideoError(f"{video} has {len(stamps)} frames for Rerun, {frames.max() + 1} expected")
    stream.log(place, asset, static=True)
    columns = rerun.VideoFrameReference.columns_nanos(stamps[frames])
    stream.send_columns(place, indexes=[clock], columns=columns)
