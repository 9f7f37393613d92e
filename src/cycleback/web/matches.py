"""What goes with what: alignments of the videos of a project, pins that correct them, and their similarity.

Shapes: T frames of the reference, or of video a; S frames of the other video, or of b; L steps of a path.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

import numpy as np
from fastapi import APIRouter, Query, Response
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from cycleback.alignment import Alignment, align
from cycleback.alignment.align import AlignmentMethod
from cycleback.alignment.pins import Pairs
from cycleback.applications.pace import pin_to_reference
from cycleback.applications.verdict import Verdict, judge
from cycleback.data.pins import COLUMNS, PINS_FILE, Pin
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError
from cycleback.progress import Counter, ignore
from cycleback.runs import PRETRAINED
from cycleback.tables import format_csv
from cycleback.web.embedded import NOT_EMBEDDED, ProjectEmbeddings
from cycleback.web.journal import Journal
from cycleback.web.pins import PinList, ProjectPins
from cycleback.web.project import NotFound, Project, video_id
from cycleback.web.tiles import Similarity, encode_png

if TYPE_CHECKING:
    from cycleback.web.app import Studio

MAX_KEPT_FRAMES = 4_000_000  # of the alignments in memory, about 64 bytes each
MAX_FRAME = 10_000_000  # four days at 30 fps
DIGITS = 4  # of confidences and costs in JSON

Frame = Annotated[int, Field(ge=0, le=MAX_FRAME)]
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
        journal: holds the pins (`cycleback.web.pins`).
    """

    def __init__(self, project: Project, journal: Journal) -> None:
        self.project = project
        self.store = ProjectEmbeddings(project)
        self.pins = ProjectPins(project, journal, count_frames=self.count_frames)
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
        """Name the embeddings and pins in use by a few letters that change with them."""
        return f"{self.store.open().fingerprint}.{self.pins.read().revision}"

    def align(
        self, a: str, b: str, *, method: AlignmentMethod = "auto", pins: Pairs | None = None
    ) -> Alignment:
        """Match every frame of the video with id `a` with a frame of video `b`.

        Args:
            pins: (frame of a, frame of b) each; by default those between the two videos.
        """
        first, second = self.embeddings_of(a), self.embeddings_of(b)
        pairs = self.pins_between(a, b) if pins is None else [(int(i), int(j)) for i, j in pins]
        key = (self.store.open().fingerprint, tuple(pairs), a, b, method)
        return self._alignments.fetch(key, lambda: align(first, second, method=method, pins=pairs))

    def align_all(
        self, reference: str, others: Sequence[str], *, method: AlignmentMethod = "auto"
    ) -> dict[str, Alignment]:
        """Match every frame of the reference with a frame of each other video, by id.

        A pin between two of the others holds, too: both pinned frames are shown together.
        """
        names = {id: self.project.video(id).name for id in (reference, *others)}
        pinned = pin_to_reference(
            self.embeddings,
            list(names.values()),
            reference=names[reference],
            method=method,
            pins=self.pins.read().pins,
        )
        return {id: self.align(reference, id, method=method, pins=pinned[names[id]]) for id in others}

    def follow(self, match: Alignment, reference: str, other: str) -> Indices:
        """Return the frame (T,) of video `other` to show with each frame of the reference."""
        videos = self.store.open().videos
        clock, own = (videos.times(self.project.video(id).name) for id in (reference, other))
        return follow_reference(match, clock, own)

    def pins_between(self, a: str, b: str) -> list[tuple[int, int]]:
        """Return the pinned pairs (frame of a, frame of b) of two videos, by id."""
        return self.pins.between(self.project.video(a).name, self.project.video(b).name)

    def similarity(self, a: str, b: str) -> Similarity:
        """Compare the frames of two videos."""
        return self._compare(self.store.open().fingerprint, a, b)

    def is_embedded(self, id: str) -> bool:
        """Whether a video has embeddings, and its file is the one that was embedded."""
        return self.store.open().is_current(self.project.video(id))

    def embeddings_of(self, id: str) -> NDArray[np.float32]:
        """Return the embeddings (N, D) of one video."""
        video = self.project.video(id)
        if not self.is_embedded(id):
            raise EmbeddingError(f"{video.name} is {NOT_EMBEDDED}")
        return self.store.open().videos[video.name]

    def judge(self, a: str, b: str, match: Alignment) -> Verdict:
        """Judge the match of two videos."""
        names = (self.project.video(a).name, self.project.video(b).name)
        own = match.confidence[match.matched]
        sure = float(own.mean()) if len(own) else 0.0
        return judge(self.store.open().videos, names[0], names[1:], confidence=sure, are_takes=True)

    def count_frames(self, name: str) -> int | None:
        """Return the number of frames of the video with a name; None if it is gone or cannot be read."""
        video = self.project.videos.get(video_id(name))
        if video is None:
            return None
        try:
            return len(self.embeddings_of(video.id))
        except EmbeddingError:
            video.look()
            return None if video.error else video.info.num_frames

    def _compare_frames(self, fingerprint: str, a: str, b: str) -> Similarity:
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
    waiting: list[str]  # ids of videos that are not embedded yet


