"""Read Penn Action: its images, or its poses as sequences of 26 features per frame.

The images come as the authors distribute them, frames/0001/000001.jpg with labels/0001.mat. The poses come
from penn_action_poses.npz, which holds the annotations of all 2,326 videos, one after the other.
The phase labels of the paper are not part of either. Per-frame label files that later work shares, laid out
as split/action/0001.npy, are used if the user has them.

Letters: S frames of all videos, N frames of one, L labels of one, V videos; J = 13 joints: head, then left
and right shoulder, elbow, wrist, hip, knee, ankle.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.arrays import open_npz
from cycleback.data.sources import image_paths
from cycleback.errors import ConfigError, DataError, did_you_mean
from cycleback.prepare.phases import LEFT_OUT, PENN_ACTION, compare_counts, find_events
from cycleback.prepare.writer import DatasetWriter, place_file
from cycleback.progress import Counter
from cycleback.reading import not_a_file

ARCHIVE = "penn_action_poses.npz"
NEEDED = ("xy", "visibility", "bbox", "num_frames", "action", "train", "view", "video_id")
TWINS = np.array([0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11])  # the same joint on the other side
SHOULDERS, HIPS = [1, 2], [7, 8]
TORSO_PER_BOX = 0.26  # median over Penn Action of torso length / largest side of the box

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PennAnnotation:
    """One video: its four digits, action, frames and official split ("train", or "val" for the test set)."""

    video_id: str
    action: str
    num_frames: int
    split: str

    @property
    def name(self) -> str:
        """Name of the video in the data set folder."""
        return f"{self.action}/{self.video_id}"


def prepare_penn_action(
    source: Path,
    writer: DatasetWriter,
    *,
    progress: Counter,
    actions: tuple[str, ...] = tuple(PENN_ACTION),
    labels: Path | str | None = None,
    link: bool = True,
) -> list[str]:
    """Write each video as a folder of its images under its action, and list the missing videos.

    The official training set becomes the split "train", the official test set "val". The images play at the
    default 30 frames per second; the data set does not state its rate.

    Args:
        source: the folder that holds `frames` and `labels`, or the one above its `Penn_Action`.
        actions: actions to write; by default the paper's thirteen of fifteen.
        labels: folder of frame labels, split/action/0001.npy; without it the videos have no key events.
        link: True for hard links (else symbolic links, else copies) to the images, False for copies.
    """
    check_actions(actions)
    root = source / "Penn_Action" if (source / "Penn_Action").is_dir() else source
    files = find_label_files(labels)
    annotations = _find_annotations(root)
    for done, path in enumerate(annotations, start=1):
        annotation = read_annotation(path)
        if annotation.action in actions:
            _write_video(root / "frames" / annotation.video_id, annotation, files, writer, link=link)
        progress(done, len(annotations))
    return compare_counts(writer, PENN_ACTION, actions)


def check_actions(actions: tuple[str, ...]) -> None:
    """Refuse the name of an action that Penn Action does not have."""
    known = (*PENN_ACTION, *LEFT_OUT)
    for action in actions:
        if action not in known:
            raise ConfigError(f"Penn Action has no action {action!r}. {did_you_mean(action, known)}")


def _find_annotations(root: Path) -> list[Path]:
    for folder in ("frames", "labels"):
        if not (root / folder).is_dir():
            raise DataError(
                f"no folder {folder!r} in {root}. Expected frames/0001/000001.jpg and labels/0001.mat in it."
            )
    annotations = sorted((root / "labels").glob("*.mat"))
    if not annotations:
        raise DataError(f"no annotations in {root / 'labels'}. Expected files such as 0001.mat.")
    return annotations


def read_annotation(path: Path) -> PennAnnotation:
    """Read one labels/0001.mat (MATLAB version 5, as distributed)."""
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import MatReadError

    try:
        fields = loadmat(path, squeeze_me=True, variable_names=("action", "nframes", "train"))
        action, num_frames, train = str(fields["action"]), int(fields["nframes"]), int(fields["train"])
    except KeyError as error:
        names = ", ".join(name for name, *_ in whosmat(path)) or "nothing"
        message = f"{path}: not an annotation of Penn Action: no {error} in it, only {names}."
        raise DataError(message) from error
    except (OSError, ValueError, TypeError, NotImplementedError, MatReadError) as error:
        raise DataError(f"cannot read {path} as a MATLAB 5 file: {error}. Download it again.") from error
    return PennAnnotation(path.stem, action, num_frames, _split_name(train))


def _split_name(train: int) -> str:
    """Name the split: Penn Action writes 1 for its training set and -1 for its test set, the paper's val."""
    return "train" if train == 1 else "val"


