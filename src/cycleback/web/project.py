"""A project: a folder of videos, and a hidden folder in it for everything the studio keeps."""

import hashlib
import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from fastapi import APIRouter
from numpy.typing import NDArray
from pydantic import BaseModel

from cycleback.data import VideoRecord, default_cache_root, read_dataset
from cycleback.data.records import natural_key
from cycleback.data.sources import folder_fps, image_paths, read_image
from cycleback.errors import DataError, UserError
from cycleback.video import VIDEO_SUFFIXES, VideoInfo
from cycleback.video.index import FrameIndex
from cycleback.video.reader import inspect

if TYPE_CHECKING:
    from cycleback.web.app import Studio

STATE_FOLDER = ".cycleback"
IMAGES_CODEC = "images"  # what `info.codec` says of a folder of numbered images

Stamp = tuple[int, int]  # modification time in ns and size: a file that changes gets another one


class NotFound(UserError):
    """The page asks for something that is not there, or no longer."""


@dataclass(frozen=True)
class ProjectVideo:
    """One video of a project. What costs time to find out is found out when first asked for."""

    id: str  # for URLs: file names may hold anything
    record: VideoRecord
    stamp: Stamp = (0, 0)
    problem: str = ""  # why it must not be read, in one line
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The name in the data set and in embedding sets."""
        return self.record.name

    @property
    def path(self) -> Path:
        """The video file, or the folder of images."""
        return self.record.path

    @property
    def is_images(self) -> bool:
        """Whether it is a folder of numbered images."""
        return self.record.kind == "frames"

    @property
    def info(self) -> VideoInfo:
        """Size, rate, codec and sound; reads all packets once. Raises VideoError for a broken file."""
        return self._inspect()[0]

    @property
    def index(self) -> FrameIndex:
        """Where each frame is in the file."""
        return self._inspect()[1]

    @property
    def times(self) -> NDArray[np.float64]:
        """The presentation time of each frame in seconds (N,); the first is 0."""
        return self.index.times

    @property
    def is_known(self) -> bool:
        """Whether `info` and `index` are known without reading the file."""
        return "_facts" in self.__dict__

    @property
    def error(self) -> str:
        """Why the video cannot be played, in one line; "" if it can, or if nobody looked yet."""
        return self.problem or str(self.__dict__.get("_failure", ""))

    def look(self) -> None:
        """Read the file if that has not been tried yet; `error` then tells what is wrong with it."""
        if not self.is_known and not self.error:
            with suppress(UserError):  # kept as `error`
                self._inspect()

    def _inspect(self) -> tuple[VideoInfo, FrameIndex]:
        if self.problem:
            raise DataError(self.problem)
        with self._lock:
            return self._facts

    @cached_property
    def _facts(self) -> tuple[VideoInfo, FrameIndex]:
        try:
            return _inspect_images(self.path) if self.is_images else inspect(self.path)
        except UserError as error:
            self.__dict__["_failure"] = str(error)
            raise
        except OSError as error:
            self.__dict__["_failure"] = f"cannot read {self.path}: {error.strerror or error}"
            raise DataError(self.__dict__["_failure"]) from error


def _inspect_images(folder: Path) -> tuple[VideoInfo, FrameIndex]:
    """Describe a folder of numbered images as a video."""
    paths, fps = image_paths(folder), folder_fps(folder)
    height, width, _ = read_image(paths[0]).shape
    numbers = np.arange(len(paths), dtype=np.int64)
    index = FrameIndex(
        pts=numbers, times=numbers / fps, duration_s=len(paths) / fps, key_numbers=numbers, can_seek=True
    )
    info = VideoInfo(
        path=folder,
        width=width,
        height=height,
        num_frames=len(paths),
        fps=fps,
        duration_s=index.duration_s,
        codec=IMAGES_CODEC,
        pixel_format="rgb24",
        rotation=0,
        is_variable_rate=False,
        has_audio=False,
        audio_rate=None,
        audio_channels=0,
    )
    return info, index


@dataclass
class Project:
    """The videos of a folder by id, and where the studio may write."""

    folder: Path
    videos: dict[str, ProjectVideo] = field(default_factory=dict)
    problem: str = ""  # what is wrong with the folder as a whole, in one line
    follow_links: bool = False  # whether links to files outside the folder may be read
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @classmethod
    def open(cls, folder: Path | str, *, follow_links: bool = False) -> "Project":
        """Read a folder of videos; it may still be empty."""
        project = cls(Path(folder).resolve(), follow_links=follow_links)
        if not project.folder.is_dir():
            raise DataError(f"{folder} is not a folder; pass a folder of videos")
        project.refresh()
        return project

    @cached_property
    def state(self) -> Path:
        """The folder for everything the studio keeps: `.cycleback` in the folder of the videos.

        For a folder that cannot be written to, it is in the cache of the user instead.
        """
        state = self.folder / STATE_FOLDER
        inside = [Path(parent, name) for parent, *names in os.walk(state) for name in chain(*names)]
        for path in [state, *inside]:
            if os.path.islink(path) and not path.resolve().is_relative_to(self.folder):
                raise DataError(f"{path} is a link out of {self.folder}; remove the link")
        if not os.access(state if os.path.exists(state) else self.folder, os.W_OK | os.X_OK):
            state = default_cache_root() / "studio" / video_id(str(self.folder))
        return state

    def refresh(self) -> None:
        """List the videos of the folder anew; what is known of unchanged ones is kept."""
        records, problem = self._read_records()
        with self.lock:
            found = [self._make_video(record) for record in records if record.kind != "sequence"]
            self.videos = {video.id: self._keep_known(video) for video in found}
            self.problem = problem

    def _read_records(self) -> tuple[tuple[VideoRecord, ...], str]:
        """Return the videos, and what is wrong with the folder; an empty folder is fine."""
        try:
            return read_dataset(self.folder).records, ""
        except (DataError, OSError) as error:
            records = list_files(self.folder)
            is_listable = os.access(self.folder, os.R_OK | os.X_OK)
            return records, "" if not records and is_listable else str(error)

    def _keep_known(self, video: ProjectVideo) -> ProjectVideo:
        """Return the video of this id that is known already if its file did not change."""
        known = self.videos.get(video.id)
        if known is None or (known.path, known.stamp, known.problem) != (
            video.path,
            video.stamp,
            video.problem,
        ):
            return video
        return known

    def _make_video(self, record: VideoRecord) -> ProjectVideo:
        problem = ""
        if not self.follow_links and not record.path.resolve().is_relative_to(self.folder):
            problem = f"{record.path.name} is a link to a file outside {self.folder}; copy the file there"
        try:
            status = record.path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if not problem and not os.access(record.path, os.R_OK):
                problem = f"cannot read {record.path}: no permission; change it, or copy the file"
        except OSError as error:
            problem = problem or f"cannot read {record.path}: {error.strerror or error}"
            stamp = (0, 0)
        return ProjectVideo(video_id(record.name), record, stamp, problem)

    def video(self, id: str) -> ProjectVideo:
        """Return the video with an id."""
        try:
            return self.videos[id]
        except KeyError:
            raise NotFound(f"no video {id!r} in {self.folder}; reload the page") from None

    def find(self, name: str) -> ProjectVideo:
        """Return the video with a name."""
        return self.video(video_id(name))


def video_id(name: str) -> str:
    """Return the id of the video with a name: the same in every session."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def list_files(folder: Path) -> tuple[VideoRecord, ...]:
    """List the video files of a folder that cannot be read as a data set.

    Folders that cannot be listed are left out. Files with the same name keep their suffix in it.
    """
    paths = [
        Path(parent) / name
        for parent, folders, names in os.walk(folder)
        for name in names
        if Path(name).suffix.lower() in VIDEO_SUFFIXES and not name.startswith(".")
        if not any(part.startswith(".") for part in Path(parent).relative_to(folder).parts)
    ]
    stems = [path.relative_to(folder).with_suffix("").as_posix() for path in paths]
    names = [
        stem if stems.count(stem) == 1 else path.relative_to(folder).as_posix()
        for stem, path in zip(stems, paths, strict=True)
    ]
    records = [
        VideoRecord(name, path, action=Path(name).parent.as_posix().removeprefix("."))
        for name, path in zip(names, paths, strict=True)
    ]
    return tuple(sorted(records, key=lambda record: natural_key(record.name)))