class MatrixItem(BaseModel):
    """How the similarity of two videos is cut into tiles."""

    a: str
    b: str
    size: tuple[int, int]  # frames of a and of b
    levels: int
    version: str  # changes with the embeddings


class PairItem(MatrixItem):
    """The alignment of two videos in full."""

    method: AlignmentMethod
    revision: str
    frames: list[int]  # of b, to show with each frame of a
    confidence: list[float]
    matched: list[bool]
    pins: list[tuple[int, int]]  # frame of a, frame of b
    path: list[tuple[int, int]]  # all pairs of frames on the path; with "nearest" one per frame of a
    cost: float  # the mean squared distance of the matched frames
    verdict: str  # one line: whether the match can be trusted


class PinsItem(BaseModel):
    """All pins of the project; each is (id of a, frame of a, id of b, frame of b)."""

    revision: int
    pins: list[tuple[str, int, str, int]]
    can_undo: bool
    problem: str  # why pins.csv, which was edited by other means, cannot be used


class NewPins(BaseModel):
    """Pins to replace those of a revision."""

    revision: int
    pins: list[tuple[str, Frame, str, Frame]]


class Undo(BaseModel):
    """The revision to undo."""

    revision: int


class EmbeddingsItem(BaseModel):
    """What is embedded and what is not."""

    run: str | None  # None: nothing is embedded yet
    revision: str
    videos: list[str]  # ids
    waiting: list[str]  # ids of videos that were added or changed since


def routes(studio: "Studio") -> APIRouter:
    """Serve embeddings, alignments, similarity and pins."""
    router, matches = APIRouter(), studio.matches
    router.include_router(pin_routes(matches))

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
        others = list(dict.fromkeys(id for id in videos.split(",") if id))
        ready = [id for id in others if matches.is_embedded(id)]
        for id in (reference, *others)[: 1 if ready else None]:
            matches.embeddings_of(id)  # names the video that is not embedded
        revision = matches.revision  # before: whoever gets older matches must be able to see that
        found = matches.align_all(reference, ready, method=method)
        return AlignmentItem(
            reference=reference,
            method=method,
            revision=revision,
            videos=[describe_match(matches, reference, id, match) for id, match in found.items()],
            waiting=[id for id in others if id not in ready],
        )

    @router.get("/pairs/{a}/{b}")
    def show_pair(a: str, b: str, method: AlignmentMethod = "auto") -> PairItem:
        return describe_pair(matches, a, b, method)

    @router.get("/pairs/{a}/{b}/matrix")
    def show_matrix(a: str, b: str) -> MatrixItem:
        """Tell what tiles there are; a page shows them while two long videos are aligned."""
        return describe_matrix(matches, a, b)

    @router.get("/pairs/{a}/{b}/tiles/{level}/{x}/{y}.png", response_class=Response)
    def show_tile(a: str, b: str, level: int, x: int, y: int) -> Response:
        png = encode_png(matches.similarity(a, b).tile(level, x, y))
        return Response(png, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})

    return router


