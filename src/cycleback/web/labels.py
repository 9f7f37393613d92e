"""Labels of a project: kept in the journal, carried over to all other videos, reviewed and exported.

The labels by hand follow from the journal alone (`cycleback.web.label_actions`). The labels of all other
videos are carried over from them (`cycleback.web.label_filling`), which takes seconds: the page gets the last
result at once, and asks again while it is being updated.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Response
from numpy.typing import NDArray
from pydantic import Base64Bytes, BaseModel, StringConstraints, ValidationError

from cycleback.annotations import FORMATS, Annotation
from cycleback.applications.labels import annotate, match_labels
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
from cycleback.web.label_filling import Filler, Suggestions, carry_over
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
    is_by_hand: bool = True


class SegmentItem(BaseModel):
    """A segment of one video: from frame `start` up to, not including, frame `end`."""

    id: str
    name: str
    start: int
    end: int
    certainty: float = 1.0
    is_by_hand: bool = True


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

    def source(self, name: str) -> str:
        """Name of the whole video: a project holds no parts of videos."""
        return name

    def first_frame(self, name: str) -> int:
        """Frame of the file at which the video begins."""
        return 0


@dataclass
class Labels:
    """The labels of a project."""

    project: Project
    journal: "Journal"
    matches: "Matches"
    _filler: Filler = field(default_factory=Filler, repr=False)
    _replayed: tuple[int, dict[str, dict[str, int]], LabelState] | None = field(default=None, repr=False)

    def read(self) -> tuple[int, LabelState]:
        """Return the revision of the journal, and the labels by hand that follow from it."""
        entries = self.journal.entries(KIND)
        revision = entries[-1].revision if entries else 0
        given = {id: events for id in self.project.videos if (events := self._read_given(id))}
        known = self._replayed  # replaced as a whole, so threads need no lock
        if known is None or known[:2] != (revision, given):
            names = event_order([self.project.video(id).record for id in given])
            state = replay([_parse(entry.value, entry.revision) for entry in entries], given, names)
            known = self._replayed = revision, given, state
        return revision, known[2]

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
            queue=_order_queue(videos, state),
            undo=_shorten(state.undo),
            redo=_shorten(state.redo),
        )

    def act(self, step: Step) -> None:
        """Write one action into the journal; an action that is there already is not written again."""
        if any(_key_of(entry.value) == step.key for entry in self.journal.entries(KIND)):
            return
        self._check(step.action)
        action = step.action.model_dump()
        self.journal.append(KIND, {"key": step.key, "action": action}, step.revision)

    def export(self, which: Which) -> list[Annotation]:
        """Return the labels by hand, or all with their certainty; waits for labels that are on their way."""
        _, state = self.read()
        found, is_current = self._fill(state, wait_s=MAX_WAIT_S if which == "all" else 0.0)
        if which == "all" and not is_current:
            raise UserError("the labels of the other videos are not ready yet; export again in a minute")
        annotations = []
        for id, video in self.project.videos.items():
            shown = self._show_video(id, state, found)
            is_draft = id not in state.videos or state.videos[id].state == "draft"
            wanted = (
                shown if which == "all" else VideoItem(id=id, state="none") if is_draft else _keep_hand(shown)
            )
            annotations.append(_annotate(ProjectTimes(self.project), video.name, wanted))
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

    def _fill(self, state: LabelState, *, wait_s: float = 0.0) -> tuple[Suggestions, bool]:
        """Return the last suggestions, and whether they are up to date; waits for them up to `wait_s`."""
        voters = self._voters(state)
        if not voters:
            return Suggestions(), True
        try:
            embeddings = self.matches.embeddings
            key = (voters, self.matches.revision, embeddings.names)
            pins = self.matches.pins.read().pins
        except UserError as error:
            return Suggestions(problem=str(error)), True
        request = partial(self._filler.request, key, partial(carry_over, embeddings, voters, pins))
        found, is_current = request()
        if not is_current and wait_s and self._filler.wait(key, wait_s):
            found, is_current = request()
        return found, is_current

    def _voters(self, state: LabelState) -> dict[str, HandLabels]:
        """Return the labels that vote, by name of the video."""
        videos = self.project.videos
        return {videos[id].name: own for id, own in state.voters.items() if id in videos}

    def _show_video(self, id: str, state: LabelState, found: Suggestions) -> VideoItem:
        """Return the labels of a video by hand, and what was found beside them."""
        own, video = state.videos.get(id, HandLabels("draft")), self.project.video(id)
        events = [EventItem(name=name, frame=frame) for name, frame in own.events.items()]
        segments = [SegmentItem(**each.model_dump()) for each in own.segments.values()]
        shown: VideoState = "none" if own.state == "draft" else own.state
        annotation = found.videos.get(video.name)
        if annotation is not None:
            more_events, more_segments = _suggest(annotation)
            more_events = [each for each in more_events if own.needs("event", each.name, each.name)]
            more_segments = [each for each in more_segments if own.needs("segment", each.name, each.id)]
            if more_events or more_segments or own.state == "draft":
                shown, events, segments = "suggested", events + more_events, segments + more_segments
        length = annotation.num_frames if annotation else None
        return VideoItem(
            id=id,
            state=shown,
            events=sorted(events, key=lambda event: event.frame),
            segments=sorted(segments, key=lambda each: each.start),
            certainty=found.certainty(video.name) if shown == "suggested" else 1.0,
            frames=video.info.num_frames if video.is_known else length,
        )

    def _check(self, action: Any) -> None:
        """Refuse labels of unknown videos, and frames that a video does not have."""
        for each in action.videos if isinstance(action, Import) else [action]:
            if (id := getattr(each, "video", None)) is not None:
                video, (events, segments) = self.project.video(id), _frames_of(each)
                if events or segments:
                    _check_frames(video.name, len(video.times), events, segments)


def _shorten(action: Edit | None) -> DoneItem | None:
    return None if action is None else DoneItem(type=action.type, video=getattr(action, "video", None))


def _key_of(value: Any) -> Any:
    return value.get("key") if isinstance(value, dict) else None


def _parse(value: Any, revision: int) -> Any:
    try:
        return ACTIONS.validate_python(value["action"])
    except (KeyError, TypeError, ValidationError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"entry {revision} of the labels in the journal is damaged ({reason}): remove its line"
        ) from error


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


def _order_queue(videos: Sequence[VideoItem], state: LabelState) -> list[str]:
    """List the videos to review: the least certain first, the skipped ones last."""
    suggested = [video for video in videos if video.state == "suggested"]
    skipped = {id: place for place, id in enumerate(state.skipped, 1)}
    return [video.id for video in sorted(suggested, key=lambda v: (skipped.get(v.id, 0), v.certainty))]


def _keep_hand(shown: VideoItem) -> VideoItem:
    events = [each for each in shown.events if each.is_by_hand]
    return shown.model_copy(
        update={"events": events, "segments": [each for each in shown.segments if each.is_by_hand]}
    )


def _annotate(videos: ProjectTimes, name: str, shown: VideoItem) -> Annotation:
    """Return the labels of a video as for a label file: what was found has a confidence."""
    places: dict[tuple[str, str, int], tuple[int, float | None]] = {}
    for event in shown.events:
        places["event", event.name, 0] = event.frame, None if event.is_by_hand else event.certainty
    for count, each in enumerate(shown.segments):
        confidence = None if each.is_by_hand else each.certainty
        places["start", each.name, count] = each.start, confidence
        places["end", each.name, count] = each.end, confidence
    return annotate(videos, name, places) if places else Annotation(name)


def _suggest(found: Annotation) -> tuple[list[EventItem], list[SegmentItem]]:
    """Return the labels that were carried over to one video; ids of segments count those of one name."""
    events = [
        EventItem(
            name=each.name, frame=found.frame(each.at), certainty=each.confidence or 0.0, is_by_hand=False
        )
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
                is_by_hand=False,
            )
        )
    return events, segments


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