def _write_video(
    frames: Path,
    annotation: PennAnnotation,
    files: Mapping[str, Path] | None,
    writer: DatasetWriter,
    *,
    link: bool,
) -> None:
    images = image_paths(frames) if frames.is_dir() else []
    if len(images) < 2:
        case = f"{annotation.name}: {len(images)} in {frames}"
        writer.warn("videos left out, because they have no frames", case)
        return
    if len(images) != annotation.num_frames:
        case = f"{annotation.name}: {len(images)} images, {annotation.num_frames} annotated"
        writer.warn("videos whose number of images differs from their annotation", case)
    events = _find_penn_events(annotation, len(images), files, writer)
    folder = writer.add(annotation.name, split=annotation.split, events=events)
    folder.mkdir()
    for image in images:
        place_file(image, folder / image.name, link=link)


def find_label_files(folder: Path | str | None) -> dict[str, Path] | None:
    """Map video ids to their frame labels, laid out as split/action/0001*.npy; None without a folder."""
    if folder is None:
        return None
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(
            f"no folder of frame labels at {folder}. Expected files such as train/squat/0001.npy in it."
        )
    files = {path.name[:4]: path for path in sorted(folder.glob("*/*/*.npy"))}
    if not files:
        raise DataError(f"no frame labels in {folder}. Expected files such as train/squat/0001.npy.")
    return files


def _find_penn_events(
    annotation: PennAnnotation, num_frames: int, files: Mapping[str, Path] | None, writer: DatasetWriter
) -> dict[str, int]:
    """Return the key events of a video; {} without label files, or if its action has no events."""
    events = PENN_ACTION[annotation.action].events if annotation.action in PENN_ACTION else ()
    if files is None or not events:
        return {}
    path = files.get(annotation.video_id)
    if path is not None and path.parts[-3] != annotation.split:
        case = f"{annotation.name}: {annotation.split}, its label file is in {path.parts[-3]}"
        writer.warn("videos whose label file is in another split; the official split is used", case)
    labels = None if path is None else read_frame_labels(path)
    return find_events(annotation.name, labels, num_frames=num_frames, events=events, writer=writer)


def read_frame_labels(path: Path) -> NDArray[np.generic]:
    """Read the labels (L,) of one file; pickled objects are refused."""
    try:
        if reason := not_a_file(path):
            raise ValueError(reason)
        labels = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except Exception as error:  # numpy raises half a dozen types for a damaged file
        raise DataError(f"cannot read the labels {path}: {error}. Save one integer per frame.") from error
    if labels.ndim != 1:
        raise DataError(f"{path}: labels of shape {labels.shape}, expected one integer per frame.")
    return labels


def prepare_penn_poses(
    source: Path,
    writer: DatasetWriter,
    *,
    progress: Counter,
    actions: tuple[str, ...] = tuple(PENN_ACTION),
    labels: Path | str | None = None,
    center: str = "hips",
    scale: str = "box",
    mirror: bool = False,
    fps: float = 30.0,
) -> list[str]:
    """Write each video as an .npz with `features` (N, 26) float32 and `fps`, and list the missing videos.

    Args:
        source: the archive, or the folder that contains it.
        actions, labels: see `prepare_penn_action`.
        center, scale: see `pose_features`.
        mirror: mirror videos seen from the right, so that all are seen from the left.
        fps: frames per second. The annotations do not state the rate; 30 is an assumption.
    """
    check_actions(actions)
    for option, value, known in (("center", center, ("hips", "box")), ("scale", scale, ("box", "torso"))):
        if value not in known:
            raise ConfigError(f"{option} must be {known[0]!r} or {known[1]!r}, got {value!r}.")
    files = find_label_files(labels)
    arrays = _read_poses(source)
    ends = np.cumsum(arrays["num_frames"])  # (V,)
    for index, end in enumerate(ends):
        annotation = PennAnnotation(
            video_id=str(arrays["video_id"][index]),
            action=str(arrays["action"][index]),
            num_frames=int(arrays["num_frames"][index]),
            split=_split_name(int(arrays["train"][index])),
        )
        if annotation.action in actions:
            rows = slice(end - annotation.num_frames, end)
            xy, boxes = (arrays[name][rows].astype(np.float64) for name in ("xy", "bbox"))
            visible = arrays["visibility"][rows].astype(bool)
            if mirror and arrays["view"][index] == "right":
                xy, visible, boxes = mirror_poses(xy, visible, boxes)
            if visible.any():
                events = _find_penn_events(annotation, annotation.num_frames, files, writer)
                target = writer.add(annotation.name, split=annotation.split, events=events)
                features = pose_features(xy, visible, boxes, center=center, scale=scale)
                np.savez(target.with_suffix(".npz"), features=features, fps=np.float64(fps))
            else:
                writer.warn("videos left out, because no joint of any frame is visible", annotation.name)
        progress(index + 1, len(ends))
    return compare_counts(writer, PENN_ACTION, actions)


def _cannot_read(path: Path, reason: str) -> DataError:
    return DataError(f"cannot read {path}: {reason}. Expected {ARCHIVE}, or the folder that contains it.")


