"""What a corpus is made of, and how a worker gets at one video of it.

A corpus is a folder of videos, a LeRobot data set, a WebDataset archive or a folder of them, a list of paths
or URLs in a .txt file, or a URL. Listing opens no video. What is not a local file is copied to a temporary
one, whose name never comes from the archive or the network.
"""

import itertools
import shutil
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal
from urllib.parse import urlsplit, urlunsplit

from cycleback.data import VideoRecord, read_dataset
from cycleback.data.lerobot import LeRobotDataset, is_lerobot, read_lerobot
from cycleback.data.records import IMAGE_SUFFIXES, SEQUENCE_SUFFIX, Kind, Unit, check_name, remove_suffix
from cycleback.data.sources import FPS_FILE
from cycleback.embeddings.shards import video_id
from cycleback.errors import DataError, MissingDependencyError, UserError, require
from cycleback.reading import read_text
from cycleback.video import VIDEO_SUFFIXES

TAR, LIST = ".tar", ".txt"
SCRATCH = "cycleback-fetched-"  # begins the names of temporary folders
MAX_DOWNLOAD_BYTES = 64 << 30
MAX_DISK_SHARE = 0.5  # of the free disk that one download may fill
PIECE_BYTES = 1 << 20
MAX_NAME = 4096  # letters of a path or URL
ATTEMPTS, FIRST_WAIT_S = 3, 0.5  # a network fails now and then
HEADER_BLOCK = 64 << 10  # bytes read at a time to list an archive far away

Where = Literal["file", "url", "tar", "episode"]


@dataclass(frozen=True)
class Item:
    """One video of a corpus, in words that any machine understands."""

    name: str  # in the corpus, unique
    where: Where  # a file here; at a URL; in an archive; an episode of a LeRobot data set
    location: str  # path or URL of the file, archive or data set
    kind: Kind = "video"
    stamp: str = ""  # changes when the video does, as far as a listing tells
    action: str = ""
    events: Mapping[str, float] = field(default_factory=dict)
    unit: Unit = "frame"
    member: str = ""  # name in the archive, or camera of the episode
    offset: int = 0  # of the first byte in the archive, or number of the episode
    size: int = 0  # bytes in the archive
    problem: str = ""  # why the video cannot be used, if the listing tells already

    @property
    def id(self) -> str:
        """Name of its shard."""
        return video_id(self.name)

    @property
    def path(self) -> str:
        """Where the video is, for people; without user names, passwords and signatures."""
        shown = clean_url(self.location) if is_url(self.location) else self.location
        return f"{shown}#{self.member}" if self.where == "tar" else shown


def is_url(text: str) -> bool:
    """Tell whether a text is a URL such as s3://bucket/a.mp4."""
    return "://" in text


