"""The embeddings of a project, kept in `.cycleback/embeddings`: one set per run, and which one is in use.

    embeddings/KEY/       the embedding set of a run, memory-mapped when it is used
    embeddings/KEY.json   the run, and the stamp of each video file when it was embedded
    embeddings/in-use     the KEY of the set that the page shows

Another process may write them: a change of the two small files is noticed at the next use. Videos that were
added or changed since are left out of the set until `embed` is called again.
"""

import hashlib
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from cycleback.data import Dataset
from cycleback.data.labels import event_order
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import DataError, EmbeddingError
from cycleback.files import write_json, write_text
from cycleback.progress import Counter, ignore
from cycleback.reading import Cursor, read_json, read_text
from cycleback.runs import PRETRAINED, embed_videos, load_encoder
from cycleback.web.project import Project, ProjectVideo, Stamp

FOLDER = "embeddings"
IN_USE = "in-use"
AGAIN = "embed the videos again"
NOT_EMBEDDED = "not embedded yet: open Start and embed the videos"


@dataclass(frozen=True, eq=False)
class SavedSet:
    """One embedding set on disk, and the files it was made from."""

    run: str
    fingerprint: str  # a new one each time a set is written
    stamps: dict[str, Stamp]  # by name of the video
    videos: EmbeddingSet

    def is_current(self, video: ProjectVideo) -> bool:
        """Whether a video is in the set, and its file is the one that was embedded."""
        return video.name in self.videos and self.stamps.get(video.name) == video.stamp


@dataclass
class ProjectEmbeddings:
    """Open, extend and replace the embedding set of a project."""

    project: Project
    _opened: tuple[object, SavedSet] | None = field(default=None, repr=False)  # with the state of its files
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @property
    def folder(self) -> Path:
        """The folder of all sets."""
        return self.project.state / FOLDER

    def open(self) -> SavedSet:
        """Return the set in use; it is read again only after it changed on disk."""
        in_use = self.folder / IN_USE
        with self._lock:
            if not in_use.is_file():
                raise EmbeddingError(f"the videos of {self.project.folder.name} are {NOT_EMBEDDED}")
            key = read_text(in_use, problem=EmbeddingError).strip()
            about = self.folder / f"{key}.json"
            if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", key) or not about.is_file():
                raise EmbeddingError(f"{in_use} names {key[:60]!r}, which is no embedding set here: {AGAIN}")
            state = [(path.name, path.stat().st_mtime_ns, path.stat().st_ino) for path in (in_use, about)]
            if self._opened is None or self._opened[0] != state:
                self._opened = state, self._read(about)
            return self._opened[1]

    def current(self) -> EmbeddingSet:
        """Return the embeddings of the videos whose files are as they were embedded."""
        saved = self.open()
        names = [video.name for video in self.project.videos.values() if saved.is_current(video)]
        if not names:
            raise EmbeddingError(f"the videos of {self.project.folder.name} are {NOT_EMBEDDED}")
        return saved.videos.subset(names)

    def waiting(self) -> list[ProjectVideo]:
        """Return the videos that were added or changed since the set in use was made, and can be read."""
        videos = [video for video in self.project.videos.values() if not video.error]
        try:
            saved = self.open()
        except EmbeddingError:
            return videos
        return [video for video in videos if not saved.is_current(video)]

    def embed(self, run: str = PRETRAINED, *, progress: Counter = ignore) -> EmbeddingSet:
        """Embed the videos that have no embeddings by `run` yet, and use its set from now on.

        A few new videos are embedded like those already there. If most videos are new, or the run is a
        trained one, all are embedded: what was computed for their frames is in the cache anyway.
        """
        self.project.refresh()
        videos = self._readable()
        if not videos:
            raise DataError(f"{self.project.folder} has no videos that can be read; add some first")
        stamps = {video.name: video.stamp for video in videos}
        saved = self._saved(run)
        kept = [video for video in videos if saved is not None and saved.is_current(video)]
        if saved is not None and len(kept) == len(videos) and _made_by(run, saved.videos):
            self._use(run)
            return saved.videos.subset([video.name for video in videos])

        def compute(some: Sequence[ProjectVideo], alike: EmbeddingSet | None = None) -> EmbeddingSet:
            records = tuple(video.record for video in some)
            dataset = Dataset(self.project.folder, records, event_order(records))
            return embed_videos(run, dataset, alike=alike, progress=progress)

        if saved is None or run != PRETRAINED or 2 * len(kept) < len(videos):
            return self.store(compute(videos), run=run, stamps=stamps)
        known = saved.videos.subset([video.name for video in kept])
        added = compute([video for video in videos if video.name not in known], known)
        if added.encoder != known.encoder:  # the package was updated since
            return self.store(compute(videos), run=run, stamps=stamps)
        return self.store(_join(videos, known, added), run=run, stamps=stamps)

    def use(self, run: str) -> None:
        """Use the set of a run from now on; it must have been embedded before."""
        if self._saved(run) is None:
            raise EmbeddingError(f"the videos are not embedded by {Path(run).name}: start it again")
        self._use(run)

    def store(
        self, embeddings: EmbeddingSet, *, run: str = PRETRAINED, stamps: dict[str, Stamp] | None = None
    ) -> EmbeddingSet:
        """Write the set of a run and use it from now on; return it memory-mapped.

        Args:
            stamps: of the files that were embedded (default: as they are now).
        """
        if stamps is None:
            stamps = {name: self.project.find(name).stamp for name in embeddings}
        key = _key(run)
        with self._lock:
            embeddings.save(self.folder / key, overwrite=True)
            about = {"run": run, "fingerprint": uuid4().hex[:12], "files": stamps}
            write_json(self.folder / f"{key}.json", about, overwrite=True)
            self._use(run)
            return self.open().videos

    def _readable(self) -> list[ProjectVideo]:
        """Return the videos that can be read: one broken file should not hold up the others."""
        videos = list(self.project.videos.values())
        for video in videos:
            video.look()
        return [video for video in videos if not video.error]

    def _use(self, run: str) -> None:
        write_text(self.folder / IN_USE, _key(run) + "\n", overwrite=True)

    def _saved(self, run: str) -> SavedSet | None:
        """Read the set of a run; None where there is none that can be used."""
        about = self.folder / f"{_key(run)}.json"
        try:
            return self._read(about) if about.is_file() else None
        except EmbeddingError:
            return None

    def _read(self, about: Path) -> SavedSet:
        root = read_json(about, problem=EmbeddingError, advice=f": {AGAIN}")
        stamps = {name: _read_stamp(stamp) for name, stamp in root.at("files").items()}
        run, fingerprint = root.at("run").text(), root.at("fingerprint").text()
        return SavedSet(run, fingerprint, stamps, EmbeddingSet.load(about.with_suffix("")))


