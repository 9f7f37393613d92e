"""Read a folder as a `Dataset` (videos, actions, people, labels, split), and find the videos a user names."""

import hashlib
import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath

from cycleback.data.episodes import list_episodes
from cycleback.data.labels import LABELS_FILE, collect_events, event_order, read_labels
from cycleback.data.lerobot import is_lerobot
from cycleback.data.records import (
    IMAGE_SUFFIXES,
    SEQUENCE_SUFFIX,
    Dataset,
    Kind,
    Label,
    NameIndex,
    VideoRecord,
    check_name,
    natural_key,
)
from cycleback.data.sources import is_frame
from cycleback.errors import DataError
from cycleback.tables import read_table
from cycleback.video import VIDEO_SUFFIXES
from cycleback.video.source import is_animated

logger = logging.getLogger(__name__)
PEOPLE_FILE = "people.csv"
SPLITS_FILE = "splits.csv"
ANIMATIONS = {".gif": "to .mp4, or name them one by one", ".webp": "to .mp4"}  # and what to do with them
SPLIT_FOLDERS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}

Videos = Dataset | Path | str | Sequence[Path | str]  # a data set, its folder, or files


def read_dataset(
    directory: Path | str,
    *,
    labels: Path | str | None = None,
    split: Path | str | None = None,
    held_out: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """Read a folder of videos. Nothing is decoded; `check_dataset` looks inside the videos.

    **Videos.** A video is a video file, an .npz sequence, or a folder of at least two numbered images (.jpg,
    .png) with no other video in it or below. Images beside videos, hidden files and all other files are
    ignored. Two videos with the same name (a.mp4 and a.mov, or a.mp4 and a folder of images a/) are an error.

    A LeRobot data set with one video file per episode is read by its own tables: its episodes are the videos,
    its tasks the actions.

    **Action.** The sub-folder of a video, at any depth: `cup/a.mp4` has action "cup", `a.mp4` has "". Both
    may occur together; the videos at the top are then an action of their own.

    **Split.** The first of these that exists: the file `split`; splits.csv (`video,split`; a video it does
    not list belongs to no split); top folders `train` and `val` (or `valid`, `validation`, `test`), with or
    without action folders inside, which must then hold every video; else `split_dataset` with `held_out` and
    `seed`.

    **People.** people.csv (`video,person`) says who acts. A random split keeps each person on one side.

    **Labels.** The file `labels`, else labels.csv of the folder and of its sub-folders. Rows that match no
    video are kept in `Dataset.labels`, logged, and listed by `check_dataset`.

    Raises:
        DataError: the folder is missing or empty, two videos have the same name, or a file cannot be parsed.
    """
    root = Path(directory)
    if is_lerobot(root):
        records = tuple(list_episodes(root))
    else:
        videos = _find_videos(root)
        has_split_folders = _check_split_folders(root, videos)
        records = tuple(_add_action(record, has_split_folders) for record in videos)
    index = NameIndex(record.name for record in records)
    rows = _read_label_files(root, labels, index)
    records = _add_people(_add_events(records, rows), index, root / PEOPLE_FILE)
    given: dict[str, str] = {record.name: record.split for record in records if record.split is not None}
    splits_file = Path(split) if split is not None else root / SPLITS_FILE
    if split is not None or splits_file.is_file():
        given = {index.match(video) or video: name for video, name in read_splits(splits_file).items()}
        records = tuple(replace(record, split=given.get(record.name)) for record in records)
    elif not given:
        records = split_dataset(records, held_out, seed)
    return Dataset(
        root=root, records=records, event_names=event_order(records), labels=rows, given_split=given
    )


def _find_videos(root: Path) -> list[VideoRecord]:
    """Find every video below `root`, in natural order of names; action and split are not set yet."""
    if not root.is_dir():
        hint = "is a file; pass the folder that contains it" if root.exists() else "does not exist"
        raise DataError(f"no data set at {root}: it {hint}.")
    videos = sorted(_walk(root, root, set()), key=lambda video: natural_key(video.name))
    if not videos:
        raise DataError(_explain_empty(root))
    paths: dict[str, Path] = {}
    for video in videos:
        check_name(video.path)
        if video.name in paths:
            first, second = (path.relative_to(root).as_posix() for path in (paths[video.name], video.path))
            raise DataError(
                f"{root}: {first} and {second} have the same name, {video.name!r}. Rename or remove one."
            )
        paths[video.name] = video.path
    return videos


def _walk(root: Path, folder: Path, seen: set[Path]) -> Iterator[VideoRecord]:
    """Yield the videos in `folder` and below; a folder reached twice through links is visited once."""
    if folder.resolve() in seen:
        return
    seen.add(folder.resolve())
    inside = [path for path in _list_folder(folder) if not path.name.startswith(".")]
    files = [path for path in inside if not path.is_dir()]  # a dangling link counts: `data check` reports it
    for suffix, advice in ANIMATIONS.items():
        named = [path for path in files if path.suffix.lower() == suffix]
        if found := [path for path in named if path.is_file() and is_animated(path)]:
            many = f"{len(found)} such in its folder"
            warnings.warn(f"{found[0]} is not read ({many}): convert {suffix} files {advice}", stacklevel=2)
    videos = [video for path in files if (video := _recognise_file(root, path)) is not None]
    for path in inside:
        if path.is_dir():
            videos.extend(_walk(root, path, seen))
    if folder != root and not videos and sum(map(is_frame, files)) > 1:
        videos = [VideoRecord(folder.relative_to(root).as_posix(), folder, "frames")]
    yield from videos


def _list_folder(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise DataError(f"cannot list {folder}: {error.strerror}.") from error


def _recognise_file(root: Path, path: Path) -> VideoRecord | None:
    suffix = path.suffix.lower()
    kind: Kind = "video" if suffix in VIDEO_SUFFIXES else "sequence"
    if kind == "sequence" and suffix != SEQUENCE_SUFFIX:
        return None
    return VideoRecord(path.relative_to(root).as_posix()[: -len(suffix)], path, kind)


def _explain_empty(root: Path) -> str:
    videos, images = " ".join(sorted(VIDEO_SUFFIXES)), " ".join(sorted(IMAGE_SUFFIXES))
    if sum(is_frame(path) for path in _list_folder(root) if path.is_file()) > 1:
        return f"{root} is a folder of images, which is one video. Pass the folder above it."
    return (
        f"no videos in {root} or its sub-folders. Expected files {videos}, folders of numbered images "
        f"{images}, or sequences {SEQUENCE_SUFFIX}."
    )


def _check_split_folders(root: Path, videos: list[VideoRecord]) -> bool:
    """Tell whether the top folders are a split; a video outside them would be in no split and is an error."""
    tops = {video.name: PurePosixPath(video.name).parts[0].lower() for video in videos if "/" in video.name}
    if "train" not in tops.values():
        return False
    for video in videos:
        if tops.get(video.name) not in SPLIT_FOLDERS:
            where = video.path.relative_to(root).as_posix()
            raise DataError(f"{root}: {where} is outside the split folders. Move it into train or val.")
    return True


def _add_action(record: VideoRecord, has_split_folders: bool) -> VideoRecord:
    """Set action and split by the folders of the video."""
    folders = PurePosixPath(record.name).parts[:-1]
    if not has_split_folders:
        return replace(record, action="/".join(folders))
    return replace(record, action="/".join(folders[1:]), split=SPLIT_FOLDERS[folders[0].lower()])


def _read_label_files(root: Path, labels: Path | str | None, index: NameIndex) -> tuple[Label, ...]:
    """Read `labels`, or every labels.csv beside or above a video; rows get the names of records."""
    rows: list[Label] = []
    if labels is not None:
        rows += read_labels(labels)
    else:
        folders = {PurePosixPath(name).parent for name in index.names}
        folders |= {parent for folder in folders for parent in folder.parents}
        for folder in sorted(folders):
            path = root / folder / LABELS_FILE
            if path.is_file():
                below = "" if folder == PurePosixPath(".") else f"{folder}/"
                for row in _read_own_labels(path):
                    rows.append(replace(row, video=index.match(below + row.video) or row.video))
    named = tuple(replace(row, video=index.match(row.video) or row.video) for row in rows)
    unknown = sorted({row.video for row in named} - set(index.names))
    if unknown:
        logger.warning("labels: no video %r (%d unknown names); rows ignored", unknown[0], len(unknown))
    return named


def _read_own_labels(path: Path) -> tuple[Label, ...]:
    """Read the labels of a folder; if they have another layout, say what can be done."""
    try:
        return read_labels(path)
    except DataError as error:
        raise DataError(
            f"{error} Rename the file to embed without labels; a published data set is converted by: "
            "cycleback data prepare"
        ) from error


def _add_events(records: tuple[VideoRecord, ...], rows: tuple[Label, ...]) -> tuple[VideoRecord, ...]:
    by_video: dict[str, list[Label]] = {}
    for row in rows:
        by_video.setdefault(row.video, []).append(row)
    labelled = []
    for record in records:
        events, unit = collect_events(by_video.get(record.name, []))
        labelled.append(replace(record, events=events, unit=unit))
    return tuple(labelled)


def _add_people(records: tuple[VideoRecord, ...], index: NameIndex, path: Path) -> tuple[VideoRecord, ...]:
    if not path.is_file():
        return records
    table = read_table(path, ("video", "person"))
    people = {index.match(row["video"]) or row["video"]: row["person"] for _, row in table}
    return tuple(replace(record, person=people.get(record.name, "")) for record in records)


def read_splits(path: Path | str) -> dict[str, str]:
    """Read a splits file (`video,split`) as video → split; `valid` and `validation` become `val`."""
    splits: dict[str, str] = {}
    for line, row in read_table(Path(path), ("video", "split")):
        split = SPLIT_FOLDERS.get(row["split"].lower(), row["split"])
        if not split or not row["video"]:
            raise DataError(f"{path}, line {line}: the video and the split must not be empty, got {row}.")
        if splits.setdefault(row["video"], split) != split:
            raise DataError(
                f"{path}, line {line}: {row['video']} is in {splits[row['video']]!r} and in {split!r}."
            )
    return splits


def split_dataset(
    records: Iterable[VideoRecord], held_out: float = 0.2, seed: int = 0
) -> tuple[VideoRecord, ...]:
    """Set `split` of each record to "train" or "val", drawn separately for each action.

    A video is held out when the hash of its person (or of its name, if the person is unknown) and the seed is
    below `held_out`. So adding videos does not move other videos, each person is on one side only, and the
    share held out is `held_out` on average, not exactly. Small actions are then corrected: train keeps at
    least two videos (one cannot be aligned), and, unless `held_out` is 0, val gets at least one video of an
    action with three or more, and two of an action with six or more. Only these corrections depend on the
    other videos.
    """
    if not 0 <= held_out < 1:
        raise ValueError(f"held_out must be in [0, 1), got {held_out!r}")
    records = tuple(records)
    held: set[str] = set()
    for action in {record.action for record in records}:
        held |= _draw_held_out([record for record in records if record.action == action], held_out, seed)
    return tuple(replace(record, split="val" if record.name in held else "train") for record in records)


def _draw_held_out(records: Sequence[VideoRecord], share: float, seed: int) -> set[str]:
    """Draw the names held out of one action, person by person."""
    groups: dict[str, list[str]] = {}
    for record in records:
        groups.setdefault(record.person or record.name, []).append(record.name)
    min_held = 0 if share == 0 or len(records) < 3 else 1 if len(records) < 6 else 2
    held: set[str] = set()
    for group in sorted(groups, key=lambda group: _unit_hash(group, seed)):
        is_wanted = _unit_hash(group, seed) < share or len(held) < min_held
        if is_wanted and len(held) + len(groups[group]) <= len(records) - 2:
            held |= set(groups[group])
    return held


def _unit_hash(name: str, seed: int) -> float:
    """Hash the name and the seed to a number in [0, 1), the same on every machine."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def select_records(videos: Videos) -> tuple[Sequence[VideoRecord], Sequence[str]]:
    """Return the videos as records, and the key events if they come from a data set."""
    if isinstance(videos, str | Path):
        videos = read_dataset(videos) if Path(videos).is_dir() else [videos]
    if isinstance(videos, Dataset):
        return videos.records, videos.event_names
    paths = list(dict.fromkeys(Path(video) for video in videos))
    for path in paths:
        check_name(path)
        if not path.exists():
            raise DataError(f"{path} does not exist; check the spelling of the path")
    names = name_files(paths)
    return [VideoRecord(name, path, _file_kind(path)) for name, path in zip(names, paths, strict=True)], ()


def _file_kind(path: Path) -> Kind:
    """Tell what a file is that was named by itself; of other suffixes the decoder decides."""
    return "sequence" if path.suffix.lower() == SEQUENCE_SUFFIX else "video"


def names_folder(videos: Videos) -> bool:
    """Tell whether videos are named as a folder or data set, and not file by file."""
    return isinstance(videos, Dataset) or (isinstance(videos, str | Path) and Path(videos).is_dir())


def name_files(paths: Sequence[Path]) -> list[str]:
    """Name each file by its stem, or by its whole path if another file has the same stem."""
    for path in paths:
        if path.is_dir():
            raise DataError(f"{path} is a folder; give video files, or this folder alone")
    stems = Counter(path.stem for path in set(paths))
    return [path.stem if stems[path.stem] == 1 else path.as_posix() for path in paths]


def pick_videos(
    videos: Sequence[str],
    *,
    reference: str | None = None,
    max_videos: int = 9,
    is_usable: Callable[[Path], bool] = lambda path: True,
) -> list[Path]:
    """Return the paths of videos to play together, the reference first; a folder means its first videos.

    Of a folder, only the videos are taken of which `is_usable` is true.
    """
    paths = [Path(video) for video in videos]
    is_folder = len(paths) == 1 and paths[0].is_dir()
    if is_folder:
        found = read_dataset(paths[0])
        records = [record for record in found if record.kind == "video"]
        if not records:
            raise DataError(f"{found.records[0].path} is no video file, and only these can be played in sync")
        actions = sorted({record.action for record in records if record.action})
        if len(actions) > 1:
            raise DataError(f"{paths[0]} holds {', '.join(actions)}: name the folder of one action")
        paths = [record.path for record in records]
    if reference is not None:
        matches = [path for path in paths if reference in (str(path), path.name, path.stem)]
        first = matches[0] if matches else Path(reference)
        paths = [first, *(path for path in paths if path != first)]
    paths = list(dict.fromkeys(paths))
    if is_folder:
        paths = list(islice(filter(is_usable, paths), max_videos))
    check_pair("play in sync", len(paths))
    return paths[:max_videos]


def check_pair(purpose: str, count: int) -> None:
    """Refuse fewer than two videos."""
    if count < 2:
        raise DataError(f"need at least two videos to {purpose}, got {count}: add one, or name a folder")
