"""What to search for: a frame of a video, an image or a vector.

Shapes: D embedding size.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from cycleback.data.records import NameIndex
from cycleback.errors import DataError
from cycleback.models import Encoder, fingerprint
from cycleback.search.corpus import Corpus, Floats, Seconds

SECONDS = re.compile(r"(.+)@([-+]?[0-9]*\.?[0-9]+)s?")
FRAME = re.compile(r"(.+)#(-?[0-9]+)")


@dataclass(frozen=True, eq=False)
class Query:
    """An embedding to search for, and where it comes from."""

    vector: Floats  # (D,) finite
    encoder: str | None = None  # fingerprint of the encoder that made it, if known
    video: str | None = None  # the video of the corpus that it is a frame of, if any
    frame: int | None = None  # number of the frame in its video
    seconds: float | None = None  # time of the frame in its video
    path: Path | None = None  # the video or image file, to show it
    note: str = ""  # what the user should know about it


def parse_moment(text: str) -> tuple[str, int | None, float | None]:
    """Split `swing.mp4#75` or `swing.mp4@2.5` into a name and a frame or seconds; other text is a name."""
    if match := SECONDS.fullmatch(text):
        return match[1], None, float(match[2])
    if match := FRAME.fullmatch(text):
        return match[1], int(match[2]), None
    return text, None, None


def find_video(corpus: Corpus, written: str) -> str | None:
    """Find the video of the corpus that a user means, by its name or its file; None if there is none."""
    if written in corpus.names:
        return written
    path = Path(written)
    if not path.exists():
        return NameIndex(corpus.names).match(written)
    here = path.absolute()
    return next(
        (v.name for v in corpus.videos if v.path is not None and Path(v.path).absolute() == here), None
    )


def make_frame_query(
    corpus: Corpus, video: str, *, frame: int | None = None, seconds: float | None = None
) -> Query:
    """Make a query of a frame of the corpus, by its number or by the time nearest to it."""
    number = corpus.number(video)
    times = corpus.times(number)
    if frame is not None and seconds is None:
        if not 0 <= frame < len(times):
            last = len(times) - 1
            raise DataError(f"{video} has no frame {frame}: it has {len(times)} frames (0 to {last})")
    elif seconds is not None and frame is None:
        frame = _nearest_frame(video, seconds, times)
    else:
        raise ValueError(f"give either frame or seconds, got {frame!r} and {seconds!r}")
    path = corpus.videos[number].path
    return Query(
        vector=np.array(corpus.embeddings(number)[frame], dtype=np.float32),
        encoder=corpus.encoder,
        video=video,
        frame=frame,
        seconds=float(times[frame]),
        path=None if path is None else Path(path),
    )


def _nearest_frame(video: str, seconds: float, times: Seconds) -> int:
    """Find the frame nearest to `seconds`; one frame beyond either end is still accepted."""
    first, last = float(times[0]), float(times[-1])
    step = (last - first) / max(1, len(times) - 1)
    if not first - step <= seconds <= last + step:
        raise DataError(
            f"{video} has no frame at {seconds:g} s: its frames are at {first:.2f} to {last:.2f} s"
        )
    return int(np.abs(times - seconds).argmin())


def make_vector_query(vector: ArrayLike, *, encoder: str | None = None, path: Path | None = None) -> Query:
    """Make a query of any embedding (D,), such as the mean of several frames."""
    values = np.asarray(vector, dtype=np.float32)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"a query must be (D,) finite numbers, got {values.dtype} {values.shape}")
    return Query(vector=values, encoder=encoder, path=path)


def make_image_query(encoder: Encoder, path: Path | str) -> Query:
    """Make a query of an image file, embedded like a video in which nothing moves.

    If the encoder uses earlier frames as context, the image is used for all of them.
    """
    import torch

    from cycleback.data.sources import read_image
    from cycleback.embeddings.embed import embed_maps

    path = Path(path)
    if encoder.input_kind != "images":
        raise DataError(f"cannot search for {path}: this encoder takes sequences (.npz), not images")
    if encoder.needs_whole_videos:
        raise DataError(
            f"cannot search for the image {path} with this encoder: it describes a frame by how it differs "
            "from the rest of its video. Search for a frame of a video (VIDEO@SECONDS), or use a run trained "
            "with --recipe appearance."
        )
    pixels = read_image(path, size=encoder.frame_size, fit=encoder.fit)
    with torch.inference_mode():
        images = torch.from_numpy(pixels.copy())[None].movedim(-1, 1).to(encoder.device)
        maps = encoder.eval().features(images)
        embeddings = embed_maps(encoder.embedder, iter([maps]), device=encoder.device)
    note = "an image has no past: it is used for all context frames" if encoder.context_frames > 1 else ""
    return replace(make_vector_query(embeddings[0], encoder=fingerprint(encoder), path=path), note=note)
