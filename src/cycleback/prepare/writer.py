"""The data set folder that is being written: videos, labels.csv and splits.csv, whole or not at all."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from cycleback.data.folder import PEOPLE_FILE, SPLITS_FILE
from cycleback.data.labels import LABELS_FILE, write_labels
from cycleback.errors import DataError, OutputExistsError
from cycleback.prepare.findings import Findings
from cycleback.tables import write_csv


class DatasetWriter:
    """Takes videos one by one, and writes the tables that say what they are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warnings = Findings()
        self._splits: dict[str, str] = {}
        self._events: dict[str, Mapping[str, int]] = {}
        self._people: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._splits

    @property
    def labelled(self) -> int:
        """Number of videos with at least one key event."""
        return sum(bool(events) for events in self._events.values())

    def add(self, name: str, *, split: str, events: Mapping[str, int], person: str = "") -> Path:
        """Enter a video and return where it goes: a path without suffix, in a folder that exists.

        Args:
            name: "clip", or "action/clip".
            split: "train", "val" or another name.
            events: key event → frame, counted from 0; {} for a video without labels.
            person: who acts, where that is known.
        """
        parts = PurePosixPath(name).parts
        if name != "/".join(parts) or any(part.startswith(".") or "\\" in part for part in parts):
            raise DataError(f"{name!r} cannot be the name of a video: use letters, digits, '-' and '_'.")
        if name in self._splits:
            raise DataError(f"the source holds two videos named {name!r}. Remove or rename one.")
        self._splits[name], self._events[name] = split, dict(events)
        if person:
            self._people[name] = person
        target = self.folder.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def videos(self) -> dict[str, dict[str, int]]:
        """Number of videos, action → split → number."""
        counts: dict[str, Counter[str]] = {}
        for name, split in self._splits.items():
            counts.setdefault(name.rpartition("/")[0], Counter())[split] += 1
        return {action: dict(sorted(splits.items())) for action, splits in sorted(counts.items())}

    def write_tables(self) -> None:
        """Write splits.csv, labels.csv where a video has labels, and people.csv where people are known."""
        write_csv(self.folder / SPLITS_FILE, ("video", "split"), self._splits.items())
        if self.labelled:
            write_labels(self.folder / LABELS_FILE, self._events)
        if self._people:
            write_csv(self.folder / PEOPLE_FILE, ("video", "person"), self._people.items())


@contextmanager
def new_dataset(destination: Path, *, source: Path, overwrite: bool) -> Iterator[DatasetWriter]:
    """A writer whose folder becomes `destination` when all went well, and vanishes when not."""
    _check_destination(destination, source, overwrite)
    destination.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{destination.name}."
    partial = Path(tempfile.mkdtemp(prefix=prefix, suffix=".partial", dir=destination.parent))
    try:
        writer = DatasetWriter(partial)
        yield writer
        writer.write_tables()
        partial.chmod(0o755)  # mkdtemp makes it private
        _replace(partial, destination)
    except OSError as error:
        raise DataError(f"{destination} could not be written: {error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _check_destination(destination: Path, source: Path, overwrite: bool) -> None:
    if source.resolve().is_relative_to(destination.resolve()):
        raise DataError(f"{destination} holds the source {source}. Give another folder to write to.")
    if destination.exists() and not destination.is_dir():
        raise OutputExistsError(f"{destination} is a file. Give a folder that does not exist yet.")
    if not destination.exists() or not any(destination.iterdir()):
        return
    if not overwrite:
        raise OutputExistsError(f"{destination} is not empty. Choose another folder, or allow overwriting.")
    if not (destination / SPLITS_FILE).is_file():
        raise OutputExistsError(
            f"{destination} is not a prepared data set (it has no {SPLITS_FILE}), so it is not replaced. "
            "Remove it yourself, or choose another folder."
        )


def _replace(partial: Path, destination: Path) -> None:
    """Put `partial` in the place of `destination`; an old folder is moved aside first and removed last."""
    if not destination.exists():
        partial.rename(destination)
        return
    old = partial.with_suffix(".old")
    destination.rename(old)
    try:
        partial.rename(destination)
    except OSError:
        old.rename(destination)
        raise
    shutil.rmtree(old)


def place_file(source: Path, target: Path, *, link: bool) -> None:
    """Put a file at `target`: a hard link, else a symbolic link, else a copy; a copy without `link`."""
    origin = os.path.abspath(source)
    if link:
        for make in (os.link, os.symlink):
            try:
                make(origin, target)
            except FileNotFoundError:  # a symbolic link would dangle
                raise
            except OSError:  # another disk, another owner, a file system without links
                continue
            return
    shutil.copyfile(origin, target)
