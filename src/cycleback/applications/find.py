"""Find every place where a long recording shows an action, or tell that there is none.

The recording is decoded once, from start to end, and only what is needed of the last seconds is kept. It is
compared with the examples by its motion, which needs no network. Windows never reach across a cut, so no
occurrence does.

    find_action       a video file, and examples as video files
    Scanner           the same for measured motion, piece by piece
    find_occurrences  the same for measured motion in one array

The likeness of a part says how much nearer its frames are to those of the examples, warped onto them, than
unrelated frames are. It becomes a confidence by a curve that was chosen on other recordings,
see `estimate_confidence`.

Shapes: N frames of a recording, n frames of a piece of it, T frames of an example.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cycleback.alignment.distances import spread_items
from cycleback.alignment.occurrences import (
    MARGIN,
    MIN_FRAMES,
    Action,
    Part,
    divide_shared,
    find_parts,
    gather_action,
    is_same,
    keep_apart,
    settle_part,
)
from cycleback.errors import DataError
from cycleback.models.streams import FPS, motion_vectors
from cycleback.progress import Counter, ignore
from cycleback.video import iter_frames, probe
from cycleback.video.motion import GAP_S, MotionMeter
from cycleback.video.shots import MAX_SIDE, SIDE, ShotDetector

Floats = NDArray[np.float64]
Motion = NDArray[np.floating[Any]]
COLUMNS = ("occurrence", "start_frame", "end_frame", "start_s", "end_s", "confidence", "likeness", "speed")

MAX_STRETCH = 2.0  # times that an occurrence is slower or faster than the examples
MAX_EXAMPLES = 5  # of a folder; more find no more
MIN_CONFIDENCE = 0.5
WINDOW, HOP = 2.5, 0.75  # length of a window and distance of two, in examples
MIN_LIKENESS = 0.28  # in a window: a part with less is not looked at again
MAX_OVERLAP = 0.25  # of the shorter of two occurrences; more is the same one
CENTRE, SHORT, WIDTH = 0.2, 1.65, 0.025  # of the curve from likeness to confidence
WORTH_KEEPING = 0.25  # likeness of parts that are told, if only as doubtful
MAX_SEEN = 32  # parts of the last windows that are not looked at again
LOUDNESS_FREE, LOUDNESS_PRICE = 1.5, 0.05  # how much louder or quieter motion may be, as a logarithm
MIN_LOUDNESS = -12.0  # of an example; the noise of cameras is about -10
CHUNK_FRAMES = 64


@dataclass(frozen=True)
class Occurrence:
    """One occurrence of the action: frames `start` to `stop`, without the last."""

    start: int
    stop: int
    start_s: float
    end_s: float
    confidence: float  # in [0, 1]
    likeness: float  # to the examples: 1 is equal, about 0.15 is any other action
    speed: float  # against the mean example; 2 is twice as fast


@dataclass(frozen=True, eq=False)
class Occurrences:
    """What was found in one recording."""

    found: tuple[Occurrence, ...]  # in order, without overlap
    cuts: tuple[int, ...]  # frames at which a new shot begins
    times: Floats = field(repr=False)  # (N,) seconds of each frame
    curve: NDArray[np.float32] = field(repr=False)  # (N,) likeness of the best part over each frame
    threshold: float = 0.0  # likeness at which the confidence is one half
    doubtful: tuple[Occurrence, ...] = ()  # the best of those below the confidence that was asked for

    @property
    def cuts_s(self) -> list[float]:
        """Seconds at which a new shot begins."""
        return [float(self.times[cut]) for cut in self.cuts]

    def rows(self) -> list[dict[str, Any]]:
        """Make one row per occurrence; `end_frame` is its last frame."""
        return [
            {"occurrence": number, "start_frame": each.start, "end_frame": each.stop - 1}
            | {"start_s": round(each.start_s, 6), "end_s": round(each.end_s, 6)}
            | {"confidence": round(each.confidence, 4), "likeness": round(each.likeness, 4)}
            | {"speed": round(each.speed, 3)}
            for number, each in enumerate(self.found, start=1)
        ]

    def to_json(self) -> dict[str, Any]:
        """Summarise: count, occurrences, the best one that was too doubtful, and the cuts."""
        best = max(self.doubtful, key=lambda each: each.confidence, default=None)
        return {
            "count": len(self.found),
            "occurrences": self.rows(),
            "best_doubtful_confidence": None if best is None else round(best.confidence, 4),
            "frames": len(self.times),
            "cuts_frames": list(self.cuts),
            "cuts_s": [round(second, 6) for second in self.cuts_s],
        }

    def _repr_html_(self) -> str:
        """Show a table in a notebook."""
        cells = ["".join(f"<td>{escape(str(value))}</td>" for value in row.values()) for row in self.rows()]
        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        table = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"<p>{len(self.found)} occurrences</p><table><tr>{head}</tr>{table}</table>"


@dataclass(frozen=True, eq=False)
class Sought:
    """The action that is looked for, by its examples."""

    action: Action
    loudness: float  # mean logarithm of how much moves


def read_action(videos: Sequence[str | os.PathLike[str]], *, span: tuple[int, int] | None = None) -> Sought:
    """Read the examples of an action, at most MAX_EXAMPLES of them, evenly spread.

    Args:
        span: the first and the last frame of the action in the first video, which is then the only example.
    """
    measured = []
    for video in spread_items(videos, MAX_EXAMPLES) if span is None else videos[:1]:
        motion, times = read_motion(video, span=span)
        if len(times) < MIN_FRAMES:
            raise DataError(
                f"{Path(video)} shows {len(times)} frames of the action; expected {MIN_FRAMES} or more"
            )
        measured.append((motion, times))
    return describe_action(measured)


def describe_action(measured: Sequence[tuple[Motion, Floats]]) -> Sought:
    """Describe an action by the motion (T, 4, 8, 8) of each example and the seconds (T,) of its frames."""
    examples, loud = [], []
    for motion, times in measured:
        vectors = motion_vectors(motion, times)
        loud.append(measure_loudness(motion))
        if not vectors.any() or loud[-1] < MIN_LOUDNESS:
            raise DataError("nothing moves in an example of the action: give a video in which something does")
        examples.append((vectors, float(times[-1] - times[0]) * len(times) / max(len(times) - 1, 1)))
    return Sought(gather_action(examples), float(np.mean(loud)))


def measure_loudness(motion: Motion) -> float:
    """Return the logarithm of how much moves in frames (n, 4, 8, 8), apart from what moves everywhere."""
    cells = np.asarray(motion, dtype=np.float32)
    cells = np.maximum(cells - np.median(cells, axis=(2, 3), keepdims=True), 0)
    return float(np.log(cells.mean() + 1e-7))


def doubtful_likeness(frames: float) -> float:
    """Return the likeness at which the confidence is one half, for an action of so many frames.

    A few frames look like others by chance more often than many do: chance falls with their square root.
    """
    return CENTRE + SHORT / float(np.sqrt(frames))


def estimate_confidence(likeness: float, *, frames: float, louder: float = 0.0) -> float:
    """Return how sure it is that a part with this likeness shows the action, in [0, 1].

    The curve was chosen on clips of four actions; `python benchmarks/find.py --fit` fits it anew.

    Args:
        frames: of the action, at 30 per second or at the lower rate of the recording.
        louder: logarithm of how much more moves than in the examples.
    """
    price = LOUDNESS_PRICE * max(0.0, abs(louder) - LOUDNESS_FREE)
    return float(1 / (1 + np.exp(-(likeness - price - doubtful_likeness(frames)) / WIDTH)))


def iter_motion(
    video: str | os.PathLike[str], *, find_cuts: bool = True
) -> Iterator[tuple[Motion, Floats, list[int]]]:
    """Yield the motion (n, 4, 8, 8) of a video, the seconds (n,) of its frames, and cuts found meanwhile.

    A cut is the number of the first frame of a shot, told at most SIDE frames late.
    """
    meter, detector = MotionMeter(), ShotDetector()
    for chunk in iter_frames(video, max_side=MAX_SIDE, chunk_frames=CHUNK_FRAMES):
        cuts = detector.push(chunk.frames) if find_cuts else []
        yield meter.push(chunk.frames, chunk.times), chunk.times, cuts


def read_motion(
    video: str | os.PathLike[str], *, span: tuple[int, int] | None = None
) -> tuple[Motion, Floats]:
    """Return the motion (N, 4, 8, 8) of a video, and the seconds (N,) of its frames.

    Args:
        span: only from the first to the last of these frames; nothing after them is decoded.
    """
    first, last = span or (0, None)
    motions, clocks, start = list[Motion](), list[Floats](), 0
    for motion, times, _ in iter_motion(video, find_cuts=False):
        inside = slice(max(0, first - start), None if last is None else max(0, last + 1 - start))
        motions.append(motion[inside])
        clocks.append(times[inside])
        start += len(times)
        if last is not None and start > last:
            break
    whole, clock = np.concatenate(motions).astype(np.float32), np.concatenate(clocks)
    if first == 0:
        mend_starts(whole, clock)
    return whole, clock


def find_action(
    references: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    recording: str | os.PathLike[str],
    *,
    span: tuple[int, int] | None = None,
    max_stretch: float = MAX_STRETCH,
    min_confidence: float = MIN_CONFIDENCE,
    progress: Counter = ignore,
) -> Occurrences:
    """Find every place where a recording shows the action of the references.

    Args:
        references: one video of the action, or several; they show the action and little else.
        span: the first and the last frame of the action in the first reference, which may be the recording.
        max_stretch: how many times slower or faster the action may be.
        min_confidence: of what counts as found, in [0, 1].
        progress: called with (frames done, frames of the recording).
    """
    several = [references] if isinstance(references, str | os.PathLike) else list(references)
    sought = read_action(several, span=span)
    info = probe(recording)
    scanner = Scanner(sought, fps=info.fps, max_stretch=max_stretch)
    for motion, times, cuts in iter_motion(recording):
        scanner.push(motion, times, cuts)
        progress(min(scanner.num_frames, info.num_frames), info.num_frames)
    return scanner.finish(min_confidence=min_confidence)


def find_occurrences(
    examples: Sequence[tuple[Motion, Floats]],
    motion: Motion,
    times: ArrayLike,
    *,
    cuts: Iterable[int] = (),
    max_stretch: float = MAX_STRETCH,
    min_confidence: float = MIN_CONFIDENCE,
) -> Occurrences:
    """Do what `find_action` does, for arrays.

    Args:
        examples: motion (T, 4, 8, 8) and seconds (T,) of each.
        motion: (N, 4, 8, 8) of the recording.
        times: (N,) seconds of its frames.
        cuts: frames at which a new shot begins.
    """
    clock = np.asarray(times, dtype=np.float64)
    fps = (len(clock) - 1) / float(clock[-1] - clock[0]) if len(clock) > 1 else 1.0
    scanner = Scanner(describe_action(examples), fps=fps, max_stretch=max_stretch)
    scanner.push(motion, clock, sorted(cuts))
    return scanner.finish(min_confidence=min_confidence)


class Scanner:
    """Looks for an action in the motion of a recording, piece by piece.

    Memory does not grow with the recording, but for 12 bytes a frame: its second and the curve.
    """

    def __init__(self, sought: Sought, *, fps: float, max_stretch: float = MAX_STRETCH) -> None:
        if not 1 <= max_stretch < 100:
            raise ValueError(f"max_stretch must be from 1 to 100, got {max_stretch}")
        self.sought, self.max_stretch = sought, max_stretch
        self._frames = sought.action.seconds * min(fps, FPS)  # of an occurrence
        self._doubt = doubtful_likeness(self._frames)
        length = max(sought.action.seconds * fps, MIN_FRAMES)  # frames
        self._window, self._hop = round(max(WINDOW, max_stretch + HOP) * length), max(1, round(HOP * length))
        self._margin = int(MARGIN * max_stretch * length) + 1
        self._motion: Motion = np.empty((0, 4, 8, 8), dtype=np.float32)  # of frame `_first` and later ones
        self._times: Floats = np.empty(0)
        self._curve = np.empty(0, dtype=np.float32)
        self._first = self._shot = self._next = 0  # of what is kept, of this shot, of the next window
        self._looked = 0  # frames before this one were in a window
        self._old: list[tuple[Floats, NDArray[np.float32]]] = []  # seconds and curve of the frames before
        self._found: list[tuple[Part, float]] = []  # parts, and how loud each is
        self._seen: list[Part] = []  # in the last windows
        self._cuts: list[int] = []

    @property
    def num_frames(self) -> int:
        """How many frames have come so far."""
        return self._first + len(self._times)

    def push(self, motion: Motion, times: Floats, cuts: Iterable[int] = ()) -> None:
        """Take the next motion (n, 4, 8, 8), the seconds (n,) of its frames, and the cuts found meanwhile.

        Cuts are numbers of frames in order, none more than SIDE frames before this piece.
        """
        self._motion = np.concatenate([self._motion, np.asarray(motion, dtype=np.float32)])
        self._times = np.concatenate([self._times, times])
        self._curve = np.concatenate([self._curve, np.zeros(len(times), dtype=np.float32)])
        for cut in cuts:
            self._end_shot(cut)
            self._cuts.append(cut)
        self._scan(self.num_frames - SIDE, is_end=False)

    def finish(self, *, min_confidence: float = MIN_CONFIDENCE) -> Occurrences:
        """Look through the rest and return what was found."""
        self._end_shot(self.num_frames)
        times = np.concatenate([*(old for old, _ in self._old), self._times])
        curve = np.concatenate([*(old for _, old in self._old), self._curve])
        loudness = {(part.start, part.stop): loud for part, loud in self._found}
        best = keep_apart([part for part, _ in self._found], max_overlap=MAX_OVERLAP)
        louder = [loudness[each.start, each.stop] - self.sought.loudness for each in best]
        told = [
            self._tell(part, estimate_confidence(part.likeness, frames=self._frames, louder=more), times)
            for part, more in zip(divide_shared(best), louder, strict=True)
        ]
        return Occurrences(
            found=tuple(each for each in told if each.confidence >= min_confidence),
            cuts=tuple(self._cuts),
            times=times,
            curve=curve,
            threshold=self._doubt,
            doubtful=tuple(each for each in told if each.confidence < min_confidence),
        )

    def _tell(self, part: Part, confidence: float, times: Floats) -> Occurrence:
        start_s, end_s = float(times[part.start]), 2 * float(times[-1]) - float(times[-2])
        if part.stop < len(times):
            end_s = float(times[part.stop])  # a frame lasts until the next
        speed = self.sought.action.seconds / max(end_s - start_s, 1e-9)
        return Occurrence(part.start, part.stop, start_s, end_s, confidence, part.likeness, speed)

    def _end_shot(self, stop: int) -> None:
        """Look through the rest of a shot that ends before frame `stop`, and begin the next one."""
        self._scan(stop, is_end=True)
        self._shot = self._next = self._looked = stop
        self._seen.clear()
        self._forget(stop)
        mend_starts(self._motion, self._times)

    def _scan(self, limit: int, *, is_end: bool) -> None:
        """Look through all windows before frame `limit`; the last one of a shot ends there."""
        while self._next + self._window + (0 if is_end else self._margin) <= limit:
            self._look(self._next, self._next + self._window, limit)
            self._next += self._hop
            self._forget(self._next - self._margin - self._hop)
        if is_end and self._looked < limit:
            self._look(max(self._shot, limit - self._window), limit, limit)

    def _forget(self, first: int) -> None:
        """Drop the motion of frames before `first`, which no later window needs."""
        count = max(0, min(first, self.num_frames) - self._first)
        self._old.append((self._times[:count], self._curve[:count]))
        self._motion, self._times = self._motion[count:].copy(), self._times[count:].copy()
        self._curve = self._curve[count:].copy()
        self._first += count

    def _look(self, start: int, stop: int, limit: int) -> None:
        """Look for parts in the window of frames `start` to `stop`; they may reach to the frame `limit`."""
        self._looked = stop
        inside = slice(start - self._first, stop - self._first)
        times = self._times[inside]
        if len(times) < MIN_FRAMES:
            return
        parts, curve = find_parts(
            self.sought.action,
            motion_vectors(self._motion[inside], times),
            frame_s=float(times[-1] - times[0]) / (len(times) - 1),
            max_stretch=self.max_stretch,
            least=min(MIN_LIKENESS, self._doubt - 0.04),
        )
        np.maximum(self._curve[inside], curve, out=self._curve[inside])
        low, high = max(self._shot, self._first), min(limit, self.num_frames)
        for part in parts:
            self._settle(part, start, (low, high))

    def _settle(self, part: Part, offset: int, limits: tuple[int, int]) -> None:
        """Settle a part of a window that begins at frame `offset`, within limits, unless it is known."""
        part = Part(part.start + offset, part.stop + offset, part.likeness)
        if any(is_same(part, other) for other in self._seen):
            return
        low, high = limits
        kept = slice(low - self._first, high - self._first)
        settled = settle_part(
            Part(part.start - low, part.stop - low, part.likeness),
            self._motion[kept],
            self._times[kept],
            action=self.sought.action,
            describe=motion_vectors,
            max_stretch=self.max_stretch,
        )
        settled = Part(settled.start + low, settled.stop + low, settled.likeness)
        self._seen = [*self._seen[-MAX_SEEN:], part, settled]
        curve = self._curve[settled.start - self._first : settled.stop - self._first]
        np.maximum(curve, settled.likeness, out=curve)
        if settled.likeness >= min(WORTH_KEEPING, self._doubt - 0.1):
            motion = self._motion[settled.start - self._first : settled.stop - self._first]
            self._found.append((settled, measure_loudness(motion)))


def mend_starts(motion: Motion, times: Floats) -> None:
    """Give the first frames of a shot, which were compared with the shot before, the motion of the next one.

    Args:
        motion: (n, 4, 8, 8) from the first frame of the shot on; changed in place.
        times: (n,) seconds.
    """
    if len(times) < 2:
        return
    first = max(1, int(np.searchsorted(times, times[0] + 0.75 * GAP_S)))
    first = min(first, len(times) - 1)
    motion[:first] = motion[first]
