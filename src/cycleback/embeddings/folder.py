"""An embedding set as a folder: `embeddings.npy`, `times.npy`, `index.json` and, with labels, `phases.npy`.

The index holds the rows, action, file, frame rate and key events of each video, and checksums by which damage
is noticed. Sets of earlier versions have no checksums; their embeddings are only checked to be finite.

Shapes: N frames of a whole video, D embedding size.
"""

import errno
import json
import operator
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cycleback.arrays import checksum_array, open_npy
from cycleback.data.records import check_name
from cycleback.errors import DataError, EmbeddingError, did_you_mean
from cycleback.files import atomic_folder, check_folder
from cycleback.reading import Cursor, check_seal, read_json, seal

INDEX = "index.json"
FILES = (INDEX, "embeddings.npy", "times.npy", "phases.npy")
FORMAT = "cycleback-embeddings"
VERSION = 1
ADVICE = ". Embed the videos again."


@dataclass(frozen=True)
class VideoEntry:
    """The rows of one video in the arrays, and its description."""

    name: str
    start: int
    length: int
    action: str = ""
    path: str | None = None
    fps: float | None = None
    events: Mapping[str, int] = field(default_factory=dict)
    source: str = ""  # the whole video, if this is a part of one
    first_frame: int = 0  # of the part, in the whole video

    @property
    def rows(self) -> slice:
        """The rows of this video in the arrays of the set."""
        return slice(self.start, self.start + self.length)

    def cut(self, name: str, first: int, stop: int) -> "VideoEntry":
        """Return frames `first` to `stop`, without the last, as an entry of its own."""
        if not 0 <= first < stop <= self.length:
            raise ValueError(f"{self.name} has {self.length} frames and no part from {first} to {stop}")
        return replace(
            self,
            name=name,
            start=self.start + first,
            length=stop - first,
            events={event: frame - first for event, frame in self.events.items() if first <= frame < stop},
            source=self.source or (self.name if name != self.name else ""),
            first_frame=self.first_frame + first,
        )


@dataclass(frozen=True)
class SetIndex:
    """All entries by name, the key events of each action, and the encoder's fingerprint."""

    entries: Mapping[str, VideoEntry]
    event_names: tuple[str, ...] = ()
    action_events: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    encoder: str | None = None
    can_count_frames: bool = False  # whether its embedder knows how long the video has run
    streams: Mapping[str, float] = field(default_factory=dict)  # the weight of each, of an encoder of streams
    mirrored: tuple[str, ...] = ()  # videos that were turned round

    @classmethod
    def build(
        cls,
        entries: Sequence[VideoEntry],
        *,
        event_names: Sequence[str] | None,
        encoder: str | None,
        can_count_frames: bool = False,
        streams: Mapping[str, float] | None = None,
        mirrored: Collection[str] = (),
    ) -> Self:
        """Index `entries`; without `event_names`, events are named in order of appearance."""
        labelled = tuple(dict.fromkeys(event for entry in entries for event in entry.events))
        names = labelled if event_names is None else tuple(event_names)
        for event in labelled:
            if event not in names:
                raise EmbeddingError(f"there is no key event {event!r}. {did_you_mean(event, names)}")
        by_name = {entry.name: entry for entry in entries}
        events = _events_by_action(entries, names)
        turned = tuple(name for name in by_name if name in mirrored)
        return cls(by_name, names, events, encoder, can_count_frames, dict(streams or {}), turned)

    def subset(self, names: Sequence[str]) -> Self:
        """Return the index of the videos `names`, in that order."""
        if len(set(names)) < len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            raise ValueError(f"a subset takes each video once, got {twice!r} twice")
        mirrored = tuple(name for name in names if name in self.mirrored)
        return replace(self, entries={name: self.entry(name) for name in names}, mirrored=mirrored)

    def cut(self, parts: Mapping[str, tuple[str, int, int]]) -> Self:
        """Return the index of parts of videos: new name -> (video, first frame, frame after the last)."""
        entries = {name: self.entry(video).cut(name, *span) for name, (video, *span) in parts.items()}
        mirrored = tuple(name for name, (video, *_) in parts.items() if video in self.mirrored)
        return replace(self, entries=entries, mirrored=mirrored)

    def entry(self, name: str) -> VideoEntry:
        """Look up one video; the error for an unknown one suggests the closest name."""
        if name not in self.entries:
            otherwise = f"The set has {len(self.entries)} videos."
            hint = did_you_mean(name, self.entries, otherwise=otherwise)
            raise EmbeddingError(f"there is no video {name!r}. {hint}")
        return self.entries[name]

    def compact(self) -> Self:
        """Return the index with the rows of the videos one after another, as they are saved."""
        start, entries = 0, {}
        for name, entry in self.entries.items():
            entries[name] = replace(entry, start=start)
            start += entry.length
        return replace(self, entries=entries)

    def to_json(self) -> dict[str, Any]:
        """Return the content of `index.json`."""
        head: dict[str, Any] = {"format": FORMAT, "version": VERSION, "encoder": self.encoder}
        head |= {"can_count_frames": self.can_count_frames, "streams": dict(self.streams)}
        head |= {"mirrored": self.mirrored}
        labels = {"event_names": self.event_names, "action_events": dict(self.action_events)}
        return {**head, **labels, "videos": [_entry_to_json(entry) for entry in self.entries.values()]}

    @classmethod
    def from_json(cls, root: Cursor) -> Self:
        """Read the content of `index.json`; whatever is wrong in it is an error that names the place."""
        entries = [_read_entry(video) for video in root.at("videos").each()]
        index = cls(
            {entry.name: entry for entry in entries},
            tuple(name.text() for name in root.at("event_names").each()),
            {
                action: tuple(name.text() for name in names.each())
                for action, names in root.at("action_events").items()
            },
            root.optional_text("encoder"),
            (flag := root.find("can_count_frames")) is not None and flag.flag(),
            {name: weight.number() for name, weight in root.find_items("streams")},
            tuple(name.text() for name in root.each("mirrored")),
        )
        is_whole = len(index.entries) == len(entries) and index.compact().entries == index.entries
        if not is_whole or not entries:
            raise root.wrong("its videos are missing, doubled or overlap")
        index._check_names(root)
        return index

    def _check_names(self, root: Cursor) -> None:
        """Refuse key events and videos that are named in one place of the index and not in another."""
        labelled = [event for entry in self.entries.values() for event in entry.events]
        by_action = [event for names in self.action_events.values() for event in names]
        for event in (*labelled, *by_action):
            if event not in self.event_names:
                raise root.wrong(f"the key event {event!r} is missing in event_names")
        for name in self.mirrored:
            if name not in self.entries:
                raise root.wrong(f"{name!r} is mirrored and not among the videos")
        for name, weight in self.streams.items():
            if weight < 0:
                raise root.wrong(f"the weight of the stream {name!r} is {weight:g}, expected 0 or more")


