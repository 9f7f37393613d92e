"""How a training ends early: Ctrl-C as a request to stop, and failures explained in one sentence."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors import SafetensorError

from cycleback.errors import CheckpointError, TrainingError, UserError, is_out_of_memory

INTACT = "the last saved state is intact"
SAME_PRESS_S = 1.0  # a launcher forwards the signal that the terminal has sent already


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Take Ctrl-C, or a cluster's SIGTERM, as a request to stop after the current update.

    Yields a function that says whether a stop was requested. A second Ctrl-C, at least a second after the
    first, has its usual effect at once. Other threads than the main one leave signals alone.
    """
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested.is_set
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    first = 0.0

    def request(number: int, frame: object) -> None:
        nonlocal first
        if not requested.is_set():
            first = time.monotonic()
            requested.set()
        elif time.monotonic() - first > SAME_PRESS_S:
            signal.signal(number, before[signal.Signals(number)])
            signal.raise_signal(number)

    for number in before:
        signal.signal(number, request)
    try:
        yield requested.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def explain_failures(step: int, device: torch.device) -> Iterator[None]:
    """Explain failures of update `step` (0-based): memory, files, determinism, other processes."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            raise TrainingError(
                f"out of memory on {device} at update {step + 1}. Lower optimizer.batch_size, "
                f"data.frames_per_video or data.frame_size; {INTACT}."
            ) from error
        if "deterministic implementation" in str(error) or "CuBLAS" in str(error):
            reason = str(error).split(". ")[0]
            raise TrainingError(
                f"update {step + 1} cannot be made deterministic: {reason}. Set run.deterministic=false."
            ) from error
        if isinstance(error, dist.DistError) or "Connection closed by peer" in str(error):
            raise TrainingError(f"another process stopped at update {step + 1}; {INTACT}.") from error
        raise
    except OSError as error:
        path = error.filename or "a video"
        raise TrainingError(
            f"cannot read {path} at update {step + 1}: {error.strerror or error}. "
            f"Restore it and resume with --resume; {INTACT}."
        ) from error


@contextmanager
def explain_save_failures(folder: Path) -> Iterator[None]:
    """Explain a full disk, or a folder that vanished, while a file is written into `folder`."""
    try:
        yield
    except OSError as error:
        raise _cannot_save(folder, error.strerror or str(error)) from error
    except UserError as error:
        if isinstance(error.__cause__, OSError):
            raise _cannot_save(folder, error.__cause__.strerror or str(error)) from error
        raise
    except SafetensorError as error:
        raise _cannot_save(folder, str(error)) from error
    except RuntimeError as error:
        if "PytorchStreamWriter" not in str(error) and "unexpected pos" not in str(error):
            raise
        raise _cannot_save(folder, "the disk may be full") from error


def _cannot_save(folder: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"cannot save the run in {folder}: {reason}. Free some space and resume with --resume; {INTACT}."
    )
