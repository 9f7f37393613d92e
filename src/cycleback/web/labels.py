"""Labels of a project: kept in the journal, carried over to all other videos, reviewed and exported.

The labels by hand follow from the journal alone (`cycleback.web.label_actions`). The labels of all other
videos are `cycleback.applications.transfer_labels` of them. That takes seconds, so a thread does it: the page
gets the last result at once, and asks again while it is being updated.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Response
from numpy.typing import NDArray
from pydantic import Base64Bytes, BaseModel, StringConstraints, ValidationError

from cycleback.annotations import FORMATS, Annotation
from cycleback.applications.labels import TransferredLabels, annotate, match_labels, transfer_labels
from cycleback.data.labels import event_frames, event_order
from cycleback.errors import DataError, UserError
from cycleback.web.label_actions import (
    ACTIONS,
    Accept,
    Action,
    Edit,
    Frozen,
    HandLabels,
    Import,
    LabelKind,
    LabelState,
    SetEvent,
    SetSegment,
    Span,
    replay,
)
from cycleback.web.label_files import read_files, write_files
from cycleback.web.project import Project

if TYPE_CHECKING:
    from cycleback.web.app import Studio
    from cycleback.web.journal import Journal
    from cycleback.web.matches import Matches

logger = logging.getLogger(__name__)
KIND = "labels"  # of the entries in the journal
MAX_WAIT_S = 120.0  # of an export for labels that are being carried over
# distinguishable with most kinds of colour blindness, and light enough for a dark page
COLOURS = ("#a3e635", "#38bdf8", "#fb923c", "#f472b6", "#facc15", "#c084fc", "#2dd4bf", "#f87171", "#e2e8f0")

VideoState = Literal["given", "labelled", "suggested", "none"]
Which = Literal["labelled", "all"]
Key = Annotated[str, StringConstraints(min_length=8, max_length=64)]


class EventItem(BaseModel):
    """A key event of one video."""

    name: str
    frame: int
    certainty: float = 1.0  # 1 for a label by hand


class SegmentItem(BaseModel):
    """A segment of one video: from frame `start` up to, not including, frame `end`."""

    id: str
    name: str
    start: int
    end: int
    certainty: float = 1.0


class VideoItem(BaseModel):
    """The labels of one video, in order of time."""

    id: str
    state: VideoState
    events: list[EventItem] = []
    segments: list[SegmentItem] = []
    certainty: float = 1.0
    frames: int | None = None  # the length of the video, where it is known


class NameItem(BaseModel):
    """A kind of label."""

    kind: LabelKind
    name: str
    colour: str


class DoneItem(BaseModel):
    """An action, in short."""

    type: str
    video: str | None = None


class LabelsItem(BaseModel):
    """All labels, and what to review next."""

    revision: int
    is_updating: bool  # whether the suggestions still follow from older labels
    problem: str | None  # why there are no suggestions
    names: list[NameItem]
    videos: list[VideoItem]
    queue: list[str]  # ids of suggested videos, the least certain first, skipped ones last
    undo: DoneItem | None  # what "undo" takes back
    redo: DoneItem | None


class FormatItem(BaseModel):
    """A format of label files, and how its exports end."""

    name: str
    suffix: str


class Step(Frozen):
    """One action of the user. A page that got no answer sends it again with the same key."""

    revision: int  # of the labels that the user saw
    key: Key
    action: Action


class LabelFile(Frozen):
    """A label file to import, or a .zip of them, in base64."""

    name: str
    revision: int
    key: Key
    content: Base64Bytes


@dataclass(frozen=True)
class ProjectTimes:
    """The videos of a project by name, as `match_labels` and `annotate` need them."""

    project: Project

    @property
    def names(self) -> tuple[str, ...]:
        """The videos, in order."""
        return tuple(video.name for video in self.project.videos.values())

    def times(self, name: str) -> NDArray[np.float64]:
        """Seconds (N,) of each frame of one video."""
        return self.project.find(name).times

    def fps(self, name: str) -> float:
        """Average frames per second."""
        return self.project.find(name).info.fps

    def path(self, name: str) -> Path:
        """The video file."""
        return self.project.find(name).path


@dataclass(frozen=True)
class Suggestions:
    """What was carried over from one state of the labels."""

    key: object = None
    labels: TransferredLabels | None = None
    problem: str | None = None


class Filler:
    """Carry labels over in a thread; only the newest request counts."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._last = Suggestions()
        self._wanted: tuple[object, Callable[[], TransferredLabels]] | None = None
        self._is_running = False

    def request(self, key: object, fill: Callable[[], TransferredLabels]) -> tuple[Suggestions, bool]:
        """Return the last suggestions, and whether they are those of `key`; if not, start to make them."""
        with self._changed:
            if self._last.key == key:
                self._wanted = None
                return self._last, True
            self._wanted = key, fill
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="labels", daemon=True).start()
            return self._last, False

    def wait(self, key: object, timeout_s: float) -> bool:
        """Wait until the last suggestions are those of `key`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._last.key == key, timeout_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._wanted is None:
                    self._is_running = False
                    return
                (key, fill), self._wanted = self._wanted, None
            made = _try(key, fill)
            with self._changed:
                self._last = made
                if self._wanted is not None and self._wanted[0] == key:
                    self._wanted = None
                self._changed.notify_all()


def _try(key: object, fill: Callable[[], TransferredLabels]) -> Suggestions:
    try:
        return Suggestions(key, fill())
    except UserError as error:
        return Suggestions(key, problem=str(error))
    except Exception as error:  # a thread that dies would leave the page waiting for ever
        logger.exception("cannot carry labels over")
        return Suggestions(key, problem=f"cannot carry the labels over ({error})")


@dataclass
class Labels:
    """The labels of a project."""

    project: Project
    journal: "Journal"
    matches: "Matches"
    _filler: Filler = field(default_factory=Filler, repr=False)

    def read(self) -> tuple[int, LabelState]:
        """Return the revision of the journal, and the labels by hand that follow from it."""
        entries = self.journal.entries(KIND)
        actions = [_parse(entry.value, entry.revision) for entry in entries]
        revision = entries[-1].revision if entries else 0
        given = {id: events for id in self.project.videos if (events := self._read_given(id))}
        records = [self.project.video(id).record for id in given]
        return revision, replay(actions, given, event_order(records))

    def show(self) -> LabelsItem:
        """Return all labels: those by hand, and the last ones that were carried over."""
        revision, state = self.read()
        found, is_current = self._fill(state)
        videos = [self._show_video(id, state, found) for id in self.project.videos]
        return LabelsItem(
            revision=revision,
            is_updating=not is_current,
            problem=found.problem if is_current else None,
            names=_name_labels(state),
            videos=videos,
            queue=_order_queue(videos, state, self._next(found)),
            undo=_shorten(state.undo),
            redo=_shorten(state.redo),
        )

    def act(self, step: Step) -> None:
        """Write one action into the journal; an action that is there already is not written again."""
        if any(entry.value.get("key") == step.key for entry in self.journal.entries(KIND)):
            return
        self._check(step.action)
        action = step.action.model_dump()
        self.journal.append(KIND, {"key": step.key, "action": action}, step.revision)

    def export(self, which: Which) -> list[Annotation]:
        """Return the labels by hand, or all with their certainty; waits for labels that are on their way."""
        _, state = self.read()
        found, is_current = self._fill(state)
        if which == "all" and not is_current:
            self._filler.wait(self._key(state), MAX_WAIT_S)
            found, _ = self._fill(state)
        annotations = []
        for id in self.project.videos:
            shown = self._show_video(id, state, found)
            if shown.state in ("given", "labelled") or (which == "all" and shown.state == "suggested"):
                annotations.append(self._annotate(shown))
        annotations = [each for each in annotations if each.labels]
        if not annotations:
            raise DataError("no labels to export yet; mark an event in a video first")
        return annotations

    def read_import(self, name: str, content: bytes) -> Import:
        """Read an uploaded label file, or a .zip of them, as one action."""
        events, segments = match_labels(read_files(name, content), ProjectTimes(self.project))
        if not events and not segments:
            raise DataError(f"{name}: no labels by hand in it; all carry a confidence, as a program gives it")
        videos = [
            Accept(
                video=self.project.find(video).id,
                events=events.get(video, {}),
                segments=[
                    Span(id=f"{what}#{number}", name=what, start=start, end=end)
                    for number, (what, start, end) in enumerate(segments.get(video, []))
                ],
            )
            for video in dict.fromkeys([*events, *segments])
        ]
        return Import(videos=videos)

    def _read_given(self, id: str) -> dict[str, int]:
        """Return the events of one video in the data set; none where the video cannot be read."""
        video = self.project.video(id)
        if video.record.unit == "frame":
            return {event: int(frame) for event, frame in video.record.events.items()}
        try:
            return event_frames(video.record, video.times)
        except UserError as error:
            logger.warning("labels of the data set: %s", error)
            return {}

    def _fill(self, state: LabelState) -> tuple[Suggestions, bool]:
        """Return the last suggestions, and whether they are up to date."""
        if not self._voters(state):
            return Suggestions(), True
        try:
            key, embeddings = self._key(state), self.matches.embeddings
        except UserError as error:
            return Suggestions(problem=str(error)), True
        voters = {name: own for name, own in self._voters(state).items() if name in embeddings}
        if len(voters) == len(embeddings):
            return Suggestions(), True
        events = {name: own.events for name, own in voters.items()}
        segments = {name: _list_spans(own.segments.values()) for name, own in voters.items()}
        return self._filler.request(key, lambda: transfer_labels(embeddings, events, segments=segments))

    def _key(self, state: LabelState) -> object:
        """Say what suggestions follow from: the labels that vote, and the embeddings."""
        return self._voters(state), self.matches.revision, self.matches.embeddings.names

    def _voters(self, state: LabelState) -> dict[str, HandLabels]:
        """Return the labels that vote, by name of the video."""
        videos = self.project.videos
        return {videos[id].name: own for id, own in state.voters.items() if id in videos}

    def _next(self, found: Suggestions) -> list[str]:
        """Return the ids of the videos with suggestions, the least certain first."""
        names = found.labels.label_next if found.labels else ()
        ids = {video.name: id for id, video in self.project.videos.items()}
        return [ids[name] for name in names if name in ids]

    def _show_video(self, id: str, state: LabelState, found: Suggestions) -> VideoItem:
        own, name = state.videos.get(id), self.project.video(id).name
        events = [EventItem(name=name, frame=frame) for name, frame in own.events.items()] if own else []
        segments = [SegmentItem(**each.model_dump()) for each in own.segments.values()] if own else []
        shown: VideoState = "none" if own is None or own.state == "draft" else own.state
        certainty = 1.0
        if shown == "none" and found.labels is not None and name in found.labels.label_next:
            shown, certainty = "suggested", found.labels.confidence(name)
            more_events, more_segments = _suggest(found.labels.videos[name])
            taken = own.taken if own else frozenset()
            events += [each for each in more_events if ("event", each.name) not in taken]
            segments += [each for each in more_segments if ("segment", each.id) not in taken]
        return VideoItem(
            id=id,
            state=shown,
            events=sorted(events, key=lambda event: event.frame),
            segments=sorted(segments, key=lambda each: each.start),
            certainty=certainty,
            frames=self._count_frames(id, found),
        )

    def _count_frames(self, id: str, found: Suggestions) -> int | None:
        """Return the length of a video without reading it."""
        video = self.project.video(id)
        if video.is_known:
            return video.info.num_frames
        labelled = found.labels.videos.get(video.name) if found.labels else None
        return None if labelled is None else labelled.num_frames

    def _annotate(self, shown: VideoItem) -> Annotation:
        places: dict[tuple[str, str, int], tuple[int, float | None]] = {}
        for event in shown.events:
            places["event", event.name, 0] = event.frame, _confidence(event.certainty)
        for count, each in enumerate(shown.segments):
            places["start", each.name, count] = each.start, _confidence(each.certainty)
            places["end", each.name, count] = each.end, _confidence(each.certainty)
        return annotate(ProjectTimes(self.project), self.project.video(shown.id).name, places)

    def _check(self, action: Any) -> None:
        """Refuse labels of unknown videos, and frames that a video does not have."""
        for each in action.videos if isinstance(action, Import) else [action]:
            id = getattr(each, "video", None)
            if id is not None:
                video = self.project.video(id)
                _check_frames(video.name, len(video.times), *_frames_of(each))


def _shorten(action: Edit | None) -> DoneItem | None:
    return None if action is None else DoneItem(type=action.type, video=getattr(action, "video", None))


def _parse(value: Mapping[str, Any], revision: int) -> Any:
    try:
        return ACTIONS.validate_python(value["action"])
    except (KeyError, ValidationError) as error:
        raise DataError(f"entry {revision} of the labels in the journal is damaged: {error}") from error


def _frames_of(action: Any) -> tuple[dict[str, int], Sequence[Span]]:
    """Return the events and segments that an action sets."""
    if isinstance(action, SetEvent):
        return {action.name: action.frame}, []
    if isinstance(action, SetSegment):
        return {}, [action.segment]
    return (action.events, action.segments) if isinstance(action, Accept) else ({}, [])


def _check_frames(name: str, length: int, events: Mapping[str, int], segments: Sequence[Span]) -> None:
    for event, frame in events.items():
        if frame >= length:
            raise DataError(f"{name}: {event!r} is at frame {frame}, but the last frame is {length - 1}")
    for each in segments:
        if not each.start < each.end <= length:
            raise DataError(
                f"{name}: {each.name!r} goes from frame {each.start} to {each.end}, but a segment must end "
                f"after its start and at {length} or before"
            )


def _name_labels(state: LabelState) -> list[NameItem]:
    """Give each name a colour, in order of first use."""
    return [
        NameItem(kind=kind, name=name, colour=COLOURS[place % len(COLOURS)])
        for place, (kind, name) in enumerate(state.names)
    ]


def _order_queue(videos: Sequence[VideoItem], state: LabelState, least_certain: Sequence[str]) -> list[str]:
    """List the videos to review: the least certain first, the skipped ones last."""
    suggested = {video.id for video in videos if video.state == "suggested"}
    first = [id for id in least_certain if id in suggested and id not in state.skipped]
    return first + [id for id in state.skipped if id in suggested]


def _suggest(found: Annotation) -> tuple[list[EventItem], list[SegmentItem]]:
    """Return the labels that were carried over to one video; ids of segments count those of one name."""
    events = [
        EventItem(name=each.name, frame=found.frame(each.at), certainty=each.confidence or 0.0)
        for each in found.events
    ]
    counts: dict[str, int] = {}
    segments = []
    for each in sorted(found.segments, key=lambda each: found.frame(each.start)):
        count = counts[each.name] = counts.get(each.name, -1) + 1
        start, end = found.frame(each.start), found.frame(each.end)
        segments.append(
            SegmentItem(
                id=f"{each.name}#{count}",
                name=each.name,
                start=start,
                end=end,
                certainty=each.confidence or 0.0,
            )
        )
    return events, segments


def _list_spans(segments: Any) -> list[tuple[str, int, int]]:
    return sorted(((each.name, each.start, each.end) for each in segments), key=lambda span: span[1])


def _confidence(certainty: float) -> float | None:
    """Return the confidence for a label file: none for a label by hand."""
    return None if certainty == 1.0 else certainty


def routes(studio: "Studio") -> APIRouter:
    """Show, change, export and import the labels of the project."""
    router = APIRouter(tags=["labels"])

    @router.get("/labels")
    def show_labels() -> LabelsItem:
        return studio.labels.show()

    @router.post("/labels")
    def change_labels(step: Step) -> LabelsItem:
        studio.labels.act(step)
        return studio.labels.show()

    @router.get("/labels/formats")
    def list_formats() -> list[FormatItem]:
        return [
            FormatItem(name=name, suffix=".zip" if each.one_video else each.suffixes[0])
            for name, each in FORMATS.items()
        ]

    @router.get("/labels/export")
    def export_labels(format: str = "csv", which: Which = "labelled") -> Response:
        suffix, content = write_files(studio.labels.export(which), format)
        name = f"{format}-labels{suffix}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type="application/octet-stream", headers=headers)

    @router.post("/labels/import")
    def import_labels(file: LabelFile) -> LabelsItem:
        action = studio.labels.read_import(file.name, file.content)
        studio.labels.act(Step(revision=file.revision, key=file.key, action=action))
        return studio.labels.show()

    return router
