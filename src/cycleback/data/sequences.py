"""Sequences that are not pixels: poses or features of each frame, one .npz a video.

Letters: N frames, F features of a frame.
"""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cycleback.data.image_folder import DEFAULT_FPS
from cycleback.data.records import VideoRecord
from cycleback.errors import DataError


@dataclass(frozen=True)
class FeatureSequence:
    """`features` float32 (N, F), and `times` float64 (N,), the presentation time of each frame in seconds."""

    features: NDArray[np.float32]
    times: NDArray[np.float64]


def load_sequence(record: VideoRecord) -> FeatureSequence:
    """The features of a record of kind "sequence".

    The .npz holds an array `features` (N, F), or only one array of two dimensions whatever its name; and
    optionally `times` (N,) in seconds or `fps`, one number. Without either, 30 frames a second.
    """
    if record.kind != "sequence":
        raise ValueError(f"{record.name} is of kind {record.kind!r}, not a sequence")
    arrays = _read_arrays(record.path)
    features = _features(record.path, arrays)
    return FeatureSequence(features.astype(np.float32), _times(record.path, arrays, len(features)))


def _read_arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"cannot read {path}: {error}. Write it with numpy.savez(path, features=array)."
        ) from error


def _features(path: Path, arrays: dict[str, NDArray[np.generic]]) -> NDArray[np.generic]:
    """The array of features (N, F), checked."""
    shapes = {name: array.shape for name, array in arrays.items()}
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    if "features" not in arrays and len(tables) != 1:
        raise DataError(
            f"{path}: no array 'features', and {len(tables)} arrays of two dimensions among {shapes}. "
            "Name the one of shape (frames, features) 'features'."
        )
    name = "features" if "features" in arrays else tables[0]
    features = arrays[name]
    if features.ndim != 2 or 0 in features.shape or features.dtype.kind not in "fiub":
        raise DataError(
            f"{path}: {name!r} must be numbers of shape (frames, features), "
            f"got {features.dtype} {features.shape}."
        )
    return features


def _times(path: Path, arrays: dict[str, NDArray[np.generic]], num_frames: int) -> NDArray[np.float64]:
    """Presentation times (N,) from `times`, `fps` or the default rate."""
    if "times" in arrays:
        times = arrays["times"].astype(np.float64)
        if times.shape != (num_frames,) or not (np.diff(times) > 0).all():
            raise DataError(
                f"{path}: 'times' must be {num_frames} increasing seconds, got shape {times.shape}."
            )
        return times
    fps = arrays["fps"].astype(np.float64).reshape(-1) if "fps" in arrays else np.array([DEFAULT_FPS])
    if fps.shape != (1,) or not 0 < fps[0] < np.inf:
        raise DataError(f"{path}: 'fps' must be one number above 0, got {fps}.")
    return np.arange(num_frames) / float(fps[0])
