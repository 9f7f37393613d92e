"""What is known of Penn Action's videos: the .mat files of its authors, and the frame labels of others.

Letters: L labels of a video.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import ConfigError, DataError
from cycleback.prepare.paper import LEFT_OUT, PENN_ACTION


@dataclass(frozen=True)
class PennAnnotation:
    """One video: its four digits, action, frames and official split ("train", or "val" for the test set)."""

    video_id: str
    action: str
    num_frames: int
    split: str


@dataclass(frozen=True)
class LabelFile:
    """One .npy of frame labels, in a folder of its split."""

    path: Path
    split: str


def read_annotation(path: Path) -> PennAnnotation:
    """One labels/0001.mat (MATLAB version 5, as distributed)."""
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import MatReadError

    try:
        fields = loadmat(path, squeeze_me=True, variable_names=("action", "nframes", "train"))
        action, num_frames, train = str(fields["action"]), int(fields["nframes"]), int(fields["train"])
    except KeyError as error:
        found = ", ".join(name for name, *_ in whosmat(path)) or "nothing"
        raise DataError(
            f"{path}: not an annotation of Penn Action: no {error} in it, only {found}."
        ) from error
    except (OSError, ValueError, TypeError, NotImplementedError, MatReadError) as error:
        raise DataError(f"cannot read {path} as a MATLAB 5 file: {error}. Download it again.") from error
    return PennAnnotation(path.stem, action, num_frames, split_name(train))


def split_name(train: int) -> str:
    """Penn Action writes 1 for its training set and -1 for its test set, which the paper calls val."""
    return "train" if train == 1 else "val"


def find_label_files(folder: Path) -> dict[str, LabelFile]:
    """Video id → its frame labels, in a folder laid out as split/action/0001*.npy."""
    if not folder.is_dir():
        raise DataError(
            f"no folder of frame labels at {folder}. Expected train/squat/0001.npy and the like in it."
        )
    files = {path.name[:4]: LabelFile(path, path.parts[-3]) for path in sorted(folder.glob("*/*/*.npy"))}
    if not files:
        raise DataError(f"no frame labels in {folder}. Expected files such as train/squat/0001.npy.")
    return files


def read_frame_labels(path: Path) -> NDArray[np.generic]:
    """The labels (L,) of one file; pickled objects are not read."""
    try:
        labels = np.asarray(np.load(path, allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"cannot read the labels {path}: {error}. Save one whole number a frame.") from error
    if labels.ndim != 1:
        raise DataError(f"{path}: labels of shape {labels.shape}, expected one whole number a frame.")
    return labels


def check_actions(actions: tuple[str, ...]) -> None:
    """Refuse the name of an action that Penn Action does not have."""
    known = (*PENN_ACTION, *LEFT_OUT)
    for action in actions:
        if action not in known:
            raise ConfigError(f"Penn Action has no action {action!r}. Its actions: {', '.join(known)}.")
