"""The resumable state of a run: one file, written whole or not at all.

What a later run needs besides the weights is only the optimizer's moments and the step: everything random in
a step is a function of (seed, step).
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from cycleback.errors import CheckpointError

STATE_FILE = "state.pt"


@dataclass(frozen=True)
class TrainState:
    """How far a run has come."""

    step: int
    seconds: float


def save_state(
    folder: Path, state: TrainState, *, encoder: nn.Module, loss: nn.Module, optimizer: torch.optim.Optimizer
) -> None:
    """Write `state.pt` so that a kill at any moment leaves the old file or the new one."""
    content = {
        "step": state.step,
        "seconds": state.seconds,
        "encoder": encoder.state_dict(),
        "loss": loss.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    temporary = folder / f".{STATE_FILE}.{os.getpid()}"
    try:
        with temporary.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, folder / STATE_FILE)
    except OSError as error:
        message = (
            f"cannot save the run in {folder}: {error.strerror or error}. The last saved state is whole."
        )
        raise CheckpointError(message) from None
    finally:
        temporary.unlink(missing_ok=True)


def load_state(
    folder: Path,
    *,
    encoder: nn.Module,
    loss: nn.Module,
    optimizer: torch.optim.Optimizer,
    device: torch.device,
) -> TrainState:
    """Put the saved weights and moments back; the state of a run that never saved is step 0."""
    path = folder / STATE_FILE
    if not path.exists():
        return TrainState(step=0, seconds=0.0)
    content = _read(path, device)
    try:
        encoder.load_state_dict(content["encoder"])
        loss.load_state_dict(content["loss"])
        optimizer.load_state_dict(content["optimizer"])
        return TrainState(step=content["step"], seconds=content["seconds"])
    except (KeyError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise CheckpointError(
            f"{path} does not fit this recipe: {reason}. Train into another folder."
        ) from None


def _read(path: Path, device: torch.device) -> dict[str, Any]:
    try:
        content: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # torch raises half a dozen types for a damaged file
        reason = str(error).splitlines()[0]
        raise CheckpointError(
            f"{path} cannot be read: {reason}. Delete it to start this run again."
        ) from None
    return content