def _read_stamp(stamp: Cursor) -> Stamp:
    numbers = [each.value for each in stamp.each()]
    if len(numbers) != 2 or not all(type(number) is int for number in numbers):
        raise stamp.expected("the time of change and the size of a file")
    return numbers[0], numbers[1]  # nanoseconds since 1970 are more than a `Cursor` takes for a number


def _key(run: str) -> str:
    """Return a file name for the set of a run: readable, and different for every run."""
    if run == PRETRAINED:
        return run
    words = re.sub(r"[^A-Za-z0-9]+", "-", Path(run).name).strip("-")
    return f"{words[:40]}-{hashlib.sha256(run.encode()).hexdigest()[:8]}"


def _made_by(run: str, videos: EmbeddingSet) -> bool:
    """Whether the encoder of a run is still the one that made a set; a run may be trained again."""
    from cycleback.models import fingerprint

    return run == PRETRAINED or fingerprint(load_encoder(run)) == videos.encoder


def _join(order: Sequence[ProjectVideo], first: EmbeddingSet, second: EmbeddingSet) -> EmbeddingSet:
    """Return two sets of the same encoder as one, in the order of the project."""
    home = {video.name: first if video.name in first else second for video in order}
    return EmbeddingSet.from_arrays(
        {name: videos[name] for name, videos in home.items()},
        times={name: videos.times(name) for name, videos in home.items()},
        events={name: videos.events(name) for name, videos in home.items()},
        actions={video.name: video.record.action for video in order},
        paths={video.name: str(video.path) for video in order},
        encoder=second.encoder,
        can_count_frames=second.can_count_frames,
        streams=second.streams,
        event_names=list(dict.fromkeys([*first.event_names, *second.event_names])),
    )
