"""A folder on disk → `Dataset`: finds the videos, their actions, labels and split."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from cycleback.data.image_folder import is_frame
from cycleback.data.labels import LABELS_FILE, event_order, events_of, name_labels, read_labels
from cycleback.data.names import IMAGE_SUFFIXES, SEQUENCE_SUFFIX, NameIndex, natural_key
from cycleback.data.records import Dataset, Kind, Label, VideoRecord
from cycleback.data.split import SPLIT_FOLDERS, SPLITS_FILE, read_splits, split_dataset
from cycleback.errors import DataError
from cycleback.tables import read_table
from cycleback.video import VIDEO_SUFFIXES

logger = logging.getLogger(__name__)
PEOPLE_FILE = "people.csv"


def read_dataset(
    directory: Path | str,
    *,
    labels: Path | str | None = None,
    split: Path | str | None = None,
    held_out: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """Read a folder of videos. Nothing is decoded; `check_dataset` looks inside.

    **What is a video.** A video file; an .npz sequence; or a folder of at least two numbered images (.jpg,
    .png) with no other video in it or below. Images beside videos, hidden files and all other files are
    ignored. Two things of one name (a.mp4 and a.mov, or a.mp4 and a folder of images a/) are an error.

    **Action** = the sub-folder a video lies in, at any depth: `cup/a.mp4` has action "cup", `a.mp4` has "".
    Both at once are allowed; the videos at the top are then an action of their own.

    **Split**, the first that is there: the file `split`; splits.csv (`video,split`; a video it does not list
    belongs to no split); top folders `train` and `val` (or `valid`, `validation`, `test`), with action
    folders inside or not, which then must hold every video; else `split_dataset` with `held_out` and `seed`.

    **People**: people.csv (`video,person`) says who acts. A split that is drawn keeps a person on one side.

    **Labels**: the file `labels`, else labels.csv of the folder and of its sub-folders. Rows that fit no
    video are kept in `Dataset.labels`, logged, and listed by `check_dataset`.

    Raises:
        DataError: no such folder, nothing in it, two videos of one name, or a file that cannot be understood.
    """
    root = Path(directory)
    found = _find_videos(root)
    in_folders = _split_folders(root, found)
    records = tuple(_record(root, video, in_folders) for video in found)
    index = NameIndex(record.name for record in records)
    rows = _read_label_files(root, labels, index)
    records = _with_people(_with_events(records, rows), index, root / PEOPLE_FILE)
    records, given = _with_split(records, index, _splits_file(root, split), held_out=held_out, seed=seed)
    return Dataset(
        root=root, records=records, event_names=event_order(records), labels=rows, given_split=given
    )


@dataclass(frozen=True)
class _Found:
    path: Path
    kind: Kind
    name: str  # below the root, without suffix


def _find_videos(root: Path) -> list[_Found]:
    """Every video below `root` in natural order of names."""
    if not root.is_dir():
        hint = "is a file; give the folder it lies in" if root.exists() else "does not exist"
        raise DataError(f"no data set at {root}: it {hint}.")
    found = sorted(_walk(root, root, set()), key=lambda video: natural_key(video.name))
    if not found:
        raise DataError(_nothing_found(root))
    paths: dict[str, Path] = {}
    for video in found:
        if video.name in paths:
            first, second = (path.relative_to(root).as_posix() for path in (paths[video.name], video.path))
            raise DataError(
                f"{root}: {first} and {second} have one name, {video.name!r}. Rename or remove one."
            )
        paths[video.name] = video.path
    return found


def _walk(root: Path, folder: Path, seen: set[Path]) -> Iterator[_Found]:
    """Videos in `folder` and below; a folder that links lead to twice is visited once."""
    if folder.resolve() in seen:
        return
    seen.add(folder.resolve())
    inside = [path for path in _listing(folder) if not path.name.startswith(".")]
    files = [
        path for path in inside if not path.is_dir()
    ]  # also a dangling link: better unreadable than unseen
    videos = [video for path in files if (video := _file(root, path)) is not None]
    for path in inside:
        if path.is_dir():
            videos.extend(_walk(root, path, seen))
    if folder != root and not videos and sum(is_frame(path) for path in files) > 1:
        videos = [_Found(folder, "frames", folder.relative_to(root).as_posix())]
    yield from videos


def _listing(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise DataError(f"cannot look into {folder}: {error.strerror}.") from error


def _file(root: Path, path: Path) -> _Found | None:
    """The video in a file, if it is one."""
    suffix = path.suffix.lower()
    kind: Kind = "video" if suffix in VIDEO_SUFFIXES else "sequence"
    if kind == "sequence" and suffix != SEQUENCE_SUFFIX:
        return None
    return _Found(path, kind, path.relative_to(root).as_posix()[: -len(suffix)])


def _nothing_found(root: Path) -> str:
    videos, images = " ".join(sorted(VIDEO_SUFFIXES)), " ".join(sorted(IMAGE_SUFFIXES))
    if sum(is_frame(path) for path in _listing(root) if path.is_file()) > 1:
        return f"{root} is itself a folder of images, that is one video. Give the folder above it."
    return (
        f"no videos in {root}. Looked for files {videos}, folders of numbered images {images}, "
        f"and sequences {SEQUENCE_SUFFIX}, there and in its sub-folders."
    )


def _split_folders(root: Path, found: list[_Found]) -> bool:
    """Whether the top folders are a split; a video beside them would belong nowhere and is an error."""
    tops = {video.name: PurePosixPath(video.name).parts[0].lower() for video in found if "/" in video.name}
    if "train" not in tops.values():
        return False
    for video in found:
        if tops.get(video.name) not in SPLIT_FOLDERS:
            where = video.path.relative_to(root).as_posix()
            raise DataError(f"{root}: {where} lies beside the split folder train. Move it into train or val.")
    return True


def _record(root: Path, video: _Found, in_split_folders: bool) -> VideoRecord:
    folders = PurePosixPath(video.name).parts[:-1]
    split = SPLIT_FOLDERS[folders[0].lower()] if in_split_folders else None
    action = "/".join(folders[1:] if in_split_folders else folders)
    return VideoRecord(name=video.name, path=video.path, kind=video.kind, action=action, split=split)


def _read_label_files(root: Path, labels: Path | str | None, index: NameIndex) -> tuple[Label, ...]:
    """Rows of `labels`, or of every labels.csv beside or above a video, with the names of records."""
    if labels is not None:
        return _named(read_labels(labels), index)
    folders = {PurePosixPath(name).parent for name in index.names}
    folders |= {parent for folder in folders for parent in folder.parents}
    rows: list[Label] = []
    for folder in sorted(folders):
        path = root / folder / LABELS_FILE
        if path.is_file():
            below = "" if folder == PurePosixPath(".") else f"{folder}/"
            found = read_labels(path)
            rows += [replace(row, video=index.match(below + row.video) or row.video) for row in found]
    return _named(tuple(rows), index)


def _named(rows: tuple[Label, ...], index: NameIndex) -> tuple[Label, ...]:
    rows = name_labels(rows, index)
    unknown = sorted({row.video for row in rows} - set(index.names))
    if unknown:
        logger.warning("labels: no video %r (%d such names); they are left out", unknown[0], len(unknown))
    return rows


def _with_events(records: tuple[VideoRecord, ...], rows: tuple[Label, ...]) -> tuple[VideoRecord, ...]:
    by_video: dict[str, list[Label]] = {}
    for row in rows:
        by_video.setdefault(row.video, []).append(row)
    labelled = []
    for record in records:
        events, unit = events_of(by_video.get(record.name, []))
        labelled.append(replace(record, events=events, unit=unit))
    return tuple(labelled)


def _with_people(records: tuple[VideoRecord, ...], index: NameIndex, path: Path) -> tuple[VideoRecord, ...]:
    if not path.is_file():
        return records
    table = read_table(path, ("video", "person"))
    people = {index.match(row["video"]) or row["video"]: row["person"] for _, row in table}
    return tuple(replace(record, person=people.get(record.name, "")) for record in records)


def _splits_file(root: Path, split: Path | str | None) -> Path | None:
    if split is not None:
        return Path(split)
    return root / SPLITS_FILE if (root / SPLITS_FILE).is_file() else None


def _with_split(
    records: tuple[VideoRecord, ...], index: NameIndex, path: Path | None, *, held_out: float, seed: int
) -> tuple[tuple[VideoRecord, ...], dict[str, str]]:
    """The records with their split, and the split as given ({} when it is drawn)."""
    if path is not None:
        given = {index.match(video) or video: split for video, split in read_splits(path).items()}
        return tuple(replace(record, split=given.get(record.name)) for record in records), given
    given = {record.name: record.split for record in records if record.split is not None}
    return (records, given) if given else (split_dataset(records, held_out, seed), {})
