"""Unpack a LeRobot data set: one video, or one sequence of states, per episode."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cycleback.data.episodes import COLUMNS, EPISODES_FILE, name_action
from cycleback.data.lerobot import STATE, Episode, LeRobotDataset, read_lerobot
from cycleback.errors import DataError
from cycleback.prepare.writer import DatasetWriter, place_file
from cycleback.progress import Counter
from cycleback.tables import write_table
from cycleback.video import write_video


def prepare_lerobot(
    source: Path,
    writer: DatasetWriter,
    *,
    progress: Counter,
    camera: str = "",
    states: str = "",
    link: bool = True,
) -> list[str]:
    """Write each episode as a video, or its states as a sequence, and return the videos that are missing.

    Args:
        source: the data set, with meta/info.json.
        camera: name of the camera; default: the first.
        states: write this column of numbers as .npz sequences instead of videos; "true" means
            observation.state.
        link: True for links to video files that hold one episode, False for copies. Episodes that share a
            file are encoded again.
    """
    dataset = read_lerobot(source)
    column = STATE if str(states).lower() == "true" else str(states)
    chosen = "" if column else dataset.camera(camera or None)
    missing: list[str] = []
    rows = []
    for done, episode in enumerate(dataset.episodes, start=1):
        action = name_action(dataset, episode)
        name = f"{action}/{episode.name}" if action else episode.name
        if chosen and not episode.videos[chosen].path.is_file():
            missing.append(str(episode.videos[chosen].path))
        else:
            target = writer.add(name, split=episode.split, events={})
            if column:
                values = dataset.read_column(episode, column).astype(np.float32)
                path = target.with_name(f"{target.name}.npz")
                np.savez(path, features=values, fps=np.float64(dataset.fps))
            else:
                _write_episode(dataset, episode, chosen, target.with_name(f"{target.name}.mp4"), link=link)
            numbers = episode.index, episode.first_index, episode.num_frames
            rows.append(dict(zip(COLUMNS, (name, *numbers), strict=True)))
        progress(done, len(dataset.episodes))
    if not rows:
        raise DataError(
            f"{source}: no episode has a video of camera {chosen!r}. Download the data set again."
        )
    write_table(writer.folder / EPISODES_FILE, rows, columns=COLUMNS)
    return missing


def _write_episode(
    dataset: LeRobotDataset, episode: Episode, camera: str, target: Path, *, link: bool
) -> None:
    """Link the file of an episode, or encode its part of a larger file."""
    video = episode.videos[camera]
    if video.is_whole:
        place_file(video.path, target, link=link)
        return

    def frames() -> Iterator[NDArray[np.uint8]]:
        for chunk in dataset.iter_frames(episode, camera):
            yield from chunk.frames

    write_video(target, frames(), fps=dataset.fps)