def _read_poses(source: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of the archive: `xy` (S, J, 2), `visibility` (S, J), `bbox` (S, 4), the others (V,)."""
    path = source / ARCHIVE if source.is_dir() else source
    with open_npz(path, explain=partial(_cannot_read, path)) as archive:
        missing = [name for name in NEEDED if name not in archive.headers]
        if missing:
            known = ", ".join(name for name in archive.headers if name in NEEDED) or "others"
            raise DataError(f"{path}: no array {missing[0]!r}, only {known}; not Penn Action's poses.")
        arrays = {name: archive.read(name, "fiubU") for name in NEEDED}
    lengths = arrays["num_frames"]
    if lengths.dtype.kind not in "iu" or (lengths < 0).any():
        raise DataError(f"{path}: num_frames must count the frames of each video, got {lengths.dtype}.")
    frames = int(lengths.sum())
    shapes = {"xy": (frames, 13, 2), "visibility": (frames, 13), "bbox": (frames, 4)}
    shapes |= {name: (len(lengths),) for name in ("action", "train", "view", "video_id", "num_frames")}
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise DataError(f"{path}: {name} is {arrays[name].shape}, expected {shape} by num_frames.")
        if arrays[name].dtype.kind == "U" and name in ("xy", "visibility", "bbox", "train"):
            raise DataError(f"{path}: {name} must hold numbers, got {arrays[name].dtype}.")
    return arrays


def pose_features(
    xy: Array, visible: NDArray[np.bool_], boxes: Array, *, center: str = "hips", scale: str = "box"
) -> NDArray[np.float32]:
    """Return features (N, 26) of one video: x and y of each joint, relative to the centre and body size.

    A hidden joint is interpolated between the frames that show it. A joint that no frame shows takes the
    place of its twin, else of the centre.

    Args:
        xy: (N, J, 2) pixels.
        visible: (N, J); at least one joint of one frame is visible.
        boxes: (N, 4) left, top, right, bottom of the person; empty and NaN boxes are interpolated.
        center: "hips", the mean of the hips of each frame (the box if hips are never seen), or "box".
        scale: "box", the largest side of the box in the video, or "torso", the median distance from shoulders
            to hips. One number per video, so that a squat stays small.
    """
    joints = fill_hidden(xy, visible)  # (N, J, 2)
    boxes = fill_boxes(boxes, xy, visible)  # (N, 4)
    centers = (boxes[:, :2] + boxes[:, 2:]) / 2  # (N, 2)
    hips = joints[:, HIPS].mean(axis=1)  # (N, 2)
    if center == "hips" and np.isfinite(hips).all():
        centers = hips
    size = float((boxes[:, 2:] - boxes[:, :2]).max())
    if scale == "torso":
        size = _torso_length(joints, default=size * TORSO_PER_BOX)
    features = (joints - centers[:, None]) / size
    return np.nan_to_num(features, nan=0.0).reshape(len(xy), -1).astype(np.float32)


def fill_hidden(xy: Array, visible: NDArray[np.bool_]) -> Array:
    """Interpolate hidden joints in time: (N, J, 2), NaN for joints that are never seen, nor their twins."""
    frames = np.arange(len(xy))
    joints = np.full(xy.shape, np.nan)
    for joint in np.flatnonzero(visible.any(axis=0)):
        seen = visible[:, joint]
        for axis in (0, 1):
            joints[:, joint, axis] = np.interp(frames, frames[seen], xy[seen, joint, axis])
    return np.where(np.isnan(joints), joints[:, TWINS], joints)


def fill_boxes(boxes: Array, xy: Array, visible: NDArray[np.bool_]) -> Array:
    """Interpolate bad boxes (N, 4) in time; if none is good, use the extent of the visible joints."""
    with np.errstate(invalid="ignore"):
        good = np.isfinite(boxes).all(axis=1) & (boxes[:, 2:] - boxes[:, :2] > 1).all(axis=1)  # (N,)
    if not good.any():
        points = xy[visible]  # (visible joints of all frames, 2)
        low, high = points.min(axis=0), points.max(axis=0)
        return np.tile(np.concatenate([low, np.maximum(high, low + 1)]), (len(boxes), 1))
    frames = np.arange(len(boxes))
    columns = [np.interp(frames, frames[good], boxes[good, side]) for side in range(4)]
    return np.stack(columns, axis=1)


def _torso_length(joints: Array, *, default: float) -> float:
    """Return the median distance from mid-shoulders to mid-hips; `default` if it is unknown."""
    length = np.linalg.norm(joints[:, SHOULDERS].mean(axis=1) - joints[:, HIPS].mean(axis=1), axis=-1)  # (N,)
    middle = float(np.median(length))
    return middle if middle > default / 4 else default  # also False for NaN


def mirror_poses(
    xy: Array, visible: NDArray[np.bool_], boxes: Array
) -> tuple[Array, NDArray[np.bool_], Array]:
    """Mirror the poses: negate x and swap left and right joints."""
    return xy[:, TWINS] * (-1, 1), visible[:, TWINS], boxes[:, [2, 1, 0, 3]] * (-1, 1, -1, 1)
