"""Compile functions that loop over numbers (numba, extra `fast`), and kernels for the GPU (Triton)."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cycleback.errors import warn_slow_path


def load_kernels(module: str, try_out: Callable[[Any], object], *, purpose: str) -> Any:
    """Return a module of Triton kernels, or None where Triton is not installed or cannot compile them.

    Args:
        module: its dotted name.
        try_out: runs each kernel once on tiny tensors, because Triton compiles at the first call.
        purpose: what is slower without them, for the warning, such as "the Triton kernels for max-pooling".
    """
    if find_spec("triton") is None:
        return None
    try:
        kernels = import_module(module)
        try_out(kernels)
    except Exception as error:  # a missing C compiler, driver or header each raises its own type
        warn_slow_path(purpose, str(error))
        return None
    return kernels


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
