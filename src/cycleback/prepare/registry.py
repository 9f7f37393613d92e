"""Convert published data sets, by name, to data set folders."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from cycleback.errors import ConfigError, DataError, did_you_mean
from cycleback.prepare.golfdb import prepare_golfdb
from cycleback.prepare.lerobot import prepare_lerobot
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
    "lerobot": prepare_lerobot,
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
    options = {option: _check_option(name, option, value) for option, value in (options or {}).items()}
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


def _check_option(name: str, option: str, value: Any) -> object:
    """Return the value of an option in the type that the function of the data set takes."""
    if option not in option_names(name):
        raise ConfigError(f"{name} has no option {option!r}. {did_you_mean(option, option_names(name))}")
    kind = get_type_hints(PREPARERS[name])[option]
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
    if kind is bool:
        fits, expected = isinstance(value, bool), "true or false"
    elif kind is float:
        fits, expected = is_number, "a number above 0"
    elif kind is int:
        fits, expected = is_number and value == int(value), "a whole number above 0"
    elif get_origin(kind) is tuple:
        value = tuple(value.split(",")) if isinstance(value, str) else value
        fits = isinstance(value, list | tuple) and all(isinstance(each, str) and each for each in value)
        fits, expected = fits and len(value) > 0, "names, separated by commas"
    else:
        fits, expected = isinstance(value, str | Path), "a text"
    if not fits:
        raise ConfigError(f"{name}: {option} must be {expected}, got {value!r}")
    return tuple(value) if isinstance(value, list) else value


def option_names(name: str) -> tuple[str, ...]:
    """List the options of a data set."""
    keywords = inspect.getfullargspec(PREPARERS[name]).kwonlyargs
    return tuple(keyword for keyword in keywords if keyword != "progress")
