"""Look through a project: find a moment, the odd takes, a map of all frames, progress, and borrowed sound.

Everything is computed from the embeddings when it is first asked for, and kept until they change.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from fastapi.responses import FileResponse
from pydantic import BaseModel

from cycleback.alignment.distances import spread_frames
from cycleback.applications import measure_progress, transfer_sound, write_with_sound
from cycleback.applications.anomalies import MIN_TAKES, AnomalyScores, fit_anomaly_model, score_take
from cycleback.applications.plots.maps import project as project_to_plane
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import UserError
from cycleback.runs.cells import embed_cells, has_videos
from cycleback.search.corpus import Corpus
from cycleback.search.hits import find
from cycleback.search.query import make_frame_query
from cycleback.web.project import video_id

if TYPE_CHECKING:
    from cycleback.web.app import Studio

SOUNDS_FOLDER = "sounds"  # in the state folder of a project
MAX_KEPT = 16  # results in memory
MAX_GOOD_TAKES = 12  # that others are compared with, where the user did not choose
MAX_MAP_FRAMES = 3000  # of all videos together; more would take t-SNE minutes
MAX_MAP_VIDEOS = 60
DIGITS = 4


class Kept:
    """The last results by key. Threads that ask for the same one wait for the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._results: OrderedDict[Hashable, Future[Any]] = OrderedDict()

    def fetch(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return the result with a key; compute it if it is not kept."""
        with self._lock:
            is_new = key not in self._results
            future = self._results.setdefault(key, Future())
            self._results.move_to_end(key)
            while len(self._results) > MAX_KEPT:
                self._results.popitem(last=False)
        if is_new:
            try:
                future.set_result(compute())
            except Exception as error:
                future.set_exception(error)
                with self._lock:
                    self._results.pop(key, None)
        return future.result()


# -------------------------------------------------------------------------------------------- odd takes


def score_takes(
    videos: EmbeddingSet, good: Sequence[str], *, cells: Mapping[str, EmbeddingSet] | None = None
) -> dict[str, AnomalyScores]:
    """Score every video against good takes; a good take is scored against the other good takes.

    Args:
        videos: embeddings of all takes.
        good: names of the good takes; empty takes up to 12 videos, evenly spread over the list.
        cells: the cells of all takes by stream, to compare these, too.
    """
    chosen = list(good) or spread_names(videos.names, MAX_GOOD_TAKES)
    if len(chosen) < MIN_TAKES:
        raise UserError(
            f"{len(chosen)} takes cannot say what is typical; expected at least {MIN_TAKES}: add videos"
        )
    own = dict(cells or {})
    model = fit_anomaly_model(
        videos.subset(chosen), cells={stream: each.subset(chosen) for stream, each in own.items()}
    )
    return {
        name: model.score_own(name) if name in model.names else score_take(model, name, [videos], own)
        for name in videos.names
    }


def look_at_cells(videos: EmbeddingSet) -> dict[str, EmbeddingSet]:
    """Describe the cells of the frames of all videos; nothing where a video is gone or cannot be read."""
    if not has_videos(videos):
        return {}
    try:
        return embed_cells(videos)
    except UserError:
        return {}


def spread_names(names: Sequence[str], most: int) -> list[str]:
    """Choose at most so many names, evenly spread."""
    return [names[place] for place in spread_frames(len(names), most)]


# -------------------------------------------------------------------------------------------------- map


def draw_trajectories(videos: EmbeddingSet, by: str) -> dict[str, tuple[list[int], list[list[float]]]]:
    """Return some frames of each video and their places (x, y) from 0 to 1 in one plane."""
    names = spread_names(videos.names, MAX_MAP_VIDEOS)
    per_video = max(8, MAX_MAP_FRAMES // len(names))
    frames = {name: spread_frames(len(videos[name]), per_video) for name in names}
    rows = np.concatenate([videos[name][frames[name]] for name in names])
    points = project_to_plane(rows, by=by)
    low, high = points.min(axis=0), points.max(axis=0)
    places = ((points - (low + high) / 2) / max(float((high - low).max()), 1e-12) + 0.5).round(DIGITS)
    starts = np.cumsum([0, *(len(frames[name]) for name in names)])
    return {
        name: (frames[name].tolist(), places[start : start + len(frames[name])].tolist())
        for name, start in zip(names, starts[:-1], strict=True)
    }


# ----------------------------------------------------------------------------------------------- routes


class HitItem(BaseModel):
    """A moment that was found."""

    id: str
    frame: int
    seconds: float
    similarity: float  # 1 for an equal frame, 0 for one no nearer than most


class OddityItem(BaseModel):
    """What is odd about a part of a take."""

    kind: str
    stream: str
    first: int
    last: int
    text: str


class TakeItem(BaseModel):
    """How odd one take is, frame by frame."""

    id: str
    verdict: str
    scores: list[float]
    threshold: float
    spans: list[tuple[int, int]]
    peak: int
    oddities: list[OddityItem]  # empty for a typical take
    streams: list[str]  # that were compared


class TrajectoryItem(BaseModel):
    """Some frames of one video and their places in the map."""

    id: str
    frames: list[int]
    points: list[list[float]]  # x and y from 0 to 1


class ProgressItem(BaseModel):
    """How far the action is at each frame."""

    id: str
    progress: list[float]
    confidence: list[float]


class Explorer:
    """Answers about the videos of a project, by id."""

    def __init__(self, studio: "Studio") -> None:
        self._studio, self._kept = studio, Kept()

    def recall(self, *key: Hashable, compute: Callable[[EmbeddingSet], Any]) -> Any:
        """Return what is computed from the embeddings, or was computed before."""
        videos = self._studio.matches.embeddings
        return self._kept.fetch((self._studio.matches.revision, *key), lambda: compute(videos))

    def name(self, id: str) -> str:
        """Return the name of a video."""
        return self._studio.project.video(id).name

    def search(self, id: str, frame: int, *, count: int, per_video: int) -> list[HitItem]:
        """Find the same moment in the other videos, the most similar first."""
        corpus = self.recall("corpus", compute=Corpus.of_set)
        query = make_frame_query(corpus, self.name(id), frame=frame)
        return [
            HitItem(
                id=video_id(hit.video),
                frame=hit.frame,
                seconds=round(hit.seconds, 6),
                similarity=round(hit.similarity, DIGITS),
            )
            for hit in find(corpus, query, k=count, per_video=per_video)
        ]

    def score(self, good: Sequence[str]) -> list[TakeItem]:
        """Score all takes against good ones, the oddest first."""
        names = tuple(map(self.name, good))
        cells = self.recall("cells", compute=look_at_cells)
        scores = self.recall("anomalies", names, compute=lambda v: score_takes(v, names, cells=cells))
        videos = self._studio.matches.embeddings
        takes = [
            TakeItem(
                id=video_id(name),
                verdict=each.verdict,
                scores=each.scores.round(DIGITS).tolist(),
                threshold=round(each.threshold, DIGITS),
                spans=list(each.spans),
                peak=each.peak,
                oddities=[
                    OddityItem(
                        kind=oddity.kind,
                        stream=oddity.stream,
                        first=oddity.first,
                        last=oddity.last,
                        text=oddity.describe(videos.times(name)),
                    )
                    for oddity in (each.oddities if each.verdict != "typical" else ())
                ],
                streams=[*each.streams],
            )
            for name, each in scores.items()
        ]
        return sorted(takes, key=lambda take: (take.verdict == "typical", take.threshold - max(take.scores)))

    def place(self, by: str) -> list[TrajectoryItem]:
        """Place the frames of all videos in a plane."""
        drawn = self.recall("map", by, compute=lambda videos: draw_trajectories(videos, by))
        return [
            TrajectoryItem(id=video_id(name), frames=frames, points=points)
            for name, (frames, points) in drawn.items()
        ]

    def measure(self, reference: str) -> list[ProgressItem]:
        """Measure how far the action is in every video, by the clock of a reference."""
        name = self.name(reference)
        report = self.recall("progress", name, compute=lambda videos: measure_progress(videos, name))
        return [
            ProgressItem(
                id=video_id(video),
                progress=signal.progress.round(DIGITS).tolist(),
                confidence=signal.confidence.round(DIGITS).tolist(),
            )
            for video, signal in report.signals.items()
        ]

    def write_sound(self, source: str, target: str, *, suffix: str) -> Path:
        """Write the sound of one video, retimed to another, as .wav or with its pictures as .mp4."""
        project = self._studio.project
        heard, seen = project.video(source), project.video(target)

        def write(videos: EmbeddingSet) -> Path:
            path = project.state / SOUNDS_FOLDER / f"{heard.id}-{seen.id}{suffix}"
            sound = transfer_sound(videos, heard.name, seen.name, pins=self._studio.matches.pins.read().pins)
            path.parent.mkdir(parents=True, exist_ok=True)
            return write_with_sound(path, seen.path, sound.audio, overwrite=True)

        path: Path = self.recall("sound", source, target, suffix, compute=write)
        return path


def routes(studio: "Studio") -> APIRouter:
    """Search, odd takes, map, progress and sound."""
    router, explorer = APIRouter(), Explorer(studio)

    @router.get("/search")
    def search(
        video: str,
        frame: Annotated[int, Query(ge=0)],
        count: Annotated[int, Query(ge=1, le=500)] = 60,
        per_video: Annotated[int, Query(ge=1, le=20)] = 1,
    ) -> list[HitItem]:
        """Find the same moment in the other videos, the most similar first."""
        return explorer.search(video, frame, count=count, per_video=per_video)

    @router.get("/anomalies")
    def list_anomalies(good: str = "") -> list[TakeItem]:
        """Score all takes against good ones (ids with commas between), the oddest first."""
        return explorer.score([id for id in good.split(",") if id])

    @router.get("/map")
    def show_map(by: Annotated[str, Query(pattern="^(pca|tsne)$")] = "pca") -> list[TrajectoryItem]:
        """Place the frames of all videos in a plane: similar frames lie close together."""
        return explorer.place(by)

    @router.get("/progress")
    def show_progress(reference: str) -> list[ProgressItem]:
        """Measure how far the action is in every video, by the clock of a reference."""
        return explorer.measure(reference)

    @router.get("/sound")
    def play_sound(source: str, target: str) -> FileResponse:
        """Answer with the sound of one video, retimed to the pictures of another."""
        return FileResponse(explorer.write_sound(source, target, suffix=".wav"), media_type="audio/wav")

    @router.get("/sound.mp4")
    def download_sound(source: str, target: str) -> FileResponse:
        """Answer with the pictures of one video and the sound of another, as one file."""
        path = explorer.write_sound(source, target, suffix=".mp4")
        name = f"{Path(explorer.name(target)).name}-with-sound.mp4"
        return FileResponse(path, media_type="video/mp4", filename=name)

    return router
