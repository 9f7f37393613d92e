"""Errors a user can fix. Each message says what is wrong, what was expected and what to do.

UserError
├── VideoError              a file cannot be read, or written, as video or sound
├── DataError               a folder, labels file, split or sequence is not what is needed
├── ConfigError             a recipe or an override does not fit
├── CheckpointError         a run folder or its weights cannot be used
├── EmbeddingError          an embedding set is damaged, or made by another encoder
├── OutputExistsError       the result would overwrite something
├── MissingDependencyError  an optional package is not installed
└── TrainingError           training had to stop

The command line prints a UserError as one line and exits with code 2. Mistakes of a Python caller stay
ValueError and TypeError, with a traceback.
"""

import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from types import ModuleType

OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


class UserError(Exception):
    """Something the user can fix; the message is one line that helps."""


class VideoError(UserError):
    """A file cannot be read, or written, as video or sound."""


class DataError(UserError):
    """A folder, labels file, split or sequence is not what is needed."""


class ConfigError(UserError):
    """A recipe or an override does not fit."""


class CheckpointError(UserError):
    """A run folder or its weights cannot be used."""


class EmbeddingError(UserError):
    """An embedding set is damaged, or was made by another encoder."""


class OutputExistsError(UserError):
    """The result would overwrite something."""


class MissingDependencyError(UserError):
    """An optional package is not installed."""


class TrainingError(UserError):
    """Training had to stop."""


class DamagedVideoWarning(UserWarning):
    """Part of a video could not be decoded; the message says which part was kept."""


class SlowPathWarning(RuntimeWarning):
    """A compiled kernel could not be built; the message names it and says why."""


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error of Python, torch or a GPU says that the memory does not suffice."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)
    )


def one_of(choices: Iterable[str]) -> str:
    """Join choices for a message: `a, b or c`."""
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def did_you_mean(name: str, known: Iterable[str], *, prefix: str = "", otherwise: str | None = None) -> str:
    """A sentence for a name that does not exist: the closest known name, or all of them.

    Args:
        prefix: printed before each known name, such as the section of a key.
        otherwise: the sentence when no name is close; by default the list of known names.
    """
    names = list(known)
    if close := get_close_matches(name, names, n=1):
        return f"Did you mean {prefix + close[0]!r}?"
    if otherwise is not None:
        return otherwise
    return f"Known: {', '.join(prefix + item for item in names)}." if names else "There are none."


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional module, or say in one line how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        message = f"{purpose} needs {package}: pip install 'cycleback[{extra}]'"
        raise MissingDependencyError(message) from error


@cache
def warn_slow_path(kernel: str, reason: str) -> None:
    """Warn once per process that a kernel could not be built and that a slower path is used.

    Do not call it where an optional package is simply not installed: that is no failure.

    Args:
        kernel: what failed, in words, such as "the Triton kernel for max-pooling".
        reason: the text of the error; its first line is shown.
    """
    first_line = (reason.strip().splitlines() or ["no reason given"])[0]
    message = f"{kernel} is unavailable ({first_line}). The slower path is used; results are the same."
    warnings.warn(message, SlowPathWarning, stacklevel=3)
