"""Compile functions that loop over numbers, where numba (extra `fast`) is installed."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def compile_loops(*functions: Callable[..., Any], **options: Any) -> tuple[Callable[..., Any], ...] | None:
    """Return the functions, each compiled at its first call, or None without numba.

    The compiled code is kept on disk, and `options` are those of `numba.njit`. Compiled functions release the
    interpreter lock, so that plain threads can work at the same time. Numba's own threads would end the
    process when it forks, or when two threads call them.
    """
    try:
        njit: Any = import_module("numba").njit
    except ImportError:
        return None
    try:
        keep = njit(cache=True, nogil=True, **options)
        return tuple(keep(function) for function in functions)
    except RuntimeError:  # no writable folder for the compiled code: compile again in each process
        discard = njit(nogil=True, **options)
        return tuple(discard(function) for function in functions)
