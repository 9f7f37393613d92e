"""Read LeRobot data sets: episodes of a robot as videos with states (format versions 2.0, 2.1 and 3.0).

    dataset = read_lerobot("pusht")
    for episode in dataset.episodes:
        video = episode.videos[dataset.cameras[0]]       # a file, or a span of one
        states = dataset.read_column(episode, "observation.state")  # (T, S)

Version 2 keeps one table and one video file per episode. Version 3 packs episodes into larger files: there
an episode is some rows of a table, and a span of seconds of a video. Reading tables needs pyarrow.

Letters: T frames of an episode, S numbers of a state.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.errors import DataError, did_you_mean, one_of, require
from cycleback.reading import Cursor, not_a_file, parse_json, read_json, read_text
from cycleback.video import FrameChunk, read_frames
from cycleback.video.index import FrameIndex, read_index
from cycleback.video.source import check_file, open_video

INFO_FILE = Path("meta", "info.json")
VERSIONS = ("v2.0", "v2.1", "v3.0")
STATE = "observation.state"
CHUNK_FRAMES = 64  # frames in memory at a time
FIELD = re.compile(r"\{([a-z_]+)(?::0?([0-9]))?d?\}")  # of a path template, such as {episode_index:06d}
MAX_VALUES = 2**27  # of a table that is read
KEPT_INDEXES = 8  # of video files, in memory


@dataclass(frozen=True)
class EpisodeVideo:
    """Where one camera's frames of an episode are."""

    path: Path
    start_s: float = 0.0  # time of the first frame in the file
    is_whole: bool = True  # whether the file holds nothing but this episode


@dataclass(frozen=True)
class Episode:
    """One recording of a robot."""

    index: int  # its number in the data set
    num_frames: int  # T
    first_index: int  # number of its first frame, counted through all episodes
    tasks: tuple[str, ...]  # what the robot was told to do, in words
    split: str  # "train" if the data set names no other
    table: Path  # the Parquet file that holds its states
    videos: Mapping[str, EpisodeVideo]  # by camera

    @property
    def name(self) -> str:
        """Name of the episode as a video."""
        return f"episode_{self.index:06d}"


@dataclass(frozen=True)
class LeRobotDataset:
    """The episodes of one folder, in order of their numbers."""

    root: Path
    version: str  # one of VERSIONS
    fps: float
    robot: str  # "" if unknown
    cameras: tuple[str, ...]  # those recorded as video
    columns: Mapping[str, int]  # columns of numbers -> S
    episodes: tuple[Episode, ...]

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """All tasks, in order of their first episode."""
        return tuple(dict.fromkeys(task for episode in self.episodes for task in episode.tasks))

    def episode(self, index: int) -> Episode:
        """Return the episode with this number."""
        for episode in self.episodes:
            if episode.index == index:
                return episode
        raise DataError(f"{self.root} has no episode {index}: it has {len(self.episodes)} episodes.")

    def camera(self, name: str | None = None) -> str:
        """Check the name of a camera; None stands for the first."""
        if name is None and self.cameras:
            return self.cameras[0]
        if name not in self.cameras:
            hint = "It has no camera." if name is None else did_you_mean(name, self.cameras)
            raise DataError(f"{self.root}: no camera {name!r} recorded as video. {hint}")
        return name

    def read_column(self, episode: Episode, name: str = STATE) -> NDArray[np.float64]:
        """Read the numbers (T, S) that the robot recorded with each frame."""
        if name not in self.columns:
            raise DataError(f"{self.root}: no column of numbers {name!r}. {did_you_mean(name, self.columns)}")
        rows = list(_read_rows(episode.table, ("frame_index", name), episode=episode.index).each())
        rows.sort(key=lambda row: row.at("frame_index").integer(low=0))
        try:
            values = np.array([row.value[name] for row in rows], dtype=np.float64).reshape(len(rows), -1)
        except (ValueError, TypeError) as error:
            raise DataError(f"{episode.table}: {name!r} does not hold the same numbers per frame.") from error
        if len(rows) != episode.num_frames:
            counts = f"{len(rows)} rows for the {episode.num_frames} frames of {episode.name}"
            raise DataError(f"{episode.table}: {counts}. Download it again.")
        if not np.isfinite(values).all():
            raise DataError(f"{episode.table}: {name!r} of {episode.name} has missing or infinite numbers.")
        return values

    def frame_numbers(self, episode: Episode, camera: str | None = None) -> NDArray[np.int64]:
        """Return which frames (T,) of the video file are those of the episode."""
        video = episode.videos[self.camera(camera)]
        return _find_frames(video, episode, self.fps, _index_file(video.path).times)

    def iter_frames(
        self,
        episode: Episode,
        camera: str | None = None,
        *,
        size: tuple[int, int] | None = None,
        fit: Any = "stretch",
    ) -> Iterator[FrameChunk]:
        """Yield the frames of an episode in chunks, like `cycleback.video.iter_frames` for a video file."""
        video = episode.videos[self.camera(camera)]
        index = _index_file(video.path)
        numbers = _find_frames(video, episode, self.fps, index.times)
        for start in range(0, len(numbers), CHUNK_FRAMES):
            chosen = numbers[start : start + CHUNK_FRAMES]
            frames = read_frames(video.path, chosen, size=size, fit=fit, index=index)
            yield FrameChunk(frames, np.arange(start, start + len(chosen)) / self.fps, start)


