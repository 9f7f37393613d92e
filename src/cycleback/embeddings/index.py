"""The index of an embedding set: which rows belong to which video, and what is known of each video.

Shapes: N frames of a whole video.
"""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Self

from cycleback.errors import EmbeddingError

FORMAT = "cycleback-embeddings"
VERSION = 1


@dataclass(frozen=True)
class VideoEntry:
    """Where one video lies in the arrays, and what is known of it."""

    name: str
    start: int
    length: int
    action: str = ""
    path: str | None = None
    fps: float | None = None
    events: Mapping[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> slice:
        """The rows of this video in the arrays of the set."""
        return slice(self.start, self.start + self.length)


@dataclass(frozen=True)
class SetIndex:
    """All entries by name, the key events of each action, and the encoder's fingerprint."""

    entries: Mapping[str, VideoEntry]
    event_names: tuple[str, ...] = ()
    action_events: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    encoder: str | None = None
    can_count_frames: bool = False  # its embedder remembers how long it has watched

    @classmethod
    def build(
        cls, entries: Sequence[VideoEntry], *, event_names: Sequence[str] | None, encoder: str | None
    ) -> Self:
        """Index `entries`; without `event_names`, those that occur, in order of appearance."""
        seen = tuple(dict.fromkeys(event for entry in entries for event in entry.events))
        names = seen if event_names is None else tuple(event_names)
        for event in seen:
            if event not in names:
                raise EmbeddingError(
                    f"there is no key event {event!r} among {list(names)}.{guess(event, names)}"
                )
        by_name = {entry.name: entry for entry in entries}
        return cls(by_name, names, _events_by_action(entries, names), encoder)

    def subset(self, names: Sequence[str]) -> Self:
        """The same index with the videos `names` only, in that order."""
        if len(set(names)) < len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            raise ValueError(f"a subset takes each video once, got {twice!r} twice")
        return replace(self, entries={name: self.entry(name) for name in names})

    def entry(self, name: str) -> VideoEntry:
        """The entry of one video, or an error with the nearest name."""
        if name not in self.entries:
            raise EmbeddingError(
                f"there is no video {name!r} among {len(self.entries)}.{guess(name, self.entries)}"
            )
        return self.entries[name]

    def compact(self) -> Self:
        """The same index with the rows of the videos one after another, as they are saved."""
        start, entries = 0, {}
        for name, entry in self.entries.items():
            entries[name] = replace(entry, start=start)
            start += entry.length
        return replace(self, entries=entries)

    def with_encoder(self, encoder: str | None) -> Self:
        """The same index for embeddings of another encoder."""
        return replace(self, encoder=encoder, can_count_frames=False)

    def to_json(self) -> dict[str, Any]:
        """The content of `index.json`."""
        head = {"format": FORMAT, "version": VERSION, "encoder": self.encoder}
        head["can_count_frames"] = self.can_count_frames
        labels = {"event_names": self.event_names, "action_events": dict(self.action_events)}
        return {**head, **labels, "videos": [asdict(entry) for entry in self.entries.values()]}

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Read the content of `index.json`; ValueError says what is wrong with it."""
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError("it is not the index of an embedding set")
        if content.get("version") != VERSION:
            raise ValueError(
                f"it has format version {content.get('version')!r}, this program reads {VERSION}"
            )
        try:
            entries = [VideoEntry(**video) for video in content["videos"]]
            by_action = {action: tuple(names) for action, names in content["action_events"].items()}
            index = cls(
                {entry.name: entry for entry in entries},
                tuple(content["event_names"]),
                by_action,
                content["encoder"],
                bool(content.get("can_count_frames", False)),
            )
            is_whole = len(index.entries) == len(entries) and index.compact().entries == index.entries
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it is damaged ({error!r})") from error
        if not is_whole or not entries:
            raise ValueError("it is damaged (its videos are missing, doubled or overlap)")
        return index


def checked_events(name: str, events: Mapping[str, int], num_frames: int) -> dict[str, int]:
    """The key events of one video as plain ints, each inside the video."""
    for event, frame in events.items():
        try:
            inside = 0 <= operator.index(frame) < num_frames
        except TypeError as error:
            message = f"{name}: key event {event!r} at {frame!r}, expected a frame number"
            raise EmbeddingError(message) from error
        if not inside:
            message = f"{name}: key event {event!r} at frame {frame}, but the video has {num_frames} frames"
            raise EmbeddingError(f"{message} (0 to {num_frames - 1}). Correct the label.")
    return {event: int(frame) for event, frame in events.items()}


def guess(name: str, names: Iterable[str]) -> str:
    """` Did you mean 'x'?` for the nearest of `names`, or nothing."""
    close = get_close_matches(name, list(names), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _events_by_action(entries: Sequence[VideoEntry], names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Key events of each action: all of `names` where there is one action, else those labelled in it."""
    actions = dict.fromkeys(entry.action for entry in entries)
    if len(actions) == 1:
        return {action: names for action in actions}
    labelled = {a: {event for e in entries if e.action == a for event in e.events} for a in actions}
    return {a: tuple(event for event in names if event in labelled[a]) for a in actions}
