"""Read GolfDB (McNally et al., CVPR workshops 2019): golf swings with eight key events.

It comes as a table labels.csv with videos/ID.mp4, or as the authors' golfDB.mat with videos_160/ID.mp4.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cycleback.errors import ConfigError, DataError
from cycleback.prepare.writer import DatasetWriter, place_file
from cycleback.progress import Counter
from cycleback.tables import read_table
from cycleback.video import probe

EVENTS = (
    "address",
    "toe_up",
    "mid_backswing",
    "top",
    "mid_downswing",
    "impact",
    "mid_follow_through",
    "finish",
)
# Fields of golfDB.mat in order: id, youtube_id, player, sex, club, view, slow, events, bbox, split
NUM_FIELDS, ID, PLAYER, SLOW, FRAMES, FOLD = 10, 0, 2, 6, 7, 9


@dataclass(frozen=True)
class _Swing:
    name: str
    split: str
    events: dict[str, int]
    person: str
    source: str  # for messages


def prepare_golfdb(
    source: Path, writer: DatasetWriter, *, progress: Counter, fold: int = 1, link: bool = True
) -> list[str]:
    """Write each swing as its original video file, and return the videos that are missing.

    The table's `role` is the split (train, val, val_slow). golfDB.mat has four folds for cross-validation:
    one becomes "val", the others "train"; slow-motion swings go to "val_slow" and "train_slow", so that
    speeds are not mixed.

    Args:
        source: a folder with labels.csv and videos/, or with golfDB.mat and videos_160/ (or those in data/).
        fold: 1 to 4, the fold of golfDB.mat held out.
        link: True for hard links (else symbolic links, else copies) to the videos, False for copies.
    """
    if fold not in (1, 2, 3, 4):
        raise ConfigError(f"fold must be 1, 2, 3 or 4, got {fold!r}.")
    swings, videos = _find_swings(source, fold)
    absent: list[str] = []
    for done, swing in enumerate(swings, start=1):
        path = videos / f"{swing.name}.mp4"
        if path.is_file():
            num_frames = probe(path).num_frames
            for event, frame in swing.events.items():
                if not 0 <= frame < num_frames:
                    where = f"{event} is at frame {frame}, but {path.name} ends at frame {num_frames - 1}"
                    raise DataError(f"{swing.source}: {where}.")
            target = writer.add(swing.name, split=swing.split, events=swing.events, person=swing.person)
            place_file(path, target.with_name(f"{target.name}.mp4"), link=link)
        else:
            absent.append(path.name)
        progress(done, len(swings))
    return [f"{len(absent)} of {len(swings)} videos in {videos} (first: {absent[0]})"] if absent else []


def _find_swings(source: Path, fold: int) -> tuple[list[_Swing], Path]:
    """Return the annotated swings, and the folder of their videos."""
    if (source / "labels.csv").is_file():
        return list(_read_table_swings(source / "labels.csv")), _find_video_folder(source, ("videos",))
    for folder in (source, source / "data"):
        if (folder / "golfDB.mat").is_file():
            names = ("videos_160", "data/videos_160")
            return list(_read_matlab_swings(folder / "golfDB.mat", fold)), _find_video_folder(source, names)
    raise DataError(
        f"no GolfDB in {source}: expected labels.csv with videos/, or golfDB.mat with videos_160/."
    )


def _find_video_folder(source: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (source / name).is_dir():
            return source / name
    raise DataError(
        f"no folder {names[0]!r} in {source}, so the annotations have no videos. Put the .mp4 files there."
    )


def _read_table_swings(path: Path) -> Iterator[_Swing]:
    for line, row in read_table(path, ("id", "role", *EVENTS)):
        source = f"{path}, line {line}"
        events = {event: _parse_frame(row[event], event, source) for event in EVENTS if row[event]}
        yield _Swing(row["id"], row["role"], events, row.get("player", ""), source)


def _parse_frame(text: str, event: str, source: str) -> int:
    if not text.isdecimal():
        raise DataError(f"{source}: {event} is {text!r}, expected a 0-based frame.")
    return int(text)


def _read_matlab_swings(path: Path, fold: int) -> Iterator[_Swing]:
    """Read golfDB.mat: each swing has ten frames of the whole video (clip start, events, clip end)."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        rows = np.atleast_1d(loadmat(path, squeeze_me=True)["golfDB"])
    except (OSError, ValueError, TypeError, KeyError, NotImplementedError, MatReadError) as error:
        raise DataError(f"cannot read {path} as GolfDB's annotations: {error}. Download it again.") from error
    for number, row in enumerate(rows):
        frames = np.asarray(row[FRAMES]) if rows.dtype.names and len(row) == NUM_FIELDS else np.empty(0)
        if frames.shape != (len(EVENTS) + 2,):
            raise DataError(
                f"{path}, row {number}: expected {NUM_FIELDS} fields, the eighth 10 frames, got {row!r:.80}."
            )
        split = "val" if int(row[FOLD]) == fold else "train"
        events = {event: int(frame - frames[0]) for event, frame in zip(EVENTS, frames[1:-1], strict=True)}
        split += "_slow" * bool(row[SLOW])
        yield _Swing(str(int(row[ID])), split, events, str(row[PLAYER]), f"{path}, row {number}")
