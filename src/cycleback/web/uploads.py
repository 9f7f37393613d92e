"""Add videos to a project: a file is checked, gets a safe name, and never replaces another file."""

import os
import re
import shutil
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from cycleback.errors import UserError, VideoError
from cycleback.video import VIDEO_SUFFIXES
from cycleback.video.source import find_video_stream, load_av
from cycleback.web.project import Project, ProjectVideo, VideoItem, describe_video

if TYPE_CHECKING:
    from cycleback.web.app import Studio

MAX_BYTES = 8 * 2**30
MAX_VIDEOS = 10_000  # in one project
MIN_FREE_BYTES = 2**29  # left on the disk
MAX_NAME = 100  # characters
# FFmpeg would also open lists of other files and addresses (.m3u8, concat), whatever their suffix
FORMATS = "mov,mp4,matroska,webm,avi,flv,mpeg,mpegts,ogg,asf"
RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # devices on Windows


def routes(studio: "Studio") -> APIRouter:
    """Accept videos: POST the bytes of a file to `videos?name=FILE NAME`."""
    router = APIRouter()

    @router.post("/videos")
    async def add_video(request: Request, name: str) -> VideoItem:
        project = studio.project
        target = await run_in_threadpool(choose_target, project, name)
        announced = int(request.headers.get("content-length", 0))
        await run_in_threadpool(check_room, project, name, announced)
        with open_draft(project, target.suffix) as draft:
            await receive(request, draft, name)
            video = await run_in_threadpool(place, project, draft, name)
        return describe_video(video, project.folder)

    return router


def choose_target(project: Project, name: str) -> Path:
    """Return a free path in the folder of the project for a file that its owner calls `name`."""
    stem, suffix = clean_name(name)
    taken = {Path(video).stem.lower() for video in os.listdir(project.folder)}
    number, choice = 1, stem
    while choice.lower() in taken:
        number += 1
        choice = f"{stem}-{number}"
    return project.folder / f"{choice}{suffix}"


def clean_name(name: str) -> tuple[str, str]:
    """Return a safe stem and the suffix of a file name; folders in it and odd characters are dropped."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    stem, dot, ending = last.rpartition(".")
    suffix = f".{ending.lower()}"
    if not dot or suffix not in VIDEO_SUFFIXES:
        known = " ".join(sorted(VIDEO_SUFFIXES))
        raise UserError(f"cannot add {name[:80]!r}: expected a video file ({known})")
    stem = re.sub(r"[^\w \-.()+,]", "_", stem).strip(" ._")[:MAX_NAME].rstrip(" .")
    while len(stem.encode()) > 2 * MAX_NAME:  # names on disk are limited in bytes
        stem = stem[:-1]
    return (f"_{stem}" if RESERVED.fullmatch(stem) else stem) or "video", suffix


def check_room(project: Project, name: str, size: int) -> None:
    """Refuse a file that is too large for the studio or the disk, or one video too many."""
    if size > MAX_BYTES:
        raise UserError(
            f"{name[:80]} has {size / 2**30:.1f} GB: at most {MAX_BYTES >> 30} GB can be added here;"
            f" copy the file into {project.folder}"
        )
    if size > shutil.disk_usage(project.folder).free - MIN_FREE_BYTES:
        raise UserError(f"no room for {name[:80]} ({size / 2**20:.0f} MB) on the disk of {project.folder}")
    if len(project.videos) >= MAX_VIDEOS:
        raise UserError(f"{project.folder} has {len(project.videos)} videos already: at most {MAX_VIDEOS}")


@contextmanager
def open_draft(project: Project, suffix: str) -> Iterator[Path]:
    """Yield a path to write a file to that is not part of the project yet; it is removed afterwards."""
    draft = project.state / "uploads" / f"{uuid4().hex}{suffix}"
    try:
        draft.parent.mkdir(parents=True, exist_ok=True)
        yield draft
    except OSError as error:
        raise UserError(f"cannot write to {project.folder}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            draft.unlink()


async def receive(request: Request, draft: Path, name: str) -> None:
    """Write the body of a request to a file."""
    size = 0
    with draft.open("xb") as file:
        async for chunk in request.stream():
            size += len(chunk)
            if size > MAX_BYTES:
                raise UserError(f"{name[:80]} is too large: at most {MAX_BYTES >> 30} GB can be added here")
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def place(project: Project, draft: Path, name: str) -> ProjectVideo:
    """Check a received file, move it to its place and return it as a video of the project."""
    check_video(draft, name)
    with project.lock:
        target = choose_target(project, name)
        with target.open("xb"):  # taken now: nobody else can have this name
            pass
        os.replace(draft, target)
        project.refresh()
    for video in project.videos.values():
        if video.path == target:
            return video
    raise UserError(f"{target} was added but is not listed: {project.problem or 'reload the page'}")


def check_video(path: Path, name: str) -> None:
    """Refuse a file of which no frame can be decoded, without opening other files that it names."""
    av = load_av("reading video")
    options = {"format_whitelist": FORMATS, "protocol_whitelist": "file"}
    try:
        with av.open(str(path), metadata_errors="replace", options=options) as container:
            stream = find_video_stream(container)
            if stream is not None and next(container.decode(stream), None) is not None:
                return
    except (av.error.FFmpegError, OSError):
        pass
    raise VideoError(f"{name[:80]} is not a video that can be read here; does it play in a player?")
