"""What goes with what: alignments of the videos of a project, and how similar their frames are.

Shapes: T frames of the reference, or of video a; S frames of the other video, or of b; L steps of a path.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

import numpy as np
from fastapi import APIRouter, Query, Response
from numpy.typing import NDArray
from pydantic import BaseModel

from cycleback.alignment import Alignment, align
from cycleback.alignment.align import AlignmentMethod
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError
from cycleback.progress import Counter, ignore
from cycleback.runs import PRETRAINED
from cycleback.web.embedded import NOT_EMBEDDED, ProjectEmbeddings
from cycleback.web.project import Project
from cycleback.web.tiles import Similarity, encode_png

if TYPE_CHECKING:
    from cycleback.web.app import Studio

MAX_KEPT_FRAMES = 4_000_000  # of the alignments in memory, about 64 bytes each
DIGITS = 4  # of confidences and costs in JSON

Indices = NDArray[np.int64]
Seconds = NDArray[np.float64]


class AlignmentCache:
    """The alignments that were used last. Threads that ask for the same one wait for the first of them."""

    def __init__(self, max_frames: int = MAX_KEPT_FRAMES) -> None:
        self.max_frames = max_frames
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Future[Alignment]] = OrderedDict()  # the one used last is last

    def fetch(self, key: Hashable, compute: Callable[[], Alignment]) -> Alignment:
        """Return the alignment with a key; it is computed if it is not kept."""
        with self._lock:
            is_new = key not in self._kept
            future = self._kept.setdefault(key, Future())
            self._kept.move_to_end(key)
        if is_new:
            self._fill(key, future, compute)
        return future.result()

    def _fill(self, key: Hashable, future: Future[Alignment], compute: Callable[[], Alignment]) -> None:
        try:
            future.set_result(compute())
        except Exception as error:
            future.set_exception(error)
        with self._lock:
            if future.exception() is not None:
                self._kept.pop(key, None)
            self._make_room()

    def _make_room(self) -> None:
        """Forget the alignments that were used longest ago, except the last one."""
        lengths = {key: len(each.result().indices) for key, each in self._kept.items() if each.done()}
        total = sum(lengths.values())
        for key in list(lengths)[:-1]:
            if total <= self.max_frames:
                return
            total -= lengths[key]
            del self._kept[key]


class Matches:
    """The embeddings of a project, and what is computed from them.

    Args:
        project: its embeddings are kept in `.cycleback/embeddings` (`cycleback.web.embedded`).
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.store = ProjectEmbeddings(project)
        self._alignments = AlignmentCache()
        self._compare = lru_cache(maxsize=64)(self._compare_frames)

    @property
    def embeddings(self) -> EmbeddingSet:
        """The embeddings of all videos that have some; an EmbeddingError says that there are none yet."""
        return self.store.current()

    def embed(self, run: str = PRETRAINED, *, progress: Counter = ignore) -> EmbeddingSet:
        """Embed what is not embedded by `run` yet, and use its embeddings from now on."""
        return self.store.embed(run, progress=progress)

    @property
    def revision(self) -> str:
        """Say which embeddings are in use, in a few letters that change with them."""
        return self.store.open().fingerprint

    def align(self, a: str, b: str, *, method: AlignmentMethod = "auto") -> Alignment:
        """Match every frame of the video with id `a` with a frame of video `b`."""
        first, second = self.embeddings_of(a), self.embeddings_of(b)
        key = (self.revision, a, b, method)
        return self._alignments.fetch(key, lambda: align(first, second, method=method))

    def follow(self, reference: str, other: str, *, method: AlignmentMethod = "auto") -> Indices:
        """Return the frame (T,) of video `other` to show with each frame of the reference."""
        match = self.align(reference, other, method=method)
        videos = self.store.open().videos
        clock, own = (videos.times(self.project.video(id).name) for id in (reference, other))
        return follow_reference(match, clock, own)

    def similarity(self, a: str, b: str) -> Similarity:
        """Compare the frames of two videos."""
        return self._compare(self.revision, a, b)

    def embeddings_of(self, id: str) -> NDArray[np.float32]:
        """Return the embeddings (N, D) of one video."""
        video, saved = self.project.video(id), self.store.open()
        if not saved.is_current(video):
            raise EmbeddingError(f"{video.name} is {NOT_EMBEDDED}")
        return saved.videos[video.name]

    def _compare_frames(self, revision: str, a: str, b: str) -> Similarity:
        return Similarity.measure(self.embeddings_of(a), self.embeddings_of(b))


