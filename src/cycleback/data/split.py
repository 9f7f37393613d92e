"""Which videos are held out: given by a file, or drawn by a seed so that adding videos moves no other."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from cycleback.data.records import VideoRecord
from cycleback.errors import DataError
from cycleback.tables import read_table

SPLITS_FILE = "splits.csv"
SPLIT_FOLDERS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


def read_splits(path: Path | str) -> dict[str, str]:
    """A splits file (`video,split`) as video → split, as written; `valid` and `validation` mean `val`."""
    splits: dict[str, str] = {}
    for line, row in read_table(Path(path), ("video", "split")):
        split = SPLIT_FOLDERS.get(row["split"].lower(), row["split"])
        if not split or not row["video"]:
            raise DataError(f"{path}, line {line}: the video and the split must not be empty, got {row}.")
        if splits.setdefault(row["video"], split) != split:
            raise DataError(
                f"{path}, line {line}: {row['video']} is in {splits[row['video']]!r} and in {split!r}."
            )
    return splits


def unit_hash(name: str, seed: int) -> float:
    """A number in [0, 1) that depends on the name and the seed alone, on every machine."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def split_dataset(
    records: Iterable[VideoRecord], held_out: float = 0.2, seed: int = 0
) -> tuple[VideoRecord, ...]:
    """The records with `split` set to "train" or "val", drawn for each action by itself.

    A video is held out when the hash of its person (or, where that is not known, its name) and the seed falls
    below `held_out`: adding videos moves no other video, a person is on one side only, and the share held out
    is `held_out` on average, not exactly. Small actions are then repaired: train keeps at least two videos
    (one cannot be aligned), and, unless `held_out` is 0, val gets at least one video of an action with three
    or more and two of an action with six or more. Only those repairs depend on the other videos.
    """
    if not 0 <= held_out < 1:
        raise ValueError(f"held_out must be in [0, 1), got {held_out!r}")
    records = tuple(records)
    held: set[str] = set()
    for action in {record.action for record in records}:
        held |= _held_out([record for record in records if record.action == action], held_out, seed)
    return tuple(replace(record, split="val" if record.name in held else "train") for record in records)


def _held_out(records: Sequence[VideoRecord], share: float, seed: int) -> set[str]:
    """Names held out of one action, a person at a time."""
    groups: dict[str, list[str]] = {}
    for record in records:
        groups.setdefault(record.person or record.name, []).append(record.name)
    fewest = 0 if share == 0 or len(records) < 3 else 1 if len(records) < 6 else 2
    held: set[str] = set()
    for group in sorted(groups, key=lambda group: unit_hash(group, seed)):
        is_wanted = unit_hash(group, seed) < share or len(held) < fewest
        if is_wanted and len(held) + len(groups[group]) <= len(records) - 2:
            held |= set(groups[group])
    return held
