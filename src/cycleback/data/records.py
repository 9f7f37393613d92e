"""A data set: its videos with their labels, and how people write the names of videos."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from cycleback.errors import DataError, did_you_mean
from cycleback.video import VIDEO_SUFFIXES

SEQUENCE_SUFFIX = ".npz"
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png"})

Kind = Literal["video", "frames", "sequence"]
Unit = Literal["frame", "seconds"]


@dataclass(frozen=True)
class VideoRecord:
    """One video of a data set, not decoded yet."""

    name: str  # unique; the path below the data set's folder, without suffix, with forward slashes
    path: Path  # the file, or the folder of images
    # "video" (a file), "frames" (a folder of numbered images) or "sequence" (an .npz of features)
    kind: Kind = "video"
    # the action shown; only videos of the same action are aligned. "" when there is only one.
    action: str = ""
    # time of each key event, in `unit`, sorted by time. `event_frames` converts to frame indices.
    events: Mapping[str, float] = field(default_factory=dict)
    unit: Unit = "frame"  # "frame" (0-based index) or "seconds" (presentation time; the first frame is at 0)
    split: str | None = None  # "train", "val", another name, or None for a video in no split
    # the person acting, or "" if unknown. Nobody should be in both training and test videos.
    person: str = ""


@dataclass(frozen=True)
class Label:
    """One row of a labels file: `event` happens in `video` at `value`, in frames or seconds."""

    video: str
    event: str
    value: float
    unit: Unit = "frame"
    source: str = ""  # file and line, for messages


@dataclass(frozen=True)
class Dataset:
    """The videos of one folder, in natural order of their names."""

    root: Path  # the folder
    records: tuple[VideoRecord, ...]  # the videos
    event_names: tuple[str, ...] = ()  # all key events, in the order in which they happen
    # every row of the labels files. Rows that match a video carry its name; others stay as written.
    labels: tuple[Label, ...] = ()
    # video → split, from a file or sub-folders; empty when the split is drawn at random
    given_split: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[VideoRecord]:
        return iter(self.records)

    def __getitem__(self, name: str) -> VideoRecord:
        for record in self.records:
            if record.name == name:
                return record
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the videos."""
        return tuple(record.name for record in self.records)

    @property
    def actions(self) -> tuple[str, ...]:
        """All actions, sorted."""
        return tuple(sorted({record.action for record in self.records}))

    @property
    def persons(self) -> dict[str, str]:
        """Video → person acting, where known."""
        return {record.name: record.person for record in self.records if record.person}

    def split(self, name: str) -> "Dataset":
        """Return the videos of one split; an empty split is a `DataError` that lists the others."""
        chosen = [record.name for record in self.records if record.split == name]
        if not chosen:
            known = sorted({record.split for record in self.records if record.split is not None})
            raise DataError(
                f"{self.root}: no video in split {name!r} (splits: {', '.join(known) or 'none'}; "
                f"{len(self)} videos). Add videos, or assign them in splits.csv (video,split)."
            )
        return self.subset(chosen)

    def subset(self, names: Iterable[str]) -> "Dataset":
        """Keep only the videos in `names`, in the order of the data set."""
        wanted = set(names)
        if missing := sorted(wanted.difference(self.names)):
            raise KeyError(f"no video {missing[0]!r} in {self.root}")
        return replace(self, records=tuple(record for record in self.records if record.name in wanted))


def check_name(name: Path | str) -> None:
    """Refuse a name that tables, pages and terminals cannot show: with control characters, or not UTF-8."""
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in str(name)):
        raise DataError(
            f"the name {str(name)!r} holds a line break, another control character or bytes that are not "
            "UTF-8. Rename it."
        )


class NameIndex:
    """Find the video that is meant by a name written in a labels or splits file."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._by_tail: dict[str, str | None] = {}  # None: several videos match
        for name in self.names:
            parts = name.split("/")
            for start in range(1, len(parts)):
                tail = "/".join(parts[start:])
                self._by_tail[tail] = None if tail in self._by_tail else name
        self._by_tail.update({name: name for name in self.names})

    def match(self, written: str) -> str | None:
        """Return the video that `written` means, or None.

        The suffix, a leading `./` and backslashes are ignored. Leading folders may be left out (`b` or `a/b`
        for `train/a/b`) if only one video matches.
        """
        asked = written.strip().replace("\\", "/").removeprefix("./")
        return self._by_tail.get(asked) or self._by_tail.get(remove_suffix(asked))

    def suggest(self, written: str, *, otherwise: str) -> str:
        """Return "Did you mean 'X'?" if a name is similar, else `otherwise`."""
        return did_you_mean(remove_suffix(written), self.names, otherwise=otherwise)


def remove_suffix(name: str) -> str:
    """Remove the suffix of a video or sequence; other dots belong to the name and stay."""
    suffix = Path(name).suffix
    is_known = suffix.lower() in VIDEO_SUFFIXES or suffix.lower() == SEQUENCE_SUFFIX
    return name[: -len(suffix)] if is_known else name


def natural_key(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Return a sort key that puts `clip2` before `clip10`; the text decides between `1` and `01`."""
    parts = [part for part in re.split(r"([0-9]+)", name) if part]
    numbers = [int(part) if part[0] in "0123456789" else None for part in parts]
    return tuple((number is None, number or 0, part) for number, part in zip(numbers, parts, strict=True))
