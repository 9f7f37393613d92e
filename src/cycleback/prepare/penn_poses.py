"""Penn Action's poses alone (penn_action_poses.npz): one sequence of 26 features a frame for each video.

The archive holds the annotations of all 2,326 videos, one behind the other. Letters: S frames of all videos,
N frames of one, V videos, J = 13 joints.
"""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import ConfigError, DataError
from cycleback.prepare.paper import PENN_ACTION
from cycleback.prepare.penn_action import compare_counts, frame_label_events
from cycleback.prepare.penn_annotations import PennAnnotation, check_actions, find_label_files, split_name
from cycleback.prepare.poses import mirror_poses, pose_features
from cycleback.prepare.writer import DatasetWriter

ARCHIVE = "penn_action_poses.npz"
NEEDED = ("xy", "visibility", "bbox", "num_frames", "action", "train", "view", "video_id")


def prepare_penn_poses(
    source: Path,
    writer: DatasetWriter,
    *,
    progress: Callable[[int, int], None],
    actions: tuple[str, ...] = tuple(PENN_ACTION),
    labels: Path | str | None = None,
    center: str = "hips",
    scale: str = "box",
    mirror: bool = False,
    fps: float = 30.0,
) -> list[str]:
    """Write each video as an .npz with `features` (N, 26) float32 and `fps`; returns what is missing.

    Args:
        source: The archive, or the folder it lies in.
        writer: Takes the sequences, named as `penn-action` names the videos.
        progress: Called with (videos done, videos).
        actions: Which actions; the default is the paper's thirteen of fifteen.
        labels: Folder of frame labels, split/action/0001.npy; without it the sequences have no key events.
        center: "hips" or "box", see `pose_features`.
        scale: "box" or "torso", see `pose_features`.
        mirror: Turn videos seen from the right so that they look as seen from the left.
        fps: Frames a second. The annotations do not say the rate; 30 is an assumption.
    """
    check_actions(actions)
    _check_choices(center=center, scale=scale)
    files = None if labels is None else find_label_files(Path(labels))
    arrays = read_poses(source)
    ends = np.cumsum(arrays["num_frames"])  # (V,)
    for index, end in enumerate(ends):
        annotation = _annotation(arrays, index)
        if annotation.action in actions:
            rows = slice(end - annotation.num_frames, end)
            xy, visible, boxes = _pose(arrays, rows, mirrored=mirror and arrays["view"][index] == "right")
            if visible.any():
                events = frame_label_events(annotation, annotation.num_frames, files, writer)
                target = writer.add(_name(annotation), split=annotation.split, events=events)
                features = pose_features(xy, visible, boxes, center=center, scale=scale)
                np.savez(target.with_suffix(".npz"), features=features, fps=np.float64(fps))
            else:
                writer.warnings.add(
                    "videos left out, since no joint of any frame is visible", _name(annotation)
                )
        progress(index + 1, len(ends))
    return compare_counts(writer, actions)


def read_poses(source: Path) -> dict[str, NDArray[Any]]:
    """The arrays of the archive: `xy` (S, J, 2), `visibility` (S, J), `bbox` (S, 4), the others (V,)."""
    path = source / ARCHIVE if source.is_dir() else source
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files if name in NEEDED}
    except (OSError, ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise DataError(
            f"cannot read {path}: {error}. Expected {ARCHIVE}, or the folder it lies in."
        ) from error
    missing = [name for name in NEEDED if name not in arrays]
    if missing:
        raise DataError(
            f"{path}: no array {missing[0]!r}, only {', '.join(arrays) or 'others'}; not Penn Action's poses."
        )
    frames = int(arrays["num_frames"].sum())
    for name, shape in (("xy", (frames, 13, 2)), ("visibility", (frames, 13)), ("bbox", (frames, 4))):
        if arrays[name].shape != shape:
            raise DataError(f"{path}: {name} is {arrays[name].shape}, expected {shape} by num_frames.")
    return arrays


def _annotation(arrays: dict[str, NDArray[Any]], index: int) -> PennAnnotation:
    return PennAnnotation(
        video_id=str(arrays["video_id"][index]),
        action=str(arrays["action"][index]),
        num_frames=int(arrays["num_frames"][index]),
        split=split_name(int(arrays["train"][index])),
    )


def _name(annotation: PennAnnotation) -> str:
    return f"{annotation.action}/{annotation.video_id}"


def _pose(
    arrays: dict[str, NDArray[Any]], rows: slice, *, mirrored: bool
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Joints (N, J, 2), whether each is visible (N, J), and boxes (N, 4) of one video."""
    xy, boxes = arrays["xy"][rows].astype(np.float64), arrays["bbox"][rows].astype(np.float64)
    visible = arrays["visibility"][rows].astype(bool)
    return mirror_poses(xy, visible, boxes) if mirrored else (xy, visible, boxes)


def _check_choices(*, center: str, scale: str) -> None:
    for option, value, known in (("center", center, ("hips", "box")), ("scale", scale, ("box", "torso"))):
        if value not in known:
            raise ConfigError(f"{option} must be {known[0]!r} or {known[1]!r}, got {value!r}.")
