"""A project: a folder of videos, and a hidden folder in it for everything the studio keeps."""

import hashlib
import threading
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cycleback.data import VideoRecord, read_dataset
from cycleback.errors import DataError, UserError
from cycleback.video import VideoInfo, frame_times, probe

STATE_FOLDER = ".cycleback"


@dataclass(frozen=True)
class ProjectVideo:
    """One video of a project. What costs time to find out is found out when first asked for."""

    id: str  # for URLs: file names may hold anything
    record: VideoRecord

    @property
    def name(self) -> str:
        """The name in the data set and in embedding sets."""
        return self.record.name

    @property
    def path(self) -> Path:
        """The video file."""
        return self.record.path

    @cached_property
    def info(self) -> VideoInfo:
        """Size, rate, codec and sound; reads all packets once."""
        return probe(self.path)

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """The presentation time of each frame in seconds (N,); the first is 0."""
        return frame_times(self.path)


@dataclass
class Project:
    """The videos of a folder by id, and where the studio may write."""

    folder: Path
    videos: dict[str, ProjectVideo] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @classmethod
    def open(cls, folder: Path | str) -> "Project":
        """Read a folder of videos; it may still be empty."""
        project = cls(Path(folder).resolve())
        if not project.folder.is_dir():
            raise DataError(f"{folder} is not a folder; pass a folder of videos")
        project.refresh()
        return project

    @property
    def state(self) -> Path:
        """The folder for everything the studio keeps: `.cycleback` in the folder of the videos."""
        return self.folder / STATE_FOLDER

    def refresh(self) -> None:
        """List the videos of the folder anew; what is known of the others is kept."""
        try:
            records = read_dataset(self.folder).records
        except DataError:
            if any(self.folder.rglob("*.mp4")):
                raise
            records = ()
        with self.lock:
            known = {video.path: video for video in self.videos.values()}
            videos = [known.get(record.path) or ProjectVideo(video_id(record.name), record) for record in records]
            self.videos = {video.id: video for video in videos if video.record.kind == "video"}

    def video(self, id: str) -> ProjectVideo:
        """Return the video with an id."""
        try:
            return self.videos[id]
        except KeyError:
            raise UserError(f"no video {id!r} in {self.folder}; reload the page") from None

    def find(self, name: str) -> ProjectVideo:
        """Return the video with a name."""
        return self.video(video_id(name))


def video_id(name: str) -> str:
    """Return the id of the video with a name: the same in every session."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:12]
