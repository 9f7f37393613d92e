"""LeRobot data sets as videos: their episodes as records, and where each frame is in the data set.

A data set with one video file per episode is a folder of videos as it is. One that packs episodes into larger
files is unpacked first, by `cycleback data prepare lerobot`, which writes episodes.csv beside the videos:

    video,episode_index,first_index,frames
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cycleback.data.lerobot import Episode, LeRobotDataset, is_lerobot, read_lerobot
from cycleback.data.records import VideoRecord
from cycleback.errors import DataError
from cycleback.tables import read_table

EPISODES_FILE = "episodes.csv"
COLUMNS = ("video", "episode_index", "first_index", "frames")
MAX_NUMBER = 2**53


@dataclass(frozen=True)
class EpisodePlace:
    """Where the frames of a video are in a LeRobot data set."""

    episode: int
    first_index: int  # of its first frame, counted through all episodes
    num_frames: int


def list_episodes(root: Path) -> list[VideoRecord]:
    """Return the episodes of a LeRobot data set as videos of its first camera; tasks are actions."""
    dataset = read_lerobot(root)
    camera = dataset.camera()
    packed = [each for each in dataset.episodes if not each.videos[camera].is_whole]
    if packed:
        raise DataError(
            f"{root} packs several episodes into one video. Unpack it first: "
            f"cycleback data prepare lerobot {root} FOLDER"
        )
    splits = {episode.split for episode in dataset.episodes}
    return [
        VideoRecord(
            episode.name,
            episode.videos[camera].path,
            action=name_action(dataset, episode),
            split=episode.split if len(splits) > 1 else None,
        )
        for episode in dataset.episodes
    ]


def name_action(dataset: LeRobotDataset, episode: Episode) -> str:
    """Return the task of an episode as an action, "" if the data set has only one."""
    if len(dataset.tasks) < 2:
        return ""
    return " and ".join(episode.tasks).replace("/", "-").replace("\\", "-").strip(" .") or "no task"


def read_places(folder: Path) -> Mapping[str, EpisodePlace]:
    """Read where the frames of each video are in a LeRobot data set, by the name of the video."""
    if is_lerobot(folder):
        return {
            episode.name: EpisodePlace(episode.index, episode.first_index, episode.num_frames)
            for episode in read_lerobot(folder).episodes
        }
    path = folder / EPISODES_FILE
    if not path.is_file():
        raise DataError(
            f"{folder} is no LeRobot data set, nor made from one: it has neither meta/info.json nor "
            f"{EPISODES_FILE}"
        )
    places: dict[str, EpisodePlace] = {}
    for line, row in read_table(path, COLUMNS):
        numbers = [row[column] for column in COLUMNS[1:]]
        if not all(text.isascii() and text.isdigit() and int(text[:20]) <= MAX_NUMBER for text in numbers):
            raise DataError(f"{path}, line {line}: expected three whole numbers, got {', '.join(numbers)}")
        if row["video"] in places:
            raise DataError(f"{path}, line {line}: {row['video']!r} is listed twice")
        places[row["video"]] = EpisodePlace(*map(int, numbers))
    return places
