"""An embedding set as a folder: `embeddings.npy`, `times.npy`, `index.json` and, with labels, `phases.npy`.

The index holds the rows, action, file, frame rate and key events of each video.

Shapes: N frames of a whole video, D embedding size.
"""

import json
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cycleback.data.records import check_name
from cycleback.errors import DataError, EmbeddingError, did_you_mean
from cycleback.files import atomic_folder, check_folder

INDEX = "index.json"
FILES = (INDEX, "embeddings.npy", "times.npy", "phases.npy")
FORMAT = "cycleback-embeddings"
VERSION = 1


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
        return {**head, **labels, "videos": [asdict(entry) for entry in self.entries.values()]}

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Read the content of `index.json`; a ValueError names the problem."""
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
                dict(content.get("streams", {})),
                tuple(content.get("mirrored", ())),
            )
            for entry in entries:
                check_name(entry.name)
            is_whole = len(index.entries) == len(entries) and index.compact().entries == index.entries
        except (KeyError, TypeError, AttributeError, DataError) as error:
            raise ValueError(f"it is damaged ({error!r})") from error
        if not is_whole or not entries:
            raise ValueError("it is damaged (its videos are missing, doubled or overlap)")
        return index


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


def read_folder(folder: Path) -> tuple[NDArray[np.float32], NDArray[np.float64], SetIndex]:
    """Open memory-mapped embeddings (sum N, D) and times (sum N,), and their index."""
    index = _read_index(folder / INDEX)
    embeddings = _read_array(folder / "embeddings.npy", np.float32, 2)
    times = _read_array(folder / "times.npy", np.float64, 1)
    frames = sum(entry.length for entry in index.entries.values())
    if not len(embeddings) == len(times) == frames:
        rows = f"{len(embeddings)} embeddings and {len(times)} times for {frames} frames"
        raise EmbeddingError(f"{folder} is damaged: {rows} in {INDEX}. Embed the videos again.")
    return embeddings, times, index


def check_set_folder(folder: Path, *, overwrite: bool, inputs: Iterable[Path] = ()) -> Path:
    """Refuse a folder that cannot become an embedding set; only embedding sets are replaced."""
    return check_folder(folder, marker=INDEX, is_own=FILES.__contains__, overwrite=overwrite, inputs=inputs)


@contextmanager
def new_folder(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a draft folder that becomes `folder` when the block succeeds; overwrite embedding sets only."""
    check_set_folder(folder, overwrite=overwrite)
    with atomic_folder(folder, overwrite=overwrite) as draft:
        yield draft


def write_index(folder: Path, index: SetIndex) -> None:
    """Write `index.json`."""
    (folder / INDEX).write_text(json.dumps(index.to_json(), indent=1), encoding="utf-8")


def new_array(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """Create a .npy file of that shape to fill in place, so that memory does not grow with it."""
    return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)


def _read_index(path: Path) -> SetIndex:
    try:
        return SetIndex.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        missing = f"no embedding set in {path.parent} (cannot read {path.name}: {error.strerror})"
        raise EmbeddingError(f"{missing}. Create one with: cycleback embed") from error
    except ValueError as error:  # JSON and Unicode errors are ValueErrors too
        raise EmbeddingError(f"cannot use {path}: {error}. Embed the videos again.") from error


def _read_array(path: Path, dtype: DTypeLike, ndim: int) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = "it is missing" if isinstance(error, FileNotFoundError) else f"it is damaged: {error}"
        raise EmbeddingError(f"cannot read {path} ({reason}). Embed the videos again.") from error
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != ndim:
        shape = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else "an archive"
        expected = f"{np.dtype(dtype)} with {ndim} dimension{'s' * (ndim > 1)}"
        raise EmbeddingError(f"cannot use {path}: expected {expected}, got {shape}. Embed the videos again.")
    return array


def _events_by_action(entries: Sequence[VideoEntry], names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The key events of each action: all `names` if there is one action, else those labelled in it."""
    actions = dict.fromkeys(entry.action for entry in entries)
    if len(actions) == 1:
        return {action: names for action in actions}
    labelled = {a: {event for e in entries if e.action == a for event in e.events} for a in actions}
    return {a: tuple(event for event in names if event in labelled[a]) for a in actions}