def follow_reference(match: Alignment, clock: Seconds, own: Seconds) -> Indices:
    """Return the frame (T,) of the matched video to show with each frame of the reference.

    Frames that the match leaves out play at the pace of the reference, as far as the video goes.

    Args:
        match: of the reference to the video.
        clock: (T,) seconds of the frames of the reference.
        own: (S,) seconds of the frames of the video.
    """
    inside = np.clip(np.arange(len(clock)), *np.flatnonzero(match.matched)[[0, -1]])
    seconds = own[match.indices] + clock - clock[inside]
    nearest = np.searchsorted((own[1:] + own[:-1]) / 2, seconds)
    return np.where(match.matched, match.indices, nearest)


class AlignedVideo(BaseModel):
    """One video at the pace of the reference; all lists have one entry per frame of the reference."""

    id: str
    frames: list[int]
    confidence: list[float]
    matched: list[bool]  # False where the reference shows what this video does not


class AlignmentItem(BaseModel):
    """Several videos at the pace of one."""

    reference: str
    method: AlignmentMethod
    revision: str
    videos: list[AlignedVideo]


class PairItem(BaseModel):
    """The alignment of two videos in full."""

    a: str
    b: str
    method: AlignmentMethod
    revision: str
    size: tuple[int, int]  # frames of a and of b
    levels: int  # of tiles
    frames: list[int]  # of b, to show with each frame of a
    confidence: list[float]
    matched: list[bool]
    path: list[tuple[int, int]]  # all pairs of frames on the path; with "nearest" one per frame of a
    cost: float  # the mean squared distance of the matched frames


class EmbeddingsItem(BaseModel):
    """What is embedded and what is not."""

    run: str | None  # None: nothing is embedded yet
    revision: str
    videos: list[str]  # ids
    waiting: list[str]  # ids of videos that were added or changed since


def routes(studio: "Studio") -> APIRouter:
    """Serve embeddings, alignments and similarity."""
    router, matches = APIRouter(), studio.matches

    @router.get("/embeddings")
    def show_embeddings() -> EmbeddingsItem:
        waiting = [video.id for video in matches.store.waiting()]
        ready = [id for id in matches.project.videos if id not in set(waiting)]
        saved = matches.store.open() if ready else None
        run, revision = (None, "") if saved is None else (saved.run, saved.fingerprint)
        return EmbeddingsItem(run=run, revision=revision, videos=ready, waiting=waiting)

    @router.get("/alignment")
    def show_alignment(
        reference: str, videos: Annotated[str, Query()], method: AlignmentMethod = "auto"
    ) -> AlignmentItem:
        """Put videos, ids separated by commas, on the pace of the reference."""
        others = [id for id in videos.split(",") if id]
        aligned = [describe_match(matches, reference, id, method) for id in others]
        return AlignmentItem(reference=reference, method=method, revision=matches.revision, videos=aligned)

    @router.get("/pairs/{a}/{b}")
    def show_pair(a: str, b: str, method: AlignmentMethod = "auto") -> PairItem:
        return describe_pair(matches, a, b, method)

    @router.get("/pairs/{a}/{b}/tiles/{level}/{x}/{y}.png", response_class=Response)
    def show_tile(a: str, b: str, level: int, x: int, y: int) -> Response:
        png = encode_png(matches.similarity(a, b).tile(level, x, y))
        return Response(png, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})

    return router


def describe_match(matches: Matches, reference: str, id: str, method: AlignmentMethod) -> AlignedVideo:
    """Return one video at the pace of the reference, as JSON."""
    if id == reference:
        length = len(matches.embeddings_of(id))
        return AlignedVideo(
            id=id, frames=list(range(length)), confidence=[1.0] * length, matched=[True] * length
        )
    match = matches.align(reference, id, method=method)
    return AlignedVideo(
        id=id,
        frames=matches.follow(reference, id, method=method).tolist(),
        confidence=match.confidence.round(DIGITS).tolist(),
        matched=match.matched.tolist(),
    )


def describe_pair(matches: Matches, a: str, b: str, method: AlignmentMethod) -> PairItem:
    """Return the alignment of two videos, as JSON."""
    match, similarity = matches.align(a, b, method=method), matches.similarity(a, b)
    path = (
        match.path if match.path is not None else np.stack([np.arange(len(match.indices)), match.indices], 1)
    )
    return PairItem(
        a=a,
        b=b,
        method=method,
        revision=matches.revision,
        size=(len(similarity.a), len(similarity.b)),
        levels=similarity.levels,
        frames=matches.follow(a, b, method=method).tolist(),
        confidence=match.confidence.round(DIGITS).tolist(),
        matched=match.matched.tolist(),
        path=path.tolist(),
        cost=round(float(match.distances[match.matched].mean()), DIGITS),
    )
