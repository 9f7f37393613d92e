"""What a user does to labels, and the labels that follow: a pure function of the actions.

    label     "set_event", "delete_event", "set_segment", "delete_segment", "clear", "rename", "import"
    review    "accept", "skip"
    history   "undo", "redo"

A video with labels of the data set is "given". Labels by hand make it "labelled". A change to a suggestion
is a draft: the rest of the video stays suggested until the user accepts it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
SegmentId = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Frame = Annotated[int, Field(ge=0)]
LabelKind = Literal["event", "segment"]
HandState = Literal["given", "labelled", "draft"]
Kind = tuple[LabelKind, str]  # what a label is: event or segment, and its name


class Frozen(BaseModel):
    """A value of the API that never changes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Span(Frozen):
    """A segment: from frame `start` up to, not including, frame `end`."""

    id: SegmentId  # made by the page, or "NAME#N" for the N-th suggested segment of a name
    name: Name
    start: Frame
    end: Frame


class Change(Frozen):
    """A change to the labels of one video."""

    video: str
    is_draft: bool = False  # whether it corrects a suggestion, so that the others of the video stay suggested


class SetEvent(Change):
    """Say at which frame a key event happens; a video has each event once."""

    type: Literal["set_event"] = "set_event"
    name: Name
    frame: Frame


class DeleteEvent(Change):
    """Remove a key event of a video, or refuse a suggested one."""

    type: Literal["delete_event"] = "delete_event"
    name: Name


class SetSegment(Change):
    """Add a segment, or move or rename the one with the same id."""

    type: Literal["set_segment"] = "set_segment"
    segment: Span


class DeleteSegment(Change):
    """Remove a segment of a video, or refuse a suggested one."""

    type: Literal["delete_segment"] = "delete_segment"
    id: SegmentId


class Accept(Frozen):
    """Take the labels that the page shows as the labels of the video."""

    type: Literal["accept"] = "accept"
    video: str
    events: dict[Name, Frame]
    segments: list[Span] = []


class Skip(Frozen):
    """Put a video at the end of the review queue."""

    type: Literal["skip"] = "skip"
    video: str


class Clear(Frozen):
    """Remove all labels of a video, so that it gets suggestions."""

    type: Literal["clear"] = "clear"
    video: str


class Rename(Frozen):
    """Rename an event or a segment in all videos."""

    type: Literal["rename"] = "rename"
    kind: LabelKind
    name: Name
    new_name: Name


class Import(Frozen):
    """Take the labels of a file as those of its videos."""

    type: Literal["import"] = "import"
    videos: list[Accept]


class Undo(Frozen):
    """Take the last action back."""

    type: Literal["undo"] = "undo"


class Redo(Frozen):
    """Do the action again that was taken back last."""

    type: Literal["redo"] = "redo"


Edit = SetEvent | DeleteEvent | SetSegment | DeleteSegment | Accept | Skip | Clear | Rename | Import
Action = Annotated[Edit | Undo | Redo, Field(discriminator="type")]
ACTIONS: TypeAdapter[Any] = TypeAdapter(Action)


