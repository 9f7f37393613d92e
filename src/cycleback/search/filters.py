"""Which videos, and which part of each, a search looks at.

Shapes: V videos searched.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np

from cycleback.embeddings.folder import VideoEntry
from cycleback.errors import EmbeddingError
from cycleback.search.corpus import Corpus, Rows


@dataclass(frozen=True)
class Filter:
    """Only what fits all of these is found.

    Attributes:
        action: videos of this action; None for all.
        names: a pattern for the video's name, such as `monday/*`.
        between: part of each video by time, from 0.0 (start) to 1.0 (end).
        leave_out: names of videos that are not searched.
    """

    action: str | None = None
    names: str = "*"
    between: tuple[float, float] = (0.0, 1.0)
    leave_out: Collection[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        low, high = self.between
        if not 0 <= low < high <= 1:
            raise ValueError(
                f"between must be two shares of the video, 0 <= from < to <= 1, got {low} {high}"
            )


@dataclass(frozen=True)
class Spans:
    """Stretches of rows to search, one a video, in order of rows."""

    videos: Rows  # (V,) numbers
    starts: Rows  # (V,)
    stops: Rows  # (V,), each beyond its start

    def __len__(self) -> int:
        return len(self.videos)

    @property
    def num_rows(self) -> int:
        """Frames to search."""
        return int((self.stops - self.starts).sum())

    def among(self, places: Rows) -> "Spans":
        """Only the spans at `places`."""
        return Spans(self.videos[places], self.starts[places], self.stops[places])

    def place_of(self, rows: Rows) -> Rows:
        """The place of the span each row lies in; rows outside all spans are left out."""
        places = np.searchsorted(self.starts, rows, side="right") - 1
        inside = (places >= 0) & (rows < self.stops[places])
        return places[inside]


def spans_of(corpus: Corpus, chosen: Filter) -> Spans:
    """The rows that pass `chosen`; an error when no video does."""
    numbers = np.arange(len(corpus.videos))
    if chosen.action is not None or chosen.names != "*":
        numbers = numbers[[_fits(video, chosen) for video in corpus.videos]]
    left_out = [corpus.names[name] for name in chosen.leave_out if name in corpus.names]
    numbers = np.setdiff1d(numbers, left_out, assume_unique=True)
    spans = Spans(numbers, corpus.starts[numbers], corpus.stops[numbers])
    if chosen.between != (0.0, 1.0):
        spans = _cut(corpus, spans, chosen.between)
    if not len(spans):
        raise EmbeddingError(f"{_nothing_left(corpus, chosen)}. Loosen the filters, or add videos.")
    return spans


def _fits(video: VideoEntry, chosen: Filter) -> bool:
    of_action = chosen.action is None or video.action == chosen.action
    return of_action and fnmatchcase(video.name, chosen.names)


def _cut(corpus: Corpus, spans: Spans, between: tuple[float, float]) -> Spans:
    """The part of each span within `between`, by time; videos with no frame there are left out."""
    starts, stops = spans.starts.copy(), spans.stops.copy()
    for place, number in enumerate(spans.videos):
        times = corpus.times(int(number))
        low, high = times[0] + np.array(between) * (times[-1] - times[0])
        stops[place] = starts[place] + np.searchsorted(times, high, side="right")
        starts[place] += np.searchsorted(times, low, side="left")
    kept = np.flatnonzero(starts < stops)
    return Spans(spans.videos, starts, stops).among(kept)


def _nothing_left(corpus: Corpus, chosen: Filter) -> str:
    actions = sorted({video.action for video in corpus.videos})
    if chosen.action is not None and chosen.action not in actions:
        return f"no video of action {chosen.action!r} (actions: {', '.join(map(repr, actions))})"
    return f"none of {len(corpus.videos)} videos is left to search"
