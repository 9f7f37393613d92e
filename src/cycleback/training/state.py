"""The resumable state of a run: one file, written whole or not at all.

What a later run needs besides the weights is only the optimizer's moments and the step: everything random in
a step is a function of (seed, step).
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from cycleback.errors import CheckpointError
from cycleback.training.failures import saving
from cycleback.training.selection import Selected

STATE_FILE = "state.pt"


class Resumable(Protocol):
    """A module, an optimizer, an average of weights: what has a state to save."""

    def state_dict(self) -> Any:
        """The state, of tensors and plain values."""
        ...

    def load_state_dict(self, state: Any) -> Any:
        """Take a saved state."""
        ...


@dataclass(frozen=True)
class TrainState:
    """How far a run has come.

    Attributes:
        step: updates made.
        seconds: time it took, over all sittings.
        selected: the weights kept for what they do on held-out videos; None: the last are kept.
        stopped_early: whether it ended because `selected` had not changed for so long.
        is_interrupted: whether it ended because of Ctrl-C or a request to terminate; the state is saved.
    """

    step: int
    seconds: float
    selected: Selected | None = None
    stopped_early: bool = False
    is_interrupted: bool = False


def save_state(folder: Path, state: TrainState, parts: Mapping[str, Resumable]) -> None:
    """Write `state.pt` so that a kill at any moment leaves the old file or the new one."""
    content = {
        "step": state.step,
        "seconds": state.seconds,
        "selected": None if state.selected is None else asdict(state.selected),
        **{name: part.state_dict() for name, part in parts.items()},
    }
    temporary = folder / f".{STATE_FILE}.{os.getpid()}"
    with saving(folder):
        try:
            with temporary.open("wb") as file:
                torch.save(content, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, folder / STATE_FILE)
        finally:
            temporary.unlink(missing_ok=True)


def load_state(folder: Path, parts: Mapping[str, Resumable], *, device: torch.device) -> TrainState:
    """Put the saved weights and moments back; the state of a run that never saved is step 0."""
    path = folder / STATE_FILE
    if not path.exists():
        return TrainState(step=0, seconds=0.0)
    content = _read(path, device)
    try:
        for name, part in parts.items():
            part.load_state_dict(content[name])
        kept = content.get("selected")
        return TrainState(content["step"], content["seconds"], None if kept is None else Selected(**kept))
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
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
