"""What goes wrong while training, in one sentence that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors import SafetensorError

from cycleback.errors import CheckpointError, TrainingError

WHOLE = "the last saved state is whole"
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


@contextmanager
def explained(step: int, device: torch.device) -> Iterator[None]:
    """Out of memory, a file that vanished, or an operation that is refused, at update `step` (0-based)."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if _is_out_of_memory(error):
            raise TrainingError(
                f"out of memory on {device} at update {step + 1}. Lower optimizer.batch_size, "
                f"data.frames_per_video or data.frame_size; {WHOLE}."
            ) from error
        if "deterministic implementation" in str(error) or "CuBLAS" in str(error):
            reason = str(error).split(". ")[0]
            raise TrainingError(
                f"update {step + 1} cannot be made deterministic: {reason}. Set run.deterministic=false."
            ) from error
        if isinstance(error, dist.DistError) or "Connection closed by peer" in str(error):
            raise TrainingError(f"another process stopped at update {step + 1}; {WHOLE}.") from error
        raise
    except OSError as error:
        what = error.filename or "a video"
        raise TrainingError(
            f"cannot read {what} at update {step + 1}: {error.strerror or error}. "
            f"Put it back and go on with --resume; {WHOLE}."
        ) from error


@contextmanager
def saving(folder: Path) -> Iterator[None]:
    """A full disk, or a folder that vanished, while something is written into `folder`."""
    try:
        yield
    except OSError as error:
        raise _cannot_save(folder, error.strerror or str(error)) from error
    except SafetensorError as error:
        raise _cannot_save(folder, str(error)) from error
    except RuntimeError as error:
        if "PytorchStreamWriter" not in str(error) and "unexpected pos" not in str(error):
            raise
        raise _cannot_save(folder, "the disk may be full") from error


def _cannot_save(folder: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"cannot save the run in {folder}: {reason}. Make room and go on with --resume; {WHOLE}."
    )


def _is_out_of_memory(error: BaseException) -> bool:
    is_named = isinstance(error, MemoryError | torch.cuda.OutOfMemoryError)
    return is_named or any(words in str(error) for words in OUT_OF_MEMORY)
