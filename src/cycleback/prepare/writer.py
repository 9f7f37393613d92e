"""Write a data set folder: videos, labels.csv, splits.csv and people.csv."""

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from cycleback.data.folder import PEOPLE_FILE, SPLITS_FILE
from cycleback.data.labels import LABELS_FILE, write_labels
from cycleback.errors import DataError
from cycleback.files import atomic_folder, check_folder, write_json
from cycleback.reading import read_json
from cycleback.tables import write_table

MARKER = "prepared.json"  # lists what a prepared folder holds, so that only such a folder is replaced


class DatasetWriter:
    """Collects videos one by one, and warnings about them, then writes the tables that describe them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._splits: dict[str, str] = {}
        self._events: dict[str, Mapping[str, int]] = {}
        self._people: dict[str, str] = {}
        self._warnings: dict[str, list[str]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._splits

    @property
    def labelled(self) -> int:
        """Number of videos with at least one key event."""
        return sum(bool(events) for events in self._events.values())

    @property
    def videos(self) -> dict[str, dict[str, int]]:
        """Number of videos, action → split → number."""
        counts: dict[str, Counter[str]] = {}
        for name, split in self._splits.items():
            counts.setdefault(name.rpartition("/")[0], Counter())[split] += 1
        return {action: dict(sorted(splits.items())) for action, splits in sorted(counts.items())}

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line per kind of warning: the kind, the number of cases and the first case."""
        return tuple(
            f"{kind}: {len(cases)} ({'first: ' if len(cases) > 1 else ''}{cases[0]})"
            for kind, cases in self._warnings.items()
        )

    def warn(self, kind: str, case: str) -> None:
        """Note one `case` of a `kind` of problem, such as "videos without labels" and "squat/0123"."""
        self._warnings.setdefault(kind, []).append(case)

    def add(self, name: str, *, split: str, events: Mapping[str, int], person: str = "") -> Path:
        """Register a video, and return its path without suffix in a folder that exists.

        `name` is "clip" or "action/clip"; `events` maps each key event to its 0-based frame.
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

    def write_tables(self) -> None:
        """Write splits.csv, labels.csv if there are labels, and people.csv if people are known."""
        self._write(SPLITS_FILE, "split", self._splits)
        if self.labelled:
            write_labels(self.folder / LABELS_FILE, self._events)
        if self._people:
            self._write(PEOPLE_FILE, "person", self._people)

    def _write(self, file: str, column: str, values: Mapping[str, str]) -> None:
        rows = [{"video": video, column: value} for video, value in values.items()]
        write_table(self.folder / file, rows, columns=("video", column))


@contextmanager
def new_dataset(destination: Path, *, source: Path, overwrite: bool) -> Iterator[DatasetWriter]:
    """Yield a writer whose folder becomes `destination` when the block succeeds."""
    _check_destination(destination, source, overwrite)
    with atomic_folder(destination, overwrite=overwrite, flush=False) as draft:
        writer = DatasetWriter(draft)
        yield writer
        writer.write_tables()
        write_json(draft / MARKER, {"made_by": "cycleback data prepare", "files": _list_files(draft, writer)})


def _list_files(folder: Path, writer: DatasetWriter) -> list[str]:
    """List the names in a folder and in its folders of actions; a folder of frames is one name."""
    names = sorted(os.listdir(folder))
    actions = [name for name in names if (folder / name).is_dir() and name not in writer]
    return names + [f"{action}/{name}" for action in actions for name in sorted(os.listdir(folder / action))]


def _check_destination(destination: Path, source: Path, overwrite: bool) -> None:
    """Refuse to overwrite the source, or anything that is not a prepared data set."""
    if source.resolve().is_relative_to(destination.resolve()):
        raise DataError(f"{destination} contains the source {source}. Choose another output folder.")
    try:
        listed = {file.text() for file in read_json(destination / MARKER).at("files").each()}
    except DataError:
        listed = set()

    def is_own(name: str) -> bool:
        inside = {file for file in listed if file.startswith(f"{name}/")}
        if inside and not {f"{name}/{child}" for child in os.listdir(destination / name)} <= inside:
            return False
        return name in listed or name == MARKER

    check_folder(destination, marker=MARKER, is_own=is_own, overwrite=overwrite)


def place_file(source: Path, target: Path, *, link: bool) -> None:
    """Put a file at `target` as a hard link, else a symbolic link, else a copy; without `link`, a copy."""
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
