"""Find the videos a user means: a data set, its folder, or files by path."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cycleback.data.folder import read_dataset
from cycleback.data.records import Dataset, VideoRecord
from cycleback.errors import DataError

Videos = Dataset | Path | str | Sequence[Path | str]


def select_records(videos: Videos) -> tuple[Sequence[VideoRecord], Sequence[str]]:
    """Return the videos as records, and the key events if they come from a data set."""
    if isinstance(videos, str | Path):
        videos = read_dataset(videos) if Path(videos).is_dir() else [videos]
    if isinstance(videos, Dataset):
        return videos.records, videos.event_names
    paths = list(dict.fromkeys(Path(video) for video in videos))
    for path in paths:
        if not path.exists():
            raise DataError(f"{path} does not exist; check the spelling of the path")
    return [VideoRecord(name, path) for name, path in zip(name_files(paths), paths, strict=True)], ()


def name_files(paths: Sequence[Path]) -> list[str]:
    """Name each file by its stem, or by its whole path if another file has the same stem."""
    for path in paths:
        if path.is_dir():
            raise DataError(f"{path} is a folder; give video files, or this folder alone")
    stems = Counter(path.stem for path in set(paths))
    return [path.stem if stems[path.stem] == 1 else path.as_posix() for path in paths]


def pick_videos(videos: Sequence[str], *, reference: str | None = None, max_videos: int = 9) -> list[Path]:
    """Return the paths of videos to play together, the reference first; a folder means its first videos."""
    paths = [Path(video) for video in videos]
    if len(paths) == 1 and paths[0].is_dir():
        records = [record for record in read_dataset(paths[0]) if record.kind == "video"]
        actions = sorted({record.action for record in records if record.action})
        if len(actions) > 1:
            raise DataError(f"{paths[0]} holds {', '.join(actions)}: name the folder of one action")
        paths = [record.path for record in records]
    if reference is not None:
        matches = [path for path in paths if reference in (str(path), path.name, path.stem)]
        first = matches[0] if matches else Path(reference)
        paths = [first, *(path for path in paths if path != first)]
    check_pair("play in sync", len(paths))
    return paths[:max_videos]


def check_pair(purpose: str, count: int) -> None:
    """Refuse fewer than two videos."""
    if count < 2:
        raise DataError(f"need at least two videos to {purpose}, got {count}: add one, or name a folder")