def is_lerobot(folder: Path | str) -> bool:
    """Tell whether a folder is a LeRobot data set."""
    return os.access(folder, os.X_OK) and (Path(folder) / INFO_FILE).is_file()


def read_lerobot(folder: Path | str) -> LeRobotDataset:
    """Read which episodes a LeRobot data set has. No video is opened."""
    root = Path(folder)
    if not is_lerobot(root):
        raise DataError(f"no LeRobot data set at {root}: expected {INFO_FILE} in it.")
    info = read_json(root / INFO_FILE)
    version = info.at("codebase_version").text()
    if version not in VERSIONS:
        raise DataError(
            f"{info.place}: format version {version!r} is not known, expected {one_of(VERSIONS)}."
        )
    features = dict(info.at("features").items())
    kinds = {name: feature.at("dtype").text() for name, feature in features.items()}
    cameras = tuple(name for name, kind in kinds.items() if kind == "video")
    columns = {
        name: int(np.prod([side.integer(low=1) for side in features[name].at("shape").each()] or [1]))
        for name, kind in kinds.items()
        if re.fullmatch(r"float\d+|u?int\d+|bool", kind)
    }
    read = _read_episodes_v3 if version == "v3.0" else _read_episodes_v2
    episodes = sorted(read(root, info, cameras), key=lambda episode: episode.index)
    if not episodes:
        raise DataError(f"{root}: the data set has no episodes.")
    repeated = [index for index, count in Counter(episode.index for episode in episodes).items() if count > 1]
    if repeated:
        raise DataError(f"{root}: episode {repeated[0]} is listed twice.")
    robot = info.optional_text("robot_type") or ""
    return LeRobotDataset(root, version, info.at("fps").positive(), robot, cameras, columns, tuple(episodes))


