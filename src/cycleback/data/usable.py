"""Leave out the videos of a folder that cannot be used, with a line for each, instead of stopping.

Only videos that a folder brings along are left out. A video that is named by itself is an error.
"""

import warnings
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from cycleback.data.cache import FrameCache
from cycleback.data.check import MIN_FRAMES
from cycleback.data.records import VideoRecord
from cycleback.data.sources import iter_images, load_sequence
from cycleback.errors import DataError, UserError, VideoError
from cycleback.video import iter_frames

MAX_LEFT_OUT = 0.5  # of the videos of a folder: with more, the folder is not what it should be
PROBED = (16, 16)  # frames are decoded only to see that they can be


def keep_usable(
    records: Sequence[VideoRecord],
    *,
    min_frames: int = 1,
    min_videos: int = 1,
    cache: FrameCache | None = None,
) -> list[VideoRecord]:
    """Return the videos of a folder that can be read and are long enough; warn about each of the others.

    Of a video file the first frames are decoded: damage further on shortens it, with a warning of its own.
    More than half unusable videos, or fewer than `min_videos` that remain, are a `DataError`.

    Args:
        min_frames: shorter videos are left out, too.
        cache: videos that are in it are known to be readable, and are not opened.
    """
    failures: dict[str, UserError] = {}
    for record in records:
        try:
            _check_usable(record, min_frames, cache)
        except (DataError, VideoError) as error:
            failures[record.name] = error
    failed = [record for record in records if record.name in failures]
    if not failed:
        return list(records)
    first = failed[0].name
    if len(records) == 1:
        raise failures[first]
    if len(failed) > MAX_LEFT_OUT * len(records) or len(records) - len(failed) < min_videos:
        raise DataError(f"{len(failed)} of {len(records)} videos cannot be used. {first}: {failures[first]}")
    for record in failed:
        warnings.warn(f"left out {record.name}: {failures[record.name]}", UserWarning, stacklevel=2)
    return [record for record in records if record.name not in failures]


def keep_trainable(records: Sequence[VideoRecord], *, cache: FrameCache | None = None) -> list[VideoRecord]:
    """Return the videos of a folder that can be trained on; `check_dataset` calls the others errors, too."""
    return keep_usable(records, min_frames=MIN_FRAMES, min_videos=2, cache=cache)


def can_be_read(path: Path) -> bool:
    """Tell whether a video of a folder has a first frame, and warn if it has none."""
    try:
        _check_usable(VideoRecord(path.stem, path), 1, None)
    except VideoError as error:
        warnings.warn(f"left out {path.stem}: {error}", UserWarning, stacklevel=2)
        return False
    return True


def _check_usable(record: VideoRecord, min_frames: int, cache: FrameCache | None) -> None:
    """Raise the error of a video that cannot be read or has fewer frames."""
    if record.kind == "sequence":
        count = len(load_sequence(record).features)
    elif cache is not None and (entry := cache.find(record)) is not None:
        count = entry.num_frames
    elif record.kind == "frames":
        count = sum(len(chunk.frames) for chunk in iter_images(record.path, size=PROBED))
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damage: it is told when the video is decoded
            chunks = iter_frames(record.path, size=PROBED, chunk_frames=1)
            count = sum(len(chunk.frames) for chunk in islice(chunks, min_frames))
    if count < min_frames:
        plural = "s" * (count != 1)
        raise DataError(f"it has {count} frame{plural}; a training video needs at least {min_frames}")