@dataclass(frozen=True)
class HandLabels:
    """What is known of one video by hand."""

    state: HandState
    events: Mapping[str, int] = field(default_factory=dict)
    segments: Mapping[str, Span] = field(default_factory=dict)  # by id
    refused: frozenset[tuple[LabelKind, str]] = frozenset()  # events and ids that a draft must not suggest
    seen: frozenset[Kind] = frozenset()  # what the user decided on, also where it is not in the video

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known."""
        return not (self.events or self.segments or self.refused)

    @property
    def kinds(self) -> frozenset[Kind]:
        """What labels there are."""
        events: set[Kind] = {("event", name) for name in self.events}
        segments: set[Kind] = {("segment", each.name) for each in self.segments.values()}
        return frozenset(events | segments)

    def needs(self, kind: LabelKind, name: str, key: str) -> bool:
        """Whether a suggestion is of use here; `key` is the id of a segment, or the name of an event."""
        if self.state != "draft":
            return (kind, name) not in self.kinds | self.seen
        own = self.events if kind == "event" else self.segments
        return key not in own and (kind, key) not in self.refused

    def restrict(self, kinds: frozenset[Kind]) -> "HandLabels":
        """Return only the labels of some kinds."""
        events = {name: frame for name, frame in self.events.items() if ("event", name) in kinds}
        segments = {id: each for id, each in self.segments.items() if ("segment", each.name) in kinds}
        return HandLabels(self.state, events, segments)


@dataclass(frozen=True)
class LabelState:
    """The labels by hand of all videos."""

    videos: Mapping[str, HandLabels] = field(default_factory=dict)  # by id of the video
    names: tuple[Kind, ...] = ()  # in order of first use
    skipped: tuple[str, ...] = ()  # ids of videos, the last skipped one last
    undo: Edit | None = None  # the action that "undo" takes back
    redo: Edit | None = None

    @property
    def voters(self) -> dict[str, HandLabels]:
        """The videos whose labels are carried over to the others."""
        return {
            id: own
            for id, own in self.videos.items()
            if own.state != "draft" and (own.events or own.segments)
        }


def replay(
    actions: Iterable[Edit | Undo | Redo],
    given: Mapping[str, Mapping[str, int]] | None = None,
    names: Iterable[str] = (),
) -> LabelState:
    """Return the labels after all `actions`.

    Args:
        actions: what the user did, in order.
        given: id of a video -> {event: frame}, the labels of the data set.
        names: the events of the data set, in order.
    """
    done: list[Edit] = []
    undone: list[Edit] = []
    for action in actions:
        if isinstance(action, Undo):
            undone += [done.pop()] if done else []
        elif isinstance(action, Redo):
            done += [undone.pop()] if undone else []
        else:
            done.append(action)
            undone.clear()
    videos = {id: HandLabels("given", dict(events)) for id, events in (given or {}).items() if events}
    state = LabelState(videos, tuple(("event", name) for name in names))
    for edit in done:
        state = apply(edit, state)
    return replace(state, undo=done[-1] if done else None, redo=undone[-1] if undone else None)


@singledispatch
def apply(action: Edit, state: LabelState) -> LabelState:
    """Return the labels after one action; an action on a label that is not there changes nothing."""
    raise TypeError(f"no rule for {type(action).__name__}")


@apply.register
def _(action: SetEvent, state: LabelState) -> LabelState:
    own = _find(state, action)
    events = dict(own.events) | {action.name: action.frame}
    changed = replace(own, events=events, refused=own.refused - {("event", action.name)})
    return _add_name(_put(state, action, changed), "event", action.name)


@apply.register
def _(action: DeleteEvent, state: LabelState) -> LabelState:
    own = _find(state, action)
    events = {name: frame for name, frame in own.events.items() if name != action.name}
    return _put(state, action, _refuse(replace(own, events=events), "event", action.name, action.name))


@apply.register
def _(action: SetSegment, state: LabelState) -> LabelState:
    own, segment = _find(state, action), action.segment
    segments = dict(own.segments) | {segment.id: segment}
    changed = replace(own, segments=segments, refused=own.refused - {("segment", segment.id)})
    return _add_name(_put(state, action, changed), "segment", segment.name)


@apply.register
def _(action: DeleteSegment, state: LabelState) -> LabelState:
    own = _find(state, action)
    segments = {id: each for id, each in own.segments.items() if id != action.id}
    name = own.segments[action.id].name if action.id in own.segments else action.id.rpartition("#")[0]
    return _put(state, action, _refuse(replace(own, segments=segments), "segment", name, action.id))


@apply.register
def _(action: Accept, state: LabelState) -> LabelState:
    for name in action.events:
        state = _add_name(state, "event", name)
    for each in action.segments:
        state = _add_name(state, "segment", each.name)
    own = HandLabels("labelled", dict(action.events), {each.id: each for each in action.segments})
    return replace(
        state,
        videos={**state.videos, action.video: replace(own, seen=frozenset(state.names))},
        skipped=tuple(id for id in state.skipped if id != action.video),
    )


@apply.register
def _(action: Import, state: LabelState) -> LabelState:
    for each in action.videos:
        state = apply(each, state)
    return state


@apply.register
def _(action: Skip, state: LabelState) -> LabelState:
    others = tuple(id for id in state.skipped if id != action.video)
    return replace(state, skipped=(*others, action.video))


@apply.register
def _(action: Clear, state: LabelState) -> LabelState:
    return replace(state, videos={id: own for id, own in state.videos.items() if id != action.video})


@apply.register
def _(action: Rename, state: LabelState) -> LabelState:
    old, new = (action.kind, action.name), (action.kind, action.new_name)
    renamed = dict.fromkeys(new if each == old else each for each in state.names)
    videos = {id: _rename(own, action) for id, own in state.videos.items()}
    return replace(state, videos=videos, names=tuple(renamed))


def _rename(own: HandLabels, action: Rename) -> HandLabels:
    """Rename the labels of one video; where it has an event of the new name, that one stays."""
    old, new = (action.kind, action.name), (action.kind, action.new_name)
    own = replace(own, seen=frozenset(new if each == old else each for each in own.seen))
    if action.kind == "segment":
        update = {"name": action.new_name}
        segments = {
            id: each.model_copy(update=update) if each.name == action.name else each
            for id, each in own.segments.items()
        }
        return replace(own, segments=segments)
    events = {name: frame for name, frame in own.events.items() if name != action.name}
    if action.name in own.events:
        events = {action.new_name: own.events[action.name]} | events
    return replace(own, events=events)


def _find(state: LabelState, action: Change) -> HandLabels:
    """Return the labels of a video before a change, with the state that the change gives them."""
    own = state.videos.get(action.video, HandLabels("draft"))
    if action.is_draft and own.state == "draft":
        return own
    return replace(own, state="labelled", refused=frozenset())


def _refuse(own: HandLabels, kind: LabelKind, name: str, key: str) -> HandLabels:
    """Remember that a label is not there, so that it is not suggested again."""
    if own.state == "draft":
        return replace(own, refused=own.refused | {(kind, key)})
    return replace(own, seen=own.seen | {(kind, name)})


def _put(state: LabelState, action: Change, own: HandLabels) -> LabelState:
    """Put the changed labels of a video in; without any label it is as new."""
    videos = {**state.videos, action.video: own}
    if own.is_empty:
        del videos[action.video]
    return replace(state, videos=videos)


def _add_name(state: LabelState, kind: LabelKind, name: str) -> LabelState:
    known = (kind, name) in state.names
    return state if known else replace(state, names=(*state.names, (kind, name)))