def _read_episodes_v2(root: Path, info: Cursor, cameras: Sequence[str]) -> Iterator[Episode]:
    """Read meta/episodes.jsonl: one line per episode, in order."""
    path = root / "meta" / "episodes.jsonl"
    size = _find_chunk_size(info)
    split = _split_finder(info)
    first = 0
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        entry = parse_json(line, f"{path}, line {number}")
        index, length = entry.at("episode_index").integer(low=0), entry.at("length").integer(low=1)
        fields = {"episode_chunk": index // size, "episode_index": index}
        videos = {
            camera: EpisodeVideo(_fill_path(root, info, "video_path", {**fields, "video_key": camera}))
            for camera in cameras
        }
        tasks = tuple(task.any_text() for task in entry.each("tasks"))
        table = _fill_path(root, info, "data_path", fields)
        yield Episode(index, length, first, tasks, split(index), table, videos)
        first += length


def _find_chunk_size(info: Cursor) -> int:
    return info.optional_integer("chunks_size", low=1) or 1000


def _read_episodes_v3(root: Path, info: Cursor, cameras: Sequence[str]) -> Iterator[Episode]:
    """Read meta/episodes/chunk-000/file-000.parquet and so on: one row per episode."""
    folder = root / "meta" / "episodes"
    files = sorted(folder.glob("*/*.parquet"))
    if not files:
        raise DataError(f"no tables of episodes in {folder}. Download the data set again.")
    split = _split_finder(info)
    columns = ["episode_index", "length", "dataset_from_index", "tasks", *_place_columns("data")]
    for camera in cameras:
        columns += [*_place_columns(f"videos/{camera}"), f"videos/{camera}/from_timestamp"]
    episodes = []
    for file in files:
        for row in _read_rows(file, columns).each():
            videos = {camera: _find_video(root, info, row, camera) for camera in cameras}
            index = row.at("episode_index").integer(low=0)
            data = _fill_path(root, info, "data_path", _find_place(row, "data"))
            tasks = tuple(task.any_text() for task in row.each("tasks"))
            length, first = row.at("length").integer(low=1), row.at("dataset_from_index").integer(low=0)
            episodes.append(Episode(index, length, first, tasks, split(index), data, videos))
    use = Counter(video.path for episode in episodes for video in episode.videos.values())
    for episode in episodes:
        videos = {camera: replace(v, is_whole=use[v.path] == 1) for camera, v in episode.videos.items()}
        yield replace(episode, videos=videos)


def _place_columns(part: str) -> list[str]:
    return [f"{part}/chunk_index", f"{part}/file_index"]


def _find_place(row: Cursor, part: str) -> dict[str, int]:
    """Return the values for the path template of a table or video."""
    return {name.rpartition("/")[2]: row.at(name).integer(low=0) for name in _place_columns(part)}


def _find_video(root: Path, info: Cursor, row: Cursor, camera: str) -> EpisodeVideo:
    part = f"videos/{camera}"
    path = _fill_path(root, info, "video_path", {**_find_place(row, part), "video_key": camera})
    return EpisodeVideo(path, row.at(f"{part}/from_timestamp").number())


def _split_finder(info: Cursor) -> Callable[[int], str]:
    """Return the function that tells the split of an episode; splits are ranges such as 0:50."""
    spans = []
    for name, span in info.find_items("splits"):
        match = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", span.any_text())
        if match:
            spans.append((name, int(match[1]), int(match[2])))

    def split(index: int) -> str:
        return next((name for name, start, stop in spans if start <= index < stop), "train")

    return split


def _fill_path(root: Path, info: Cursor, key: str, fields: Mapping[str, int | str]) -> Path:
    """Fill in a path template of info.json; the path must lie in the data set."""
    template = info.at(key)

    def fill(match: re.Match[str]) -> str:
        value = fields.get(match[1])
        if value is None:
            raise template.wrong(f"no value for {match[0]!r} of this path")
        return value if isinstance(value, str) else f"{value:0{match[2] or 1}d}"

    path = Path(os.path.normpath(root / FIELD.sub(fill, template.text())))
    if not path.is_relative_to(os.path.normpath(root)):
        raise template.wrong(f"the path leads out of {root}")
    return path


def _read_rows(path: Path, columns: Sequence[str], *, episode: int | None = None) -> Cursor:
    """Read columns of a Parquet file as a list of rows, of all rows or those of one episode."""
    parquet: Any = require("pyarrow.parquet", extra="lerobot", purpose="reading LeRobot data sets")
    try:
        if reason := not_a_file(path):
            raise DataError(f"cannot read {path}: {reason}.")
        with parquet.ParquetFile(path) as file:
            _check_columns(path, file, columns)
        rows = None if episode is None else [("episode_index", "=", episode)]
        table = parquet.read_table(path, columns=list(columns), filters=rows, use_threads=False)
        return Cursor(table.to_pylist(), str(path))
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing. Download the data set again.") from error
    except Exception as error:  # pyarrow raises half a dozen types for a damaged file
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise DataError(f"cannot read {path} as Parquet: {reason}. Download it again.") from error


def _check_columns(path: Path, file: Any, wanted: Sequence[str]) -> None:
    """Refuse a table without one of the columns, or one that claims more numbers than memory can hold."""
    known = list(file.schema_arrow.names)
    for name in wanted:
        if name not in known:
            raise DataError(f"{path}: no column {name!r}. {did_you_mean(name, known)}")
    if len(set(known)) != len(known):
        raise DataError(f"{path}: two columns have the same name.")
    count = file.metadata.num_rows * len(wanted)
    for group in range(file.metadata.num_row_groups):
        chunks = [file.metadata.row_group(group).column(i) for i in range(file.metadata.num_columns)]
        count += sum(chunk.num_values for chunk in chunks if chunk.path_in_schema.startswith(tuple(wanted)))
    if not 0 <= count <= MAX_VALUES:
        raise DataError(f"{path}: it claims {count:,} numbers, expected at most {MAX_VALUES:,}.")


@lru_cache(maxsize=KEPT_INDEXES)
def _index_file(path: Path) -> FrameIndex:
    """Index a video file, which may hold hundreds of episodes, once."""
    with open_video(check_file(path)) as source:
        return read_index(source)


def _find_frames(
    video: EpisodeVideo, episode: Episode, fps: float, times: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Find the frames (T,) of a file, by their times (N,), that an episode consists of.

    An episode has a frame every 1/fps seconds; a time stamp may be off by less than half of that.
    """
    if episode.num_frames > len(times):
        counts = f"{len(times)} frames, {episode.name} {episode.num_frames}"
        raise DataError(f"{video.path} has {counts}. Download the file again.")
    wanted = video.start_s + np.arange(episode.num_frames) / fps
    after = np.clip(np.searchsorted(times, wanted), 1, max(1, len(times) - 1))
    before = after - 1
    after = np.minimum(after, len(times) - 1)
    numbers = np.where(wanted - times[before] <= times[after] - wanted, before, after)
    off = np.abs(times[numbers] - wanted)
    if off.max() * fps > 0.5 or (np.diff(numbers) <= 0).any():
        frame = int(np.argmax(off))
        raise DataError(
            f"{video.path}: no frame at {wanted[frame]:.3f} s for frame {frame} of {episode.name} "
            f"({episode.num_frames} frames at {fps:g} per second). Download the file again."
        )
    return numbers.astype(np.int64)
