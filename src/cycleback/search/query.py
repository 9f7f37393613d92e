"""What is looked for: a frame of a video, an image or a vector.

Shapes: D embedding size.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from cycleback.data.records import NameIndex
from cycleback.errors import DataError
from cycleback.search.corpus import Corpus, Floats, Seconds

SECONDS = re.compile(r"(.+)@([-+]?[0-9]*\.?[0-9]+)s?")
FRAME = re.compile(r"(.+)#(-?[0-9]+)")


@dataclass(frozen=True, eq=False)
class Query:
    """An embedding to look for, and where it is from.

    Attributes:
        vector: (D,) finite.
        encoder: fingerprint of the encoder that made it, where known.
        video: the video it is a frame of, where that is one of those searched.
        frame: number of the frame in that video.
        seconds: time of the frame in that video.
        path: the video or image file, to show it.
    """

    vector: Floats
    encoder: str | None = None
    video: str | None = None
    frame: int | None = None
    seconds: float | None = None
    path: Path | None = None


@dataclass(frozen=True)
class Moment:
    """What a user typed: `VIDEO@SECONDS`, `VIDEO#FRAME`, or a file alone."""

    source: str
    seconds: float | None = None
    frame: int | None = None


def parse_moment(text: str) -> Moment:
    """`swing.mp4@2.5` and `swing.mp4#75` are moments of a video; anything else is the name of a file."""
    if match := SECONDS.fullmatch(text):
        return Moment(match[1], seconds=float(match[2]))
    if match := FRAME.fullmatch(text):
        return Moment(match[1], frame=int(match[2]))
    return Moment(text)


def frame_query(
    corpus: Corpus, video: str, *, frame: int | None = None, seconds: float | None = None
) -> Query:
    """A frame of a video of the corpus, by its number or by the time nearest to it."""
    if (frame is None) == (seconds is None):
        raise ValueError(f"give either frame or seconds, got {frame!r} and {seconds!r}")
    number = corpus.number(video)
    times = corpus.times(number)
    chosen = (
        _checked_frame(video, frame, len(times)) if frame is not None else _frame_at(video, seconds, times)
    )
    path = corpus.videos[number].path
    return Query(
        vector=np.array(corpus.embeddings(number)[chosen], dtype=np.float32),
        encoder=corpus.encoder,
        video=video,
        frame=chosen,
        seconds=float(times[chosen]),
        path=None if path is None else Path(path),
    )


def find_video(corpus: Corpus, written: str) -> str | None:
    """The video of the corpus a user means, by its name or its file; None when it is none of them."""
    if written in corpus.names:
        return written
    path = Path(written)
    if not path.exists():
        return NameIndex(corpus.names).match(written)
    here = path.absolute()
    return next(
        (v.name for v in corpus.videos if v.path is not None and Path(v.path).absolute() == here), None
    )


def vector_query(vector: ArrayLike, *, encoder: str | None = None, path: Path | None = None) -> Query:
    """Any embedding (D,): a mean of several frames, for example."""
    values = np.asarray(vector, dtype=np.float32)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"a query must be (D,) finite numbers, got {values.dtype} {values.shape}")
    return Query(vector=values, encoder=encoder, path=path)


def _checked_frame(video: str, frame: int, count: int) -> int:
    if not 0 <= frame < count:
        raise DataError(f"{video} has no frame {frame}: it has {count} frames (0 to {count - 1})")
    return frame


def _frame_at(video: str, seconds: float | None, times: Seconds) -> int:
    """The frame nearest to `seconds`; a moment one frame beyond the last is still the last."""
    assert seconds is not None
    last = float(times[-1])
    step = (last - float(times[0])) / max(1, len(times) - 1)
    if not times[0] - step <= seconds <= last + step:
        raise DataError(
            f"{video} has no frame at {seconds:g} s: its frames are at {times[0]:.2f} to {last:.2f} s"
        )
    return int(np.abs(times - seconds).argmin())