def _read_entry(video: Cursor) -> VideoEntry:
    name = video.at("name").text()
    try:
        check_name(name)
    except DataError as error:
        raise video.wrong(str(error)) from error
    entry = VideoEntry(
        name,
        video.at("start").integer(low=0),
        video.at("length").integer(low=1),
        video.optional_text("action") or "",
        video.optional_text("path"),
        video.optional_positive("fps"),
        {event: frame.integer(low=0) for event, frame in video.find_items("events")},
        video.optional_text("source") or "",
        video.optional_integer("first_frame", low=0) or 0,
    )
    try:
        check_events(name, entry.events, entry.length)
    except EmbeddingError as error:
        raise video.wrong(str(error)) from error
    return entry


@dataclass(frozen=True, eq=False)
class Unchecked:
    """The embeddings of a saved set that nobody has looked at yet.

    A video is checked when it is first used: a large set opens at once, and most of it may never be read.
    """

    path: Path  # of embeddings.npy
    embeddings: NDArray[np.float32]  # (sum N, D)
    checksums: Mapping[str, str]  # by video; of a set of an earlier version there are none
    waiting: dict[str, VideoEntry]  # by name, with the rows in the file

    def check(self, name: str) -> None:
        """Refuse the embeddings of a video that are not as they were written, or that are no numbers."""
        entry = self.waiting.get(name)
        if entry is None:
            return
        rows = self.embeddings[entry.rows]
        known = self.checksums.get(name)
        if known is not None and known != checksum_array(rows):
            raise _damaged(self.path, f"{name} was changed or damaged since it was written (wrong checksum)")
        if known is None and not np.isfinite(rows).all():
            raise _damaged(self.path, f"{name} has embeddings that are not finite")
        self.waiting.pop(name, None)


def _entry_to_json(entry: VideoEntry) -> dict[str, Any]:
    """Return the facts of one video; only parts of videos say so, and older programs read all others."""
    facts = asdict(entry)
    if not entry.source:
        del facts["source"], facts["first_frame"]
    return facts


def check_events(name: str, events: Mapping[str, int], num_frames: int) -> dict[str, int]:
    """Return the key events of one video as plain ints; refuse those outside the video."""
    for event, frame in events.items():
        try:
            is_inside = 0 <= operator.index(frame) < num_frames
        except TypeError as error:
            message = f"{name}: key event {event!r} at {frame!r}, expected a frame number"
            raise EmbeddingError(message) from error
        if not is_inside:
            message = f"{name}: key event {event!r} at frame {frame}, but the video has {num_frames} frames"
            raise EmbeddingError(f"{message} (0 to {num_frames - 1}). Correct the label.")
    return {event: int(frame) for event, frame in events.items()}


