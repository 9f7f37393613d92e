"""EmbeddingSet: the embeddings of many videos as one immutable value, in memory or as a folder on disk.

Shapes: N frames of a whole video, D embedding size.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.arrays import write_array, write_rows
from cycleback.display import show_rows
from cycleback.embeddings.folder import (
    SetIndex,
    Unchecked,
    VideoEntry,
    check_events,
    new_folder,
    read_folder,
    write_index,
)
from cycleback.errors import DataError, EmbeddingError, did_you_mean

Number = TypeVar("Number", np.float32, np.float64)

ASSUMED_FPS = 30.0  # for `times` where neither times nor a frame rate are known; `fps` is then None


@dataclass(frozen=True, eq=False, repr=False)
class EmbeddingSet:
    """Embeddings, times and key events by video name. Build one with `from_arrays` or `load`.

    Examples:
        >>> videos = EmbeddingSet.from_arrays({"a": [[0.0], [1.0]]}, events={"a": {"top": 1}}, fps=25)
        >>> videos["a"].shape, videos.times("a").tolist(), videos.phases("a").tolist()
        ((2, 1), [0.0, 0.04], [0, 1])
    """

    _embeddings: NDArray[np.float32]  # (sum N, D); the index may use a part of it
    _times: NDArray[np.float64]  # (sum N,)
    _index: SetIndex
    _unchecked: Unchecked | None = None  # of a saved set

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, ArrayLike],
        *,
        times: Mapping[str, ArrayLike] | None = None,
        events: Mapping[str, Mapping[str, int]] | None = None,
        actions: Mapping[str, str] | None = None,
        paths: Mapping[str, str | os.PathLike[str]] | None = None,
        fps: Mapping[str, float] | float | None = None,
        encoder: str | None = None,
        can_count_frames: bool = False,
        streams: Mapping[str, float] | None = None,
        mirrored: Collection[str] = (),
        event_names: Sequence[str] | None = None,
    ) -> Self:
        """Build a set from one (N, D) array per video; all mappings use the same names.

        Args:
            arrays: name -> (N, D) finite embeddings, with the same D for all.
            times: name -> (N,) seconds that never decrease; default: frame index / fps.
            events: name -> {event name: frame}; videos and events may be missing.
            actions: name -> action; videos are compared only within an action.
            paths: name -> the video file.
            fps: frames per second, one for all or by name. Where neither times nor fps are given, `times`
                assumes 30 frames per second and `fps` is None.
            encoder: fingerprint of the encoder that made the embeddings.
            can_count_frames: whether its embedder is recurrent, and so may solve the task by counting.
            streams: the weight of each stream of the encoder, if it has streams.
            mirrored: the videos that show the action mirrored and were turned round.
            event_names: all key events, in order; by default the events of the videos.
        """
        rates = dict.fromkeys(arrays, fps) if isinstance(fps, int | float) else fps
        facts = {"times": times, "events": events, "action": actions, "path": paths, "fps": rates}
        known = {what: _check_names(what, mapping or {}, arrays) for what, mapping in facts.items()}
        blocks = _check_arrays(arrays)
        clocks: list[NDArray[np.float64]] = []
        entries: list[VideoEntry] = []
        start = 0
        for name, block in blocks.items():
            about = {what: mapping.get(name) for what, mapping in known.items()}
            clock, rate = _clock(name, len(block), times=about["times"], fps=about["fps"])
            path = None if about["path"] is None else os.fspath(about["path"])
            labels = check_events(name, about["events"] or {}, len(block))
            entries.append(VideoEntry(name, start, len(block), about["action"] or "", path, rate, labels))
            clocks.append(clock)
            start += len(clock)
        index = SetIndex.build(
            entries,
            event_names=event_names,
            encoder=encoder,
            can_count_frames=can_count_frames,
            streams=streams,
            mirrored=mirrored,
        )
        return cls(_join(blocks.values()), _join(clocks), index)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Self:
        """Open a saved set; its arrays are memory-mapped, and those of a video checked at their first use."""
        return cls(*read_folder(Path(directory)))

    def save(self, directory: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the folder atomically; an existing set is replaced only with `overwrite`."""
        with new_folder(Path(directory), overwrite=overwrite) as draft:
            self._write(draft)
        return Path(directory)

    def _write(self, folder: Path) -> None:
        """Write one video after another; `phases.npy` is for other programs: -1 where unknown."""
        index, rows = self._index.compact(), self.num_frames
        phases = np.full(rows, -1, dtype=np.int64)
        with (
            write_rows(folder / "embeddings.npy", np.float32, (self.size,)) as add_embeddings,
            write_rows(folder / "times.npy", np.float64, ()) as add_times,
        ):
            for entry in index.entries.values():
                add_embeddings(self[entry.name])
                add_times(self.times(entry.name))
                known = self.phases(entry.name)
                if known is not None:
                    phases[entry.rows] = known
        if (phases >= 0).any():
            write_array(folder / "phases.npy", phases)
        embeddings, times = (
            np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("embeddings", "times")
        )
        write_index(folder, index, embeddings, times)

    @property
    def names(self) -> tuple[str, ...]:
        """The videos, in order."""
        return tuple(self._index.entries)

    @property
    def size(self) -> int:
        """Length D of one embedding."""
        return int(self._embeddings.shape[1])

    @property
    def num_frames(self) -> int:
        """Frames of all videos together."""
        return sum(entry.length for entry in self._index.entries.values())

    @property
    def encoder(self) -> str | None:
        """Fingerprint of the encoder that made the embeddings, where known."""
        return self._index.encoder

    @property
    def can_count_frames(self) -> bool:
        """Whether the embedder is recurrent, and so may solve the task by counting frames."""
        return self._index.can_count_frames

    @property
    def streams(self) -> dict[str, float]:
        """The weight of each stream of the encoder; empty if it sees only appearance, or vectors."""
        return dict(self._index.streams)

    @property
    def mirrored(self) -> tuple[str, ...]:
        """The videos whose motion and pose were turned round, because they show the action mirrored."""
        return self._index.mirrored

    @property
    def event_names(self) -> tuple[str, ...]:
        """All key events, in order."""
        return self._index.event_names

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions, in order of appearance; `("",)` where none are named."""
        return tuple(dict.fromkeys(entry.action for entry in self._index.entries.values()))

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        """Embeddings (N, D) of one video, a read-only view."""
        entry = self._index.entry(name)
        if self._unchecked is not None:
            self._unchecked.check(name)
        return self._embeddings[entry.rows]

    def __len__(self) -> int:
        return len(self._index.entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._index.entries)

    def __contains__(self, name: object) -> bool:
        return name in self._index.entries

    def __repr__(self) -> str:
        return f"EmbeddingSet({len(self)} videos, {self.num_frames} frames, D={self.size})"

    def _repr_html_(self) -> str:
        """Show the videos as a table in a notebook."""
        rows = [
            {
                "video": name,
                "frames": len(self[name]),
                "seconds": round(float(self.times(name)[-1]), 2),
                "action": self.action(name),
                "key events": ", ".join(self.events(name)),
            }
            for name in self.names
        ]
        return show_rows(rows, caption=f"{len(self)} videos, {self.num_frames} frames of size {self.size}")

    def times(self, name: str) -> NDArray[np.float64]:
        """Seconds (N,) of each frame of one video."""
        return self._times[self._index.entry(name).rows]

    def fps(self, name: str) -> float | None:
        """Average frames per second, or None where neither times nor a frame rate were given."""
        return self._index.entry(name).fps

    def events(self, name: str) -> dict[str, int]:
        """Frame of each labelled key event of one video."""
        return dict(self._index.entry(name).events)

    def phases(self, name: str) -> NDArray[np.int64] | None:
        """Phase (N,) of each frame: the number of key events at or before it.

        None unless every key event is labelled; with several actions, every event of the video's action.
        """
        entry = self._index.entry(name)
        wanted = self._index.action_events.get(entry.action, ())
        if not wanted or any(event not in entry.events for event in wanted):
            return None
        frames = np.sort([entry.events[event] for event in wanted])
        return np.searchsorted(frames, np.arange(entry.length), side="right").astype(np.int64)

    def action(self, name: str) -> str:
        """Action of one video; empty where none was given."""
        return self._index.entry(name).action

    def path(self, name: str) -> Path | None:
        """The video file, where known."""
        path = self._index.entry(name).path
        return None if path is None else Path(path)

    def source(self, name: str) -> str:
        """Name of the whole video, for a part of one; else the name itself."""
        return self._index.entry(name).source or name

    def first_frame(self, name: str) -> int:
        """Frame of the video file that is the first of the embeddings; 0 unless this is a part of a video."""
        return self._index.entry(name).first_frame

    def subset(self, names: Sequence[str]) -> Self:
        """The set of the videos `names`, in that order, without copying."""
        return replace(self, _index=self._index.subset(names))

    def cut(self, parts: Mapping[str, tuple[str, int, int]]) -> Self:
        """The set of parts of videos, without copying.

        `parts` maps a new name to (video, first frame, frame after the last). A part keeps the
        seconds of its whole video. Its embeddings and events count from its own first frame, which is frame
        `first_frame` of the whole video.
        """
        return type(self)(self._embeddings, self._times, self._index.cut(parts))

    def of_action(self, action: str) -> Self:
        """The set of the videos of one action."""
        return self.subset([name for name in self if self.action(name) == action])

    def with_embeddings(self, arrays: Mapping[str, ArrayLike], *, encoder: str | None = None) -> Self:
        """The set with the same videos, times and labels, but other embeddings."""
        for name, entry in self._index.entries.items():
            if name not in arrays or len(np.asarray(arrays[name])) != entry.length:
                count = len(np.asarray(arrays[name])) if name in arrays else "no"
                raise EmbeddingError(f"{name}: {count} embeddings for {entry.length} frames")
        blocks = _check_arrays({name: arrays[name] for name in self})
        times = _join([self.times(name) for name in self])
        index = replace(
            self._index.compact(), encoder=encoder, can_count_frames=False, streams={}, mirrored=()
        )
        return type(self)(_join(blocks.values()), times, index)


def _check_arrays(arrays: Mapping[str, ArrayLike]) -> dict[str, NDArray[np.float32]]:
    """Convert all embeddings to float32 (N, D); refuse values that are not finite and sizes that differ."""
    if not arrays:
        raise EmbeddingError("an embedding set needs at least one video, got none")
    blocks = {name: _check_array(name, array) for name, array in arrays.items()}
    first, size = next((name, block.shape[1]) for name, block in blocks.items())
    for name, block in blocks.items():
        if block.shape[1] != size:
            raise EmbeddingError(
                f"{name} has embeddings of size {block.shape[1]}, but {first} of size {size}"
            )
    return blocks


def _check_array(name: str, array: ArrayLike) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # values too large for float32 become inf, which is refused below
        block = np.asarray(array, dtype=np.float32)
    if block.ndim != 2 or 0 in block.shape:
        raise EmbeddingError(f"{name}: embeddings must be (N >= 1, D >= 1), got {block.shape}")
    broken = np.flatnonzero(~np.isfinite(block).all(axis=1))
    if len(broken):
        message = f"{name}: {len(broken)} of {len(block)} frames have embeddings that are not finite"
        raise EmbeddingError(f"{message} (first: frame {broken[0]}). Train again, or leave the video out.")
    return block


def _clock(
    name: str, length: int, *, times: ArrayLike | None, fps: float | None
) -> tuple[NDArray[np.float64], float | None]:
    """The seconds (N,) of one video and its frame rate, each from the other if only one is given."""
    if fps is not None and not (np.isfinite(fps) and fps > 0):
        raise EmbeddingError(f"{name}: fps must be positive, got {fps}")
    if times is None:
        return np.arange(length) / (fps or ASSUMED_FPS), fps
    clock = np.array(times, dtype=np.float64)
    if clock.shape != (length,):
        raise EmbeddingError(f"{name}: times must be ({length},), one per frame, got {clock.shape}")
    if not np.isfinite(clock).all() or (np.diff(clock) < 0).any():
        raise EmbeddingError(f"{name}: times must be finite seconds that never decrease")
    span = float(clock[-1] - clock[0])
    return clock, fps or ((length - 1) / span if span > 0 else ASSUMED_FPS)


def _check_names(what: str, mapping: Mapping[str, Any], arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in mapping:
        if name not in arrays:
            hint = did_you_mean(name, arrays, otherwise=f"There are {len(arrays)} other videos.")
            raise EmbeddingError(f"{what} of {name!r}, which has no embeddings. {hint}")
    return mapping


def _join(blocks: Iterable[NDArray[Number]]) -> NDArray[Number]:
    """Concatenate rows into one read-only array."""
    rows = np.concatenate(list(blocks))
    rows.flags.writeable = False
    return rows


def check_same_encoder(encoders: Mapping[str, str | None]) -> None:
    """Refuse to compare embeddings of different encoders.

    `encoders` maps a description of each set to the fingerprint of its encoder; None is trusted.
    """
    known = {what: encoder for what, encoder in encoders.items() if encoder is not None}
    if len(set(known.values())) > 1:
        listed = ", ".join(f"{what} by {encoder}" for what, encoder in known.items())
        raise EmbeddingError(f"different encoders cannot be compared: {listed}. Embed all with the same run.")


def check_one_action(*sets: EmbeddingSet) -> None:
    """Refuse videos of different actions; a video whose action is unknown is accepted."""
    videos = {each.action(name): name for each in sets for name in each if each.action(name)}
    if len(videos) > 1:
        (first, one), (second, other), *_ = videos.items()
        raise DataError(f"{one} shows {first!r} and {other} shows {second!r}: pass videos of the same action")