class VideoItem(BaseModel):
    """One video in the list; details come from its own route, because reading 500 videos takes a while."""

    id: str
    name: str
    action: str
    error: str  # why it cannot be played; "" if it can, or if that is not known yet
    frames: int | None  # None: not known yet
    duration_s: float | None


class ProjectItem(BaseModel):
    """What the page needs for its first paint."""

    name: str
    folder: str
    run: str
    problem: str  # what is wrong with the folder as a whole; "" if nothing is
    videos: list[VideoItem]


def routes(studio: "Studio") -> APIRouter:
    """Describe the project."""
    router = APIRouter()

    @router.get("/project")
    def show_project() -> ProjectItem:
        project = studio.project
        project.refresh()
        return ProjectItem(
            name=project.folder.name,
            folder=str(project.folder),
            run=studio.run,
            problem=project.problem,
            videos=[describe_video(video, project.folder) for video in project.videos.values()],
        )

    return router


def describe_video(video: ProjectVideo, folder: Path) -> VideoItem:
    """Tell what is known of a video of a folder without reading it; the page has no room for whole paths."""
    known = video.info if video.is_known else None
    return VideoItem(
        id=video.id,
        name=video.name,
        action=video.record.action,
        error=video.error.replace(f"{folder}/", ""),
        frames=None if known is None else known.num_frames,
        duration_s=None if known is None else known.duration_s,
    )