def read_folder(folder: Path) -> tuple[NDArray[np.float32], NDArray[np.float64], SetIndex, Unchecked]:
    """Open memory-mapped embeddings (sum N, D) and times (sum N,), their index, and what is left to check."""
    root = _read_root(folder / INDEX)
    index = SetIndex.from_json(root)
    embeddings = _open_array(folder / "embeddings.npy", np.float32, 2)
    times = _open_array(folder / "times.npy", np.float64, 1)
    frames = sum(entry.length for entry in index.entries.values())
    if not len(embeddings) == len(times) == frames:
        rows = f"{len(embeddings)} embeddings and {len(times)} times for {frames} frames"
        raise _damaged(folder, f"{rows} in {INDEX}")
    if not embeddings.shape[1]:
        raise _damaged(folder / "embeddings.npy", "its embeddings have no numbers")
    known = {name: each.text() for name, each in root.find_items("checksums")}
    _check_times(folder / "times.npy", times, index, root.optional_text("times_checksum"))
    unchecked = Unchecked(folder / "embeddings.npy", embeddings, known, dict(index.entries))
    return embeddings, times, index, unchecked


def _check_times(path: Path, times: NDArray[np.float64], index: SetIndex, known: str | None) -> None:
    """Refuse times that are not as they were written, or that fall within a video."""
    if known is not None and known != checksum_array(times):
        raise _damaged(path, "it was changed or damaged since it was written (wrong checksum)")
    falls = np.flatnonzero(~(np.diff(times) >= 0)) + 1  # rows whose time is before the one above, or no time
    starts = np.array([entry.start for entry in index.entries.values()], dtype=np.int64)
    if not np.isfinite(times).all() or not np.isin(falls, starts).all():
        raise _damaged(path, "times must be finite seconds that never decrease within a video")


def check_set_folder(folder: Path, *, overwrite: bool, inputs: Iterable[Path] = ()) -> Path:
    """Refuse a folder that cannot become an embedding set; only embedding sets are replaced."""
    return check_folder(folder, marker=INDEX, is_own=FILES.__contains__, overwrite=overwrite, inputs=inputs)


@contextmanager
def new_folder(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a draft folder that becomes `folder` when the block succeeds; overwrite embedding sets only."""
    check_set_folder(folder, overwrite=overwrite)
    with atomic_folder(folder, overwrite=overwrite) as draft:
        yield draft


def write_index(
    folder: Path, index: SetIndex, embeddings: NDArray[np.float32], times: NDArray[np.float64]
) -> None:
    """Write `index.json` for the arrays beside it, with their checksums."""
    known = {name: checksum_array(embeddings[e.rows]) for name, e in index.entries.items()}
    content = {**index.to_json(), "checksums": known, "times_checksum": checksum_array(times)}
    (folder / INDEX).write_text(json.dumps(seal(content), indent=1), encoding="utf-8")


def _read_root(path: Path) -> Cursor:
    """Read the content of `index.json`, of a format that this program knows."""
    if not path.exists():
        missing = f"no embedding set in {path.parent} (cannot read {path.name}: {os.strerror(errno.ENOENT)})"
        raise EmbeddingError(f"{missing}. Create one with: cycleback embed")
    root = read_json(path, problem=EmbeddingError, advice=ADVICE)
    if not isinstance(root.value, dict) or root.value.get("format") != FORMAT:
        raise root.wrong("it is not the index of an embedding set")
    if root.value.get("version") != VERSION:
        version = str(root.value.get("version"))[:40]
        raise root.wrong(f"it has format version {version}, this program reads {VERSION}")
    check_seal(root)
    return root


def _open_array(path: Path, dtype: DTypeLike, ndim: int) -> NDArray[Any]:
    return open_npy(path, dtype, ndim, explain=partial(_damaged, path))


def _damaged(path: Path, reason: str) -> EmbeddingError:
    return EmbeddingError(f"cannot use {path}: {reason}{ADVICE}")


def _events_by_action(entries: Sequence[VideoEntry], names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The key events of each action: all `names` if there is one action, else those labelled in it."""
    actions = dict.fromkeys(entry.action for entry in entries)
    if len(actions) == 1:
        return {action: names for action in actions}
    labelled = {a: {event for e in entries if e.action == a for event in e.events} for a in actions}
    return {a: tuple(event for event in names if event in labelled[a]) for a in actions}
