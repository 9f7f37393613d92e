"""Write progress as LeRobot's frame signals: one row per frame of a robot data set, as Parquet.

Rows are ordered by `index`, `episode_index` and `frame_index` (int64); the signals follow (float64). The
metadata of the schema says what each signal means. `progress_sparse` and `progress_dense` are the columns by
which LeRobot's reward-aware behaviour cloning weighs frames. They are equal here: progress over the whole
task.

`time_only` is the share of the episode that has passed. It sees no pixels, and yet a rank correlation of
progress with time gives it a perfect score, so judge progress by other means (`docs/guides/progress.md`).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.applications.progress import ProgressReport
from cycleback.data.episodes import EpisodePlace
from cycleback.errors import DataError, require
from cycleback.files import atomic_file, check_output
from cycleback.provenance import provenance

FORMAT, VERSION = "lerobot.frame_signals", 1
PREFIX = "lerobot.reward_scoring"
SUFFIXES = (".parquet",)
MEANINGS = {  # description, direction, bounds, comparison scope
    "progress_sparse": (
        "share of the task that is done, by the clock of a reference",
        "higher",
        (0, 1),
        "task",
    ),
    "progress_dense": ("the same as progress_sparse", "higher", (0, 1), "task"),
    "confidence": ("probability that the match with the reference is right", "higher", (0, 1), "task"),
    "time_only": ("share of the episode that has passed; sees no pixels", "none", (0, 1), "episode"),
    "reward": ("0 where good episodes end, about -1 where they begin", "higher", None, "task"),
}


def write_frame_signals(
    path: Path | str,
    report: ProgressReport,
    places: Mapping[str, EpisodePlace],
    *,
    overwrite: bool = False,
) -> Path:
    """Write the progress of episodes.

    Args:
        path: a .parquet file.
        places: where the frames of each video are in the data set (`cycleback.data.episodes.read_places`).
    """
    path = check_output(path, overwrite=overwrite, suffixes=SUFFIXES)
    arrow: Any = require("pyarrow", extra="lerobot", purpose="writing frame signals")
    parquet: Any = require("pyarrow.parquet", extra="lerobot", purpose="writing frame signals")
    columns = list_frame_signals(report, places)
    signals = [name for name in columns if name in MEANINGS]
    episodes = sorted({int(episode) for episode in columns["episode_index"]})
    source = {"reference": report.reference, "encoder": report.videos.encoder or "unknown"}
    metadata = {
        "format": FORMAT,
        "schema_version": str(VERSION),
        "provenance": _format_json({"made_by": "cycleback progress", **source, **provenance()}),
        "descriptors": _format_json({name: _describe(name) for name in signals}),
        "episode_indices": _format_json(episodes),
    }
    fields = [
        arrow.field(name, arrow.from_numpy_dtype(v.dtype), nullable=False) for name, v in columns.items()
    ]
    schema = arrow.schema(fields, metadata={f"{PREFIX}.{key}": value for key, value in metadata.items()})
    table = arrow.table([arrow.array(values) for values in columns.values()], schema=schema)
    with atomic_file(path, overwrite=overwrite) as draft:
        parquet.write_table(table, draft)
    return path


def list_frame_signals(report: ProgressReport, places: Mapping[str, EpisodePlace]) -> dict[str, NDArray[Any]]:
    """Return the columns of the table (N,), N frames of all episodes, in order of their numbers."""
    for name, signal in report.signals.items():
        if name not in places:
            raise DataError(f"{name} is no episode of the data set, so its frames have no numbers there")
        if len(signal.progress) != places[name].num_frames:
            counts = f"{len(signal.progress)} frames, the data set {places[name].num_frames}"
            raise DataError(f"{name} has {counts}. Download or prepare the data set again.")
    names = sorted(report.signals, key=lambda name: places[name].first_index)
    parts: dict[str, list[NDArray[Any]]] = {}
    for name in names:
        place, signal = places[name], report.signals[name]
        frames = np.arange(place.num_frames, dtype=np.int64)
        progress = np.clip(signal.progress, 0, 1)
        columns = {
            "index": place.first_index + frames,
            "episode_index": np.full(place.num_frames, place.episode, dtype=np.int64),
            "frame_index": frames,
            "confidence": np.clip(signal.confidence, 0, 1),
            "progress_dense": progress,
            "progress_sparse": progress,
            "time_only": frames / max(place.num_frames - 1, 1),
        }
        if report.rewards:
            columns["reward"] = np.asarray(report.rewards[name], dtype=np.float64)
        for column, values in columns.items():
            parts.setdefault(column, []).append(values)
    return {column: np.concatenate(values) for column, values in parts.items()}


def _describe(name: str) -> dict[str, Any]:
    description, direction, bounds, scope = MEANINGS[name]
    return {
        "description": description,
        "direction": direction,
        "bounds": None if bounds is None else list(bounds),
        "unit": None,
        "comparison_scope": scope,
        "allow_nan": False,
    }


def _format_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
