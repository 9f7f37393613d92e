"""The data sets that can be brought into a data set folder, by name."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path

from cycleback.errors import ConfigError, DataError
from cycleback.prepare.golfdb import prepare_golfdb
from cycleback.prepare.penn_action import prepare_penn_action
from cycleback.prepare.penn_poses import prepare_penn_poses
from cycleback.prepare.pouring import prepare_pouring
from cycleback.prepare.report import PrepareReport
from cycleback.prepare.writer import new_dataset

# (source, writer, *, progress, options of its own) -> what is missing
PREPARERS: dict[str, Callable[..., list[str]]] = {
    "pouring": prepare_pouring,
    "penn-action": prepare_penn_action,
    "golfdb": prepare_golfdb,
    "penn-poses": prepare_penn_poses,
}


def prepare(
    name: str,
    source: Path | str,
    destination: Path | str,
    *,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
    options: Mapping[str, object] | None = None,
) -> PrepareReport:
    """Bring a data set, as it is distributed, into a folder that `cycleback.data.read_dataset` reads.

    The folder holds the videos (files, folders of images or .npz sequences; a sub-folder an action where
    there are several), splits.csv, and labels.csv where there are labels. It appears when it is whole.

    Args:
        name: One of `PREPARERS`.
        source: Where the data set was unpacked or downloaded to.
        destination: Folder to write; it may exist when it is empty.
        overwrite: Replace a data set folder that was prepared before.
        progress: Called with (done, total).
        options: Keywords of that data set's function, for example {"labels": "penn_labels", "link": False}.

    Raises:
        DataError: no such data set, or the source is not what is needed.
        ConfigError: an option does not fit.
        OutputExistsError: the destination holds something.
    """
    source, destination = Path(source), Path(destination)
    if name not in PREPARERS:
        raise DataError(f"no data set is called {name!r}. Known: {', '.join(PREPARERS)}.")
    options = dict(options or {})
    _check_options(name, options)
    if not source.exists():
        raise DataError(f"no {name} at {source}: it does not exist.")
    if source.is_file() and name != "penn-poses":
        raise DataError(f"{source} is a file. Give the folder that holds {name}.")
    with new_dataset(destination, source=source, overwrite=overwrite) as writer:
        missing = PREPARERS[name](source, writer, progress=progress or _silent, **options)
        if not writer.videos():
            reasons = "; ".join(writer.warnings.lines() or missing)
            raise DataError(f"nothing of {name} could be used in {source}: {reasons}.")
    return PrepareReport(
        name=name,
        directory=destination,
        videos=writer.videos(),
        labelled=writer.labelled,
        missing=tuple(missing),
        warnings=writer.warnings.lines(),
    )


def option_names(name: str) -> tuple[str, ...]:
    """The options of a data set."""
    parameters = inspect.signature(PREPARERS[name]).parameters.values()
    return tuple(
        parameter.name
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name != "progress"
    )


def _check_options(name: str, options: Mapping[str, object]) -> None:
    known = option_names(name)
    for option in options:
        if option not in known:
            raise ConfigError(f"{name} has no option {option!r}. Its options: {', '.join(known)}.")


def _silent(done: int, total: int) -> None:
    """No progress is shown."""