def pin_routes(matches: Matches) -> APIRouter:
    """Serve the pins."""
    router, pins = APIRouter(), matches.pins

    @router.get("/pins")
    def show_pins() -> PinsItem:
        return describe_pins(pins.read())

    @router.put("/pins")
    def write_pins(new: NewPins) -> PinsItem:
        return describe_pins(pins.write(name_pins(matches, new.pins), new.revision))

    @router.post("/pins/undo")
    def undo_pins(last: Undo) -> PinsItem:
        return describe_pins(pins.undo(last.revision))

    @router.get("/pins.csv")
    def send_pins() -> Response:
        rows = [asdict(pin) for pin in pins.read().pins]
        headers = {"Content-Disposition": f'attachment; filename="{PINS_FILE}"'}
        return Response(format_csv(rows, columns=COLUMNS), media_type="text/csv", headers=headers)

    return router


def describe_pins(listed: PinList) -> PinsItem:
    """Return pins with the ids of their videos, as JSON."""
    pins = [(video_id(p.video_a), p.frame_a, video_id(p.video_b), p.frame_b) for p in listed.pins]
    can_undo = listed.before is not None
    return PinsItem(revision=listed.revision, pins=pins, can_undo=can_undo, problem=listed.problem)


def name_pins(matches: Matches, pins: Sequence[tuple[str, int, str, int]]) -> list[Pin]:
    """Return pins with the names of their videos; pins of videos that are gone are known by their ids."""
    names = {id: video.name for id, video in matches.project.videos.items()}
    kept = [name for pin in matches.pins.read().pins for name in (pin.video_a, pin.video_b)]
    names |= {video_id(name): name for name in kept}
    for id in (id for pin in pins for id in pin[::2]):
        if id not in names:
            raise NotFound(f"no video {id!r} in {matches.project.folder}; reload the page")
    return [Pin(names[a], i, names[b], j) for a, i, b, j in pins]


def describe_match(matches: Matches, reference: str, id: str, match: Alignment) -> AlignedVideo:
    """Return one video at the pace of the reference, as JSON."""
    return AlignedVideo(
        id=id,
        frames=matches.follow(match, reference, id).tolist(),
        confidence=match.confidence.round(DIGITS).tolist(),
        matched=match.matched.tolist(),
    )


def describe_matrix(matches: Matches, a: str, b: str) -> MatrixItem:
    """Return the tiles of two videos, as JSON."""
    similarity = matches.similarity(a, b)
    size = len(similarity.a), len(similarity.b)
    version = matches.store.open().fingerprint
    return MatrixItem(a=a, b=b, size=size, levels=similarity.levels, version=version)


def describe_pair(matches: Matches, a: str, b: str, method: AlignmentMethod) -> PairItem:
    """Return the alignment of two videos, as JSON."""
    revision = matches.revision  # before: whoever gets an older path must be able to see that
    match = matches.align(a, b, method=method)
    path = match.path
    if path is None:
        path = np.stack([np.arange(len(match.indices)), match.indices], axis=1)
    return PairItem(
        **describe_matrix(matches, a, b).model_dump(),
        method=method,
        revision=revision,
        frames=matches.follow(match, a, b).tolist(),
        confidence=match.confidence.round(DIGITS).tolist(),
        matched=match.matched.tolist(),
        pins=matches.pins_between(a, b),
        path=path.tolist(),
        cost=round(float(match.distances[match.matched].mean()), DIGITS),
        verdict=str(matches.judge(a, b, match)),
    )