def clean_url(url: str) -> str:
    """Return a URL without user, password, and what follows the path: signatures expire, and are secret."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def list_corpus(corpus: str | Path) -> list[Item]:
    """List the videos of a corpus, in its order; each name occurs once.

    Raises:
        DataError: there is no such corpus, it is empty, or two videos have the same name.
    """
    text = str(corpus)
    if not _can_be_parsed(text):
        raise DataError(f"{text[:80]!r} is neither a path nor a URL")
    items = list(_list_url(text) if is_url(text) else _list_path(Path(text)))
    if not items:
        raise DataError(f"no videos in {text}. Expected files {' '.join(sorted(VIDEO_SUFFIXES))}.")
    counts = Counter(item.name for item in items)
    name, count = counts.most_common(1)[0]
    if count > 1:
        raise DataError(f"{text} has {count} videos of the name {name!r}. Rename or remove all but one.")
    for item in items:
        if len(item.name) > MAX_NAME:
            raise DataError(f"{text}: the name {item.name[:80]!r} … is longer than {MAX_NAME} letters")
        check_name(item.name)
    return items


def _list_path(path: Path) -> Iterator[Item]:
    if not path.exists():
        raise DataError(f"{path} does not exist; pass a folder, a {LIST} list, a {TAR} archive or a URL")
    if path.is_dir():
        tars = sorted(path.glob(f"*{TAR}"))
        if is_lerobot(path):
            return _list_episodes(path)
        if tars:
            return itertools.chain.from_iterable(_list_tar(str(tar)) for tar in tars)
        return _list_folder(path)
    if path.suffix.lower() == TAR:
        return _list_tar(str(path))
    if path.suffix.lower() == LIST:
        return _list_lines(path)
    return iter([_file_item(path, path.stem)])


def _list_folder(folder: Path) -> Iterator[Item]:
    for record in read_dataset(folder).records:
        item = _file_item(record.path, record.name)
        yield replace(
            item, kind=record.kind, action=record.action, events=dict(record.events), unit=record.unit
        )


def _file_item(path: Path, name: str) -> Item:
    kind: Kind = "sequence" if path.suffix.lower() == SEQUENCE_SUFFIX else "video"
    return Item(name, "file", str(path.absolute()), kind, stamp_file(path))


def stamp_file(path: Path) -> str:
    """Return size and time of change of a file; of a folder of images, those of all of them together."""
    try:
        if path.is_dir():
            files = [each for each in path.iterdir() if each.suffix.lower() in IMAGE_SUFFIXES]
            states = [each.stat() for each in files]
            newest = max((state.st_mtime_ns for state in states), default=0)
            return f"{len(states)} images, {sum(state.st_size for state in states)}/{newest}"
        state = path.stat()
        return f"{state.st_size}/{state.st_mtime_ns}"
    except (OSError, ValueError):  # the latter for a name that no file can have
        return ""  # the worker finds out what is wrong


def _list_lines(path: Path) -> Iterator[Item]:
    """List the videos that a text file names, one path or URL per line; # starts a comment.

    Paths count from the folder of the list.
    """
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if len(text) > MAX_NAME or not _can_be_parsed(text):
            raise DataError(f"{path}, line {number}: {text[:80]!r} is neither a path nor a URL")
        place = text if is_url(text) else str(path.parent / text)
        if PurePosixPath(clean_url(text) if is_url(text) else text).suffix.lower() == TAR:
            yield from _list_tar(place)
        elif is_url(text):
            yield Item(clean_url(text), "url", text)
        else:
            yield _file_item(Path(place), text)


def _can_be_parsed(text: str) -> bool:
    try:
        return not is_url(text) or bool(urlsplit(text).scheme)
    except ValueError:  # of a host such as [
        return False


def _list_url(url: str) -> Iterator[Item]:
    suffix = PurePosixPath(clean_url(url)).suffix.lower()
    if suffix == TAR:
        yield from _list_tar(url)
        return
    if suffix == LIST:
        with tempfile.TemporaryDirectory(prefix=SCRATCH) as scratch:
            copy = Path(scratch) / "list.txt"
            _download(url, copy)
            yield from _list_lines(copy)
        return
    if suffix in VIDEO_SUFFIXES:
        yield Item(clean_url(url), "url", url)
        return
    with _explained(url):
        system, root = _open_system(url)
        found = system.find(root, detail=True)
    prefix = root.rstrip("/") + "/"
    for path, about in sorted(found.items()):
        name = str(path).removeprefix(prefix)
        if PurePosixPath(name).suffix.lower() in VIDEO_SUFFIXES and not PurePosixPath(name).name.startswith(
            "."
        ):
            action = PurePosixPath(name).parent.as_posix().removeprefix(".")
            location = system.unstrip_protocol(path)
            yield Item(remove_suffix(name), "url", location, stamp=_stamp_remote(about), action=action)


def _stamp_remote(about: Mapping[str, Any]) -> str:
    """Return what a store tells about the version of a file."""
    known = (
        about.get(key) for key in ("size", "ETag", "etag", "md5Hash", "LastModified", "mtime", "created")
    )
    return "/".join(str(value) for value in known if value is not None)


def _list_tar(location: str) -> Iterator[Item]:
    """List the videos of a WebDataset archive: their names, and where their bytes are."""
    stem = PurePosixPath(clean_url(location) if is_url(location) else location).stem
    with _explained(location), _open_seekable(location) as stream:
        stamp = "" if is_url(location) else stamp_file(Path(location))
        with tarfile.open(fileobj=stream, mode="r:") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if PurePosixPath(name).suffix.lower() not in VIDEO_SUFFIXES:
                    continue
                yield Item(
                    f"{stem}/{remove_suffix(name)}",
                    "tar",
                    location,
                    stamp=f"{stamp}+{member.offset_data}/{member.size}",
                    member=name,
                    offset=member.offset_data,
                    size=member.size,
                    problem=_explain_member(member),
                )


def _explain_member(member: tarfile.TarInfo) -> str:
    """Say why a member of an archive is not taken; "" if it is."""
    parts = PurePosixPath(member.name).parts
    if not member.isreg():
        return "it is a link or a device in its archive, not a file"
    if member.name.startswith("/") or ".." in parts:
        return f"its name {member.name!r} leads out of the archive"
    return ""


def _list_episodes(folder: Path) -> Iterator[Item]:
    """List every episode of a LeRobot data set, seen by its first camera."""
    dataset = read_lerobot(folder)
    camera = dataset.camera()
    for episode in dataset.episodes:
        video = episode.videos[camera]
        stamp = f"{stamp_file(video.path)}+{video.start_s:g}/{episode.num_frames}"
        yield Item(
            episode.name,
            "episode",
            str(folder.absolute()),
            stamp=stamp,
            action=episode.tasks[0] if episode.tasks else "",
            member=camera,
            offset=episode.index,
        )


@contextmanager
def fetch(item: Item, *, size: tuple[int, int], fit: str) -> Iterator[VideoRecord]:
    """Yield a video as a record of a local file, which exists only within the block if it had to be copied.

    Args:
        size, fit: of the frames that will be read: an episode amid a file is cut out at that size.
    """
    if item.problem:
        raise DataError(f"{item.name}: {item.problem}")
    if item.where == "file":
        yield _make_record(item, Path(item.location))
        return
    with tempfile.TemporaryDirectory(prefix=SCRATCH) as scratch:
        if item.where == "episode":
            yield _fetch_episode(item, Path(scratch), size=size, fit=fit)
            return
        source = item.member or clean_url(item.location)
        path = Path(scratch) / (item.id + PurePosixPath(source).suffix.lower())
        if item.where == "tar":
            _copy_member(item, path)
        else:
            _download(item.location, path)
        yield _make_record(item, path)


def _make_record(item: Item, path: Path) -> VideoRecord:
    return VideoRecord(
        item.name, path, item.kind, action=item.action, events=dict(item.events), unit=item.unit
    )


def _fetch_episode(item: Item, scratch: Path, *, size: tuple[int, int], fit: str) -> VideoRecord:
    """Return the file of an episode; one that shares its file with others is cut out, without loss."""
    from PIL import Image

    dataset = _read_dataset_once(item.location)
    episode = dataset.episode(item.offset)
    video = episode.videos[item.member]
    if video.is_whole:
        return _make_record(item, video.path)
    folder = scratch / "frames"
    folder.mkdir()
    for chunk in dataset.iter_frames(episode, item.member, size=size, fit=fit):
        for number, frame in enumerate(chunk.frames, start=chunk.start):
            Image.fromarray(frame).save(folder / f"{number:06d}.png", compress_level=1)
    (folder / FPS_FILE).write_text(repr(dataset.fps), "utf-8")
    return replace(_make_record(item, folder), kind="frames")


@lru_cache(maxsize=2)
def _read_dataset_once(folder: str) -> LeRobotDataset:
    return read_lerobot(folder)


def _copy_member(item: Item, path: Path) -> None:
    """Copy one member out of an archive: only its bytes are read."""
    with _explained(item.location), _open_seekable(item.location) as stream, path.open("wb") as copy:
        stream.seek(item.offset)
        left = item.size
        _check_room(path, left)
        while left:
            piece = stream.read(min(left, PIECE_BYTES))
            if not piece:
                raise DataError(f"{item.path}: the archive ends within it. Download or pack it again.")
            copy.write(piece)
            left -= len(piece)


def _download(url: str, path: Path) -> None:
    """Copy a file from a URL; a network that fails is asked again."""
    for attempt in range(ATTEMPTS):
        try:
            with _explained(url):
                system, name = _open_system(url)
                with system.open(name, "rb") as stream:
                    _copy_stream(stream, path, url)
            return
        except MissingDependencyError:
            raise
        except DataError:
            if attempt + 1 == ATTEMPTS:
                raise
            time.sleep(FIRST_WAIT_S * 2**attempt)


def _copy_stream(stream: IO[bytes], path: Path, url: str) -> None:
    expected = getattr(stream, "size", None)
    done = 0
    _check_room(path, expected or 0)
    with path.open("wb") as copy:
        while piece := stream.read(PIECE_BYTES):
            done += len(piece)
            _check_room(path, len(piece) if done <= MAX_DOWNLOAD_BYTES else done)
            copy.write(piece)
    if isinstance(expected, int) and done != expected:
        raise DataError(f"{clean_url(url)}: got {done} of {expected} bytes")


def _check_room(path: Path, wanted: int) -> None:
    """Refuse a file that is too large to be copied here."""
    free = shutil.disk_usage(path.parent).free
    if wanted > min(MAX_DOWNLOAD_BYTES, MAX_DISK_SHARE * free):
        raise DataError(
            f"a video of {wanted >> 20} MB or more is too large for the {free >> 20} MB free in "
            f"{path.parent}. Set TMPDIR to a folder with more room."
        )


@contextmanager
def _open_seekable(location: str) -> Iterator[IO[bytes]]:
    """Open an archive here, or far away where the server hands out parts of a file."""
    if not is_url(location):
        with Path(location).open("rb") as file:
            yield file
        return
    system, name = _open_system(location)
    with system.open(name, "rb", block_size=HEADER_BLOCK) as stream:
        if not stream.seekable():
            raise DataError("the server does not hand out parts of a file; copy the archive to a disk")
        yield stream


def _open_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the name there."""
    fsspec: Any = require("fsspec.core", extra="remote", purpose=f"reading {urlsplit(url).scheme}://")
    try:
        return fsspec.url_to_fs(url)  # type: ignore[no-any-return]
    except ImportError as error:
        raise MissingDependencyError(f"cannot read {clean_url(url)}: {error}") from error


@contextmanager
def _explained(location: str) -> Iterator[None]:
    """Explain what cannot be read. File systems of fsspec raise errors of any type."""
    shown = clean_url(location) if is_url(location) else location
    try:
        yield
    except MissingDependencyError:
        raise
    except UserError as error:
        raise DataError(f"cannot read {shown}: {error}") from error
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0].replace(location, shown)[:200]
        raise DataError(f"cannot read {shown}: {reason or type(error).__name__}.") from error
