"""What a data set is: a folder, the videos in it, and what is known about each."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from cycleback.errors import DataError

Kind = Literal["video", "frames", "sequence"]
Unit = Literal["frame", "seconds"]


@dataclass(frozen=True)
class VideoRecord:
    """One video of a data set; nothing of it has been decoded yet.

    Attributes:
        name: unique; the path below the data set's folder, without suffix, with forward slashes.
        path: the file, or the folder of images.
        kind: "video" (a file), "frames" (a folder of numbered images) or "sequence" (an .npz of features).
        action: what the video shows; only videos of one action are ever aligned. "" when there is one action.
        events: key event → when it happens, in `unit`, in order of time. `event_frames` gives frame indices.
        unit: "frame" (0-based index) or "seconds" (presentation time, the first frame at 0).
        split: "train", "val", another name, or None for a video that belongs to no split.
        person: who acts, "" where that is not known; who is trained on should not be measured on.
    """

    name: str
    path: Path
    kind: Kind = "video"
    action: str = ""
    events: Mapping[str, float] = field(default_factory=dict)
    unit: Unit = "frame"
    split: str | None = None
    person: str = ""


@dataclass(frozen=True)
class Label:
    """One row of a labels file: `event` happens in `video` at `value`, which is a frame or a second."""

    video: str
    event: str
    value: float
    unit: Unit = "frame"
    source: str = ""  # file and line, for messages


@dataclass(frozen=True)
class Dataset:
    """Videos of one folder, in natural order of their names.

    Attributes:
        root: the folder.
        records: the videos.
        event_names: all key events, in the order in which they happen.
        labels: every row of the labels files, also those that fit no video; the others carry its name.
        given_split: video → split as given by a file or by sub-folders; empty when the split is seeded.
    """

    root: Path
    records: tuple[VideoRecord, ...]
    event_names: tuple[str, ...] = ()
    labels: tuple[Label, ...] = ()
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
        """Actions that occur, sorted."""
        return tuple(sorted({record.action for record in self.records}))

    @property
    def persons(self) -> dict[str, str]:
        """Video → who acts in it, where that is known."""
        return {record.name: record.person for record in self.records if record.person}

    def split(self, name: str) -> "Dataset":
        """The videos of one split; a `DataError` that names the splits there are when it is empty."""
        chosen = [record.name for record in self.records if record.split == name]
        if not chosen:
            known = sorted({record.split for record in self.records if record.split is not None})
            raise DataError(
                f"{self.root}: no video in split {name!r} (splits: {', '.join(known) or 'none'}; "
                f"{len(self)} videos). Add videos, or say which with splits.csv (video,split)."
            )
        return self.subset(chosen)

    def subset(self, names: Iterable[str]) -> "Dataset":
        """The same data set with only the videos in `names`; their order stays that of the data set."""
        wanted = set(names)
        missing = sorted(wanted.difference(self.names))
        if missing:
            raise KeyError(f"no video {missing[0]!r} in {self.root}")
        records = tuple(record for record in self.records if record.name in wanted)
        return replace(self, records=records)
