"""Read Penn Action as its authors distribute it: frames/0001/000001.jpg, labels/0001.mat.

The phase labels of the paper are not part of it. Per-frame label files that later work shares, laid out as
split/action/0001.npy, are used if the user has them. Letters: L labels of a video.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cycleback.data.sources import image_paths
from cycleback.errors import ConfigError, DataError, did_you_mean
from cycleback.prepare.phases import LEFT_OUT, PENN_ACTION, compare_counts, find_events
from cycleback.prepare.writer import DatasetWriter, place_file
from cycleback.progress import Counter


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
    return PennAnnotation(path.stem, action, num_frames, split_name(train))


def split_name(train: int) -> str:
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
    events = find_penn_events(annotation, len(images), files, writer)
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


def find_penn_events(
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
        labels = np.asarray(np.load(path, allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"cannot read the labels {path}: {error}. Save one integer per frame.") from error
    if labels.ndim != 1:
        raise DataError(f"{path}: labels of shape {labels.shape}, expected one integer per frame.")
    return labels
