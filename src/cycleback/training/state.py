"""The state of a run: its progress, the file that resuming needs, and the running average of its weights.

Resuming needs only the weights, the optimizer's moments and the step: everything random in an update is a
function of (seed, step).
"""

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cycleback.errors import CheckpointError
from cycleback.files import atomic_file
from cycleback.reading import Cursor
from cycleback.training.failures import explain_save_failures
from cycleback.training.held_out import Selected

STATE_FILE = "state.pt"
DELETE = ". Delete it to start this run again."
Parts = Mapping[str, Any]
"""Modules, optimizers and weight averages: anything with `state_dict` and `load_state_dict`."""


@dataclass(frozen=True)
class TrainState:
    """How far a run is."""

    step: int  # updates made
    seconds: float  # training time, of all sittings together
    selected: Selected | None = None  # weights kept for their held-out rate; None: the last ones are kept
    stopped_early: bool = False  # whether the held-out rate had stopped improving
    is_interrupted: bool = False  # whether Ctrl-C or SIGTERM stopped it; the state is saved
    kept_untrained: bool = False  # whether training did not help, so that the untrained encoder was kept
    # shares of frames that cycle back by warping, trained and untrained; None if too few videos tell
    cycle_rates: tuple[float, float] | None = None
    # share of the pairs of videos that are matched backwards; None if too few videos tell
    backwards: float | None = None
    restart: "Restart | None" = None  # whether and how it was trained again because of that


@dataclass(frozen=True)
class Restart:
    """A second training, because too many pairs of videos were matched backwards in time."""

    setting: str  # what was changed, such as "loss.weights.order=0.3"
    before: float  # share of the pairs that ran backwards after the first training
    after: float  # and after the second
    is_kept: bool  # whether the second training is the one that is kept


def save_state(folder: Path, state: TrainState, parts: Parts) -> None:
    """Write `state.pt`; a kill at any moment leaves the old file or the new one."""
    content = {
        "step": state.step,
        "seconds": state.seconds,
        "selected": None if state.selected is None else asdict(state.selected),
        **{name: part.state_dict() for name, part in parts.items()},
    }
    with explain_save_failures(folder), atomic_file(folder / STATE_FILE, overwrite=True) as draft:
        torch.save(content, draft)


def load_state(folder: Path, parts: Parts, *, device: torch.device) -> TrainState:
    """Restore the saved parts and return the state; a run that never saved is at step 0."""
    path = folder / STATE_FILE
    if not path.exists():
        return TrainState(step=0, seconds=0.0)
    root = Cursor(_read(path, device), str(path), CheckpointError, DELETE)
    kept = root.find("selected")
    state = TrainState(
        root.at("step").integer(low=0),
        root.at("seconds").number(),
        None if kept is None else _read_selected(kept),
    )
    try:
        for name, part in parts.items():
            if name not in root.value:
                raise ValueError(f"it has no {name!r}")
            part.load_state_dict(root.value[name])
    except Exception as error:  # each module and optimizer has its own for what does not fit
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise CheckpointError(
            f"{path} does not fit this recipe: {reason}. Train into another folder."
        ) from None
    return state


def _read_selected(kept: Cursor) -> Selected:
    return Selected(
        kept.at("step").integer(low=0),
        kept.at("held_out_cycle_rate").number(),
        kept.at("evaluations_since").integer(low=0),
    )


def _read(path: Path, device: torch.device) -> Any:
    """Load the file; torch itself ignores the checksums in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        if damaged is None:
            return torch.load(path, map_location=device, weights_only=True)
        reason = f"{damaged} was damaged since it was written (wrong checksum)"
    except Exception as error:  # torch and zipfile raise a dozen types for a damaged file
        reason = (str(error).splitlines() or [type(error).__name__])[0]
    raise CheckpointError(f"{path} cannot be read: {reason}{DELETE}")


class WeightAverage:
    """Exponential moving average of the trained parameters of a module.

    average = d * average + (1 - d) * weights, with d = min(decay, (1 + n) / (10 + n)) at update n (0-based),
    so the untrained first weights are soon forgotten. Buffers, such as the statistics of BatchNorm, are
    averages already and are used unchanged. The average starts at the current weights of `module`.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.module, self.decay = module, decay
        self.average = {name: weight.detach().clone() for name, weight in self._trained()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Include the weights after update `step` (0-based)."""
        decay = min(self.decay, (1 + step) / (10 + step))
        for name, weight in self._trained():
            self.average[name].lerp_(weight, 1 - decay)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Let the module hold the average inside the block, and its own weights again afterwards."""
        own = {name: weight.detach().clone() for name, weight in self._trained()}
        self._fill(self.average)
        try:
            yield
        finally:
            self._fill(own)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the average by name."""
        return dict(self.average)

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore a saved average."""
        if state.keys() != self.average.keys():
            raise ValueError("the saved average has other weights")
        self.average = {name: weight.clone() for name, weight in state.items()}

    @torch.no_grad()
    def _fill(self, weights: dict[str, Tensor]) -> None:
        for name, weight in self._trained():
            weight.copy_(weights[name])

    def _trained(self) -> Iterator[tuple[str, nn.Parameter]]:
        return ((name, weight) for name, weight in self.module.named_parameters() if weight.requires_grad)
