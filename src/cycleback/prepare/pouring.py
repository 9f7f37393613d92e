"""Read Pouring as distributed: TFRecord shards of JPEG frames with one phase label per frame.

The files are pouring_train-0-of-2.tfrecord, pouring_train-1-of-2.tfrecord and pouring_val-0-of-1.tfrecord, of
`SequenceExample`s: context `name`, `len`, `label`; lists `video` (one JPEG per frame) and `frame_labels`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cycleback.errors import DataError
from cycleback.prepare.phases import POURING, compare_counts, find_events
from cycleback.prepare.tfrecord import (
    MalformedMessageError,
    SequenceExample,
    count_records,
    iter_records,
    parse_sequence_example,
)
from cycleback.prepare.writer import DatasetWriter
from cycleback.progress import Counter

SHARD = re.compile(r"pouring_(train|val|test)-(\d+)-of-(\d+)(\.tfrecord)?")
SUFFIXES = {b"\xff\xd8\xff": ".jpg", b"\x89PN": ".png"}  # by the first three bytes of an image


@dataclass(frozen=True)
class _Shard:
    path: Path
    split: str
    index: int
    count: int


def prepare_pouring(
    source: Path, writer: DatasetWriter, *, progress: Counter, check_data: bool = True
) -> list[str]:
    """Write each clip as a folder of its original JPEG images, and list missing files and clips.

    Frames are named by their index (000000.jpg) and play at the default 30 frames per second, the paper's
    rate for Pouring. The four key events are the frames at which the phase label rises.

    Args:
        source: the folder of the shards, or the one above its `pouring_tfrecords`.
        check_data: verify the checksums of the data.
    """
    shards = _find_shards(source)
    total, done = sum(count_records(shard.path) for shard in shards), 0
    for shard in shards:
        for number, data in enumerate(iter_records(shard.path, check_data=check_data)):
            try:
                _write_clip(parse_sequence_example(data), shard.split, writer)
            except MalformedMessageError as error:
                raise DataError(f"{shard.path}, record {number}: not a clip of Pouring: {error}.") from error
            done += 1
            progress(done, total)
    return _list_missing_shards(shards) + compare_counts(writer, {"": POURING}, [""])


def _find_shards(source: Path) -> list[_Shard]:
    folder = source / "pouring_tfrecords" if (source / "pouring_tfrecords").is_dir() else source
    shards = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = SHARD.fullmatch(path.name)
        if match and path.is_file():
            shards.append(_Shard(path, match[1], int(match[2]), int(match[3])))
    if not shards:
        raise DataError(
            f"no Pouring records in {folder}: expected files such as pouring_train-0-of-2.tfrecord and "
            "pouring_val-0-of-1.tfrecord."
        )
    return shards


def _list_missing_shards(shards: list[_Shard]) -> list[str]:
    here = {(shard.split, shard.index) for shard in shards}
    counts = {shard.split: shard.count for shard in shards}
    return [
        f"file pouring_{split}-{index}-of-{count}.tfrecord"
        for split, count in counts.items()
        for index in range(count)
        if (split, index) not in here
    ]


def _write_clip(example: SequenceExample, split: str, writer: DatasetWriter) -> None:
    """Write the images of one clip, and register it with its key events."""
    names = [name for name in example.context.get("name", []) if isinstance(name, bytes)]
    steps = example.feature_lists.get("frame_labels")
    labels = [label for step in steps or [] for label in step]
    images = [
        image for step in example.feature_lists.get("video", []) for image in step if isinstance(image, bytes)
    ]
    if len(names) != 1 or len(images) < 2 or not all(isinstance(label, int) for label in labels):
        fields = ", ".join(sorted({*example.context, *example.feature_lists})) or "nothing"
        raise MalformedMessageError(
            f"expected name, 2 or more JPEG strings in video, numbers in frame_labels, found {fields}"
        )
    name = _free_name(names[0].decode(errors="replace"), writer)
    phases = None if steps is None else np.array(labels, dtype=np.int64)
    events = find_events(name, phases, num_frames=len(images), events=POURING.events, writer=writer)
    folder = writer.add(name, split=split, events=events)
    folder.mkdir()
    for index, image in enumerate(images):
        suffix = SUFFIXES.get(image[:3])
        if suffix is None:
            raise DataError(f"frame {index} of {name} is neither JPEG nor PNG: it starts with {image[:8]!r}.")
        (folder / f"{index:06d}{suffix}").write_bytes(image)


def _free_name(written: str, writer: DatasetWriter) -> str:
    """Return `written` as a folder name that no other clip has, with a warning if it had to change."""
    clean = re.sub(r"[^\w.-]", "_", written).lstrip(".") or "clip"
    name, number = clean, 2
    while name in writer:
        name, number = f"{clean}-{number}", number + 1
    if name != written:
        writer.warn("clips renamed to a valid and unused folder name", f"{written!r} to {name!r}")
    return name
