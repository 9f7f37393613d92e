"""Convert published data sets, by name, to data set folders."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cycleback.errors import ConfigError, DataError, did_you_mean
from cycleback.prepare.golfdb import prepare_golfdb
from cycleback.prepare.penn_action import prepare_penn_action, prepare_penn_poses
from cycleback.prepare.pouring import prepare_pouring
from cycleback.prepare.writer import new_dataset
from cycleback.progress import Counter, ignore

# Each takes (source, writer, *, progress, own options), adds its videos to the writer, calls
# progress(done, total), and returns the files and videos that are missing.
PREPARERS: dict[str, Callable[..., list[str]]] = {
    "pouring": prepare_pouring,
    "penn-action": prepare_penn_action,
    "golfdb": prepare_golfdb,
    "penn-poses": prepare_penn_poses,
}


@dataclass(frozen=True)
class PrepareReport:
    """The result of `prepare`."""

    name: str  # the data set, such as "pouring"
    directory: Path  # the folder written, for `cycleback.data.read_dataset`
    videos: Mapping[str, Mapping[str, int]]  # action → split → number; the action is "" if there is only one
    labelled: int  # videos with at least one key event
    missing: tuple[str, ...] = ()  # videos of the paper, or files that the source lists, that do not exist
    warnings: tuple[str, ...] = ()  # one line per kind of warning

    @property
    def total(self) -> int:
        """Number of videos."""
        return sum(count for splits in self.videos.values() for count in splits.values())


def prepare(
    name: str,
    source: Path | str,
    destination: Path | str,
    *,
    overwrite: bool = False,
    progress: Counter = ignore,
    options: Mapping[str, object] | None = None,
) -> PrepareReport:
    """Convert a data set, as distributed, to a folder that `cycleback.data.read_dataset` reads.

    The folder holds the videos (files, folders of images or .npz sequences; one sub-folder per action if
    there are several), splits.csv, and labels.csv if there are labels. It appears when it is complete.

    Args:
        name: one of `PREPARERS`.
        source: where the data set was unpacked or downloaded to.
        destination: folder to write; it may exist if it is empty.
        overwrite: replace a folder that was prepared before.
        options: keywords of that data set's function, such as {"labels": "penn_labels", "link": False}.
    """
    source, destination = Path(source), Path(destination)
    if name not in PREPARERS:
        raise DataError(f"no data set is called {name!r}. {did_you_mean(name, PREPARERS)}")
    options = dict(options or {})
    for option in options:
        if option not in option_names(name):
            raise ConfigError(f"{name} has no option {option!r}. {did_you_mean(option, option_names(name))}")
    if not source.exists():
        raise DataError(f"no {name} at {source}: it does not exist.")
    if source.is_file() and name != "penn-poses":
        raise DataError(f"{source} is a file. Pass the folder that contains {name}.")
    with new_dataset(destination, source=source, overwrite=overwrite) as writer:
        missing = PREPARERS[name](source, writer, progress=progress, **options)
        if not writer.videos:
            reasons = "; ".join(writer.warnings or missing)
            raise DataError(f"no video of {name} in {source} could be used: {reasons}.")
    return PrepareReport(
        name=name,
        directory=destination,
        videos=writer.videos,
        labelled=writer.labelled,
        missing=tuple(missing),
        warnings=writer.warnings,
    )


def option_names(name: str) -> tuple[str, ...]:
    """List the options of a data set."""
    keywords = inspect.getfullargspec(PREPARERS[name]).kwonlyargs
    return tuple(keyword for keyword in keywords if keyword != "progress")
