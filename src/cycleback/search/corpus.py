"""The frames that are searched: those of many videos, in one or more memory-mapped arrays.

Rows are numbered through all shards, and videos in the order of their rows. A video is a range of rows.

Shapes: V videos, R rows of a shard, N frames of a video, D embedding size.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cycleback.embeddings import EmbeddingSet
from cycleback.embeddings.folder import Unchecked, VideoEntry, read_folder
from cycleback.errors import EmbeddingError, did_you_mean
from cycleback.models.streams import SCALES

Floats = NDArray[np.float32]
Seconds = NDArray[np.float64]
Rows = NDArray[np.int64]
Tags = Mapping[str, str]  # such as {"golfer": "kim"}
BLOCK_ROWS = 32_768  # rows per step: 4 MB at D = 32
SAMPLE_ROWS = 4_096


@dataclass(frozen=True)
class Shard:
    """One array of frames, and the videos in it that are searched, in order of their rows."""

    embeddings: Floats  # (R, D)
    times: Seconds  # (R,)
    videos: tuple[VideoEntry, ...]
    unchecked: Unchecked | None = None  # of a saved set

    def check(self, *videos: VideoEntry) -> None:
        """Refuse embeddings of these videos that were damaged since they were saved."""
        if self.unchecked is not None:
            for video in videos:
                self.unchecked.check(video.name)

    @cached_property
    def norms(self) -> Floats:
        """Squared lengths (R,) of the rows; kept because every search needs them (4 bytes per frame)."""
        self.check(*self.videos)
        norms = np.empty(len(self.embeddings), dtype=np.float32)
        for start in range(0, len(norms), BLOCK_ROWS):
            rows = self.embeddings[start : start + BLOCK_ROWS]
            np.einsum("rd,rd->r", rows, rows, out=norms[start : start + BLOCK_ROWS])
        return norms


@dataclass(frozen=True)
class Corpus:
    """Embeddings made by one encoder; opened with `open_corpus`, or made of a set."""

    shards: tuple[Shard, ...]  # none of them empty
    encoder: str | None = None  # fingerprint of the encoder, if known
    run: str | None = None  # run folder or model name of the encoder, if known
    source: Path | None = None  # the folder it was opened from, if any
    streams: Mapping[str, float] = field(default_factory=lambda: SCALES)  # weights of an untrained encoder
    tags: Mapping[str, Tags] = field(default_factory=dict)  # video → its tags, if it has any
    source_numbers: tuple[int, ...] = ()  # of an index: the numbers of the shards in their folder
    as_filmed: bool = False  # mirrored videos were not turned round

    @classmethod
    def of_set(cls, embeddings: EmbeddingSet) -> Self:
        """Copy the frames of a set in memory."""
        lengths = [len(embeddings[name]) for name in embeddings]
        starts = np.cumsum([0, *lengths])
        videos = tuple(
            VideoEntry(
                name,
                int(start),
                length,
                action=embeddings.action(name),
                path=None if embeddings.path(name) is None else str(embeddings.path(name)),
                events=embeddings.events(name),
            )
            for name, start, length in zip(embeddings, starts, lengths, strict=False)
        )
        rows = np.concatenate([embeddings[name] for name in embeddings])
        times = np.concatenate([embeddings.times(name) for name in embeddings])
        return cls((Shard(rows, times, videos),), embeddings.encoder, streams=embeddings.streams)

    @classmethod
    def of_folder(cls, folder: Path | str) -> Self:
        """Memory-map the frames of a saved set."""
        embeddings, times, index, unchecked = read_folder(Path(folder))
        videos = tuple(sorted(index.entries.values(), key=lambda entry: entry.start))
        shard = Shard(np.asarray(embeddings), np.asarray(times), videos, unchecked)
        return cls((shard,), index.encoder, source=Path(folder), streams=index.streams)

    @cached_property
    def videos(self) -> tuple[VideoEntry, ...]:
        """All videos, numbered by their position here; their `start` counts within their shard."""
        return tuple(video for shard in self.shards for video in shard.videos)

    @cached_property
    def names(self) -> dict[str, int]:
        """Name → number of each video."""
        return {video.name: number for number, video in enumerate(self.videos)}

    @cached_property
    def offsets(self) -> Rows:
        """First row of each shard, and last the number of all rows (shards + 1,)."""
        return np.cumsum([0, *(len(shard.embeddings) for shard in self.shards)], dtype=np.int64)

    @cached_property
    def starts(self) -> Rows:
        """First row (V,) of each video, increasing."""
        pairs = zip(self.offsets, self.shards, strict=False)
        return np.array([offset + video.start for offset, shard in pairs for video in shard.videos], np.int64)

    @cached_property
    def stops(self) -> Rows:
        """Row after the last (V,) of each video."""
        return self.starts + np.array([video.length for video in self.videos], dtype=np.int64)

    @property
    def size(self) -> int:
        """Length D of an embedding."""
        return int(self.shards[0].embeddings.shape[1])

    @property
    def num_frames(self) -> int:
        """Number of frames of all videos."""
        return int((self.stops - self.starts).sum())

    @cached_property
    def sample(self) -> NDArray[np.float64]:
        """Up to 4096 frames, spread evenly over all videos, to estimate distances."""
        ends: Rows = np.cumsum(self.stops - self.starts)
        picked = np.linspace(0, ends[-1] - 1, min(SAMPLE_ROWS, int(ends[-1]))).astype(np.int64)
        number = np.searchsorted(ends, picked, side="right")
        rows: Rows = self.stops[number] - (ends[number] - picked)
        parts = []
        for offset, shard in zip(self.offsets, self.shards, strict=False):
            inside = (rows >= offset) & (rows < offset + len(shard.embeddings))
            parts.append(shard.embeddings[rows[inside] - offset].astype(np.float64))
        sample = np.concatenate(parts)
        if not np.isfinite(sample).all():
            raise EmbeddingError(f"{self.source} has embeddings that are not finite. Embed the videos again.")
        return sample

    def number(self, name: str) -> int:
        """Return the number of a video."""
        if name not in self.names:
            hint = did_you_mean(name, self.names, otherwise=f"There are {len(self.names)} videos.")
            raise EmbeddingError(f"there is no video {name!r}. {hint}")
        return self.names[name]

    def shard_of(self, row: int) -> tuple[Shard, int]:
        """Return the shard of a row, and the shard's first row."""
        place = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return self.shards[place], int(self.offsets[place])

    def times(self, number: int) -> Seconds:
        """Return the times (N,) of the frames of one video in seconds."""
        shard, _ = self.shard_of(int(self.starts[number]))
        return shard.times[self.videos[number].rows]

    def times_at(self, rows: Rows) -> Seconds:
        """Return the times (n,) of rows (n,) in seconds."""
        places = np.searchsorted(self.offsets, rows, side="right") - 1
        times = np.empty(len(rows), dtype=np.float64)
        for place in np.unique(places):
            here = places == place
            times[here] = self.shards[place].times[rows[here] - self.offsets[place]]
        return times

    def embeddings(self, number: int) -> Floats:
        """Return the embeddings (N, D) of one video."""
        shard, _ = self.shard_of(int(self.starts[number]))
        shard.check(self.videos[number])
        return shard.embeddings[self.videos[number].rows]

    def blocks(self) -> Iterator[tuple[int, Floats]]:
        """Yield all rows, those of removed videos too, as (first row, rows (n, D))."""
        for offset, shard in zip(self.offsets, self.shards, strict=False):
            shard.check(*shard.videos)
            for start in range(0, len(shard.embeddings), BLOCK_ROWS):
                yield int(offset) + start, shard.embeddings[start : start + BLOCK_ROWS]
