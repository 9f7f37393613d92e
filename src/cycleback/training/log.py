"""The reports of a run: one `StepReport` per update, `log.jsonl` and, optionally, TensorBoard.

Shapes: B videos, T sampled frames per video, H W pixels, D embedding size.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cycleback.alignment import backward_share, cycle_consistency_rate
from cycleback.errors import CheckpointError, require
from cycleback.files import write_text
from cycleback.reading import parse_json, read_text
from cycleback.training.failures import explain_save_failures

LOG_FILE = "log.jsonl"
TENSORBOARD_FOLDER = "tensorboard"
PIXELS_PER_FRAME = 8
STRIP_FRAMES = 10
NOT_PLOTTED = ("step", "seconds")


@dataclass(frozen=True)
class StepReport:
    """The results of one update."""

    step: int  # updates so far, including this one
    loss: float  # mean over the batches of the update
    parts: Mapping[str, float]  # each part of the loss before its weight, also as a mean
    gradient_norm: float
    learning_rate: float
    embeddings: Tensor  # (B, T, D) of the last batch, before the update
    frames: Tensor | None = None  # (B, T, H, W, 3) uint8 of the embeddings; None if inputs are no images

    @cached_property
    def cycle_rate(self) -> float:
        """Share of frames that cycle back to within one sampled frame."""
        return cycle_consistency_rate(self._videos)

    @cached_property
    def backwards(self) -> float:
        """Share of pairs of videos that are matched backwards in time."""
        return backward_share(self._videos)

    @cached_property
    def _videos(self) -> list[NDArray[np.float32]]:
        return list(self.embeddings.float().cpu().numpy())

    def to_record(self, *, seconds: float) -> dict[str, float]:
        """Return the line of the log."""
        return {
            "step": self.step,
            "loss": self.loss,
            **{f"loss/{name}": value for name, value in self.parts.items()},
            "cycle_rate": self.cycle_rate,
            "backwards": self.backwards,
            "gradient_norm": self.gradient_norm,
            "learning_rate": self.learning_rate,
            "seconds": round(seconds, 3),
        }


class RunLog:
    """Appends to `log.jsonl` in a run folder and, optionally, to TensorBoard.

    Resuming drops the records after `resume_step`. Without a folder, nothing is written.
    """

    def __init__(self, folder: Path | None, *, resume_step: int = 0, tensorboard: bool = False) -> None:
        self._folder, self._board = folder, None
        if folder is None:
            return
        if tensorboard:
            self._board = _open_tensorboard(folder, resume_step=resume_step)
        kept = [record for record in read_log(folder) if record["step"] <= resume_step]
        with explain_save_failures(folder):
            lines = "".join(json.dumps(record) + "\n" for record in kept)
            write_text(folder / LOG_FILE, lines, overwrite=True)

    def write(self, record: Mapping[str, Any], report: StepReport | None = None) -> None:
        """Append one record; `report` adds pictures to TensorBoard."""
        if self._folder is None:
            return
        with (
            explain_save_failures(self._folder),
            (self._folder / LOG_FILE).open("a", encoding="utf-8") as file,
        ):
            file.write(json.dumps(record) + "\n")
        if self._board is not None:
            _write_to_tensorboard(self._board, record, report)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._board is not None:
            self._board.close()


def read_log(folder: Path) -> list[dict[str, Any]]:
    """Read all complete records of a run; a last line cut off by a kill is dropped.

    A record has "step" and either "loss", its parts and the rest, or "held_out_cycle_rate".
    """
    path = folder / LOG_FILE
    if not path.exists():
        return []
    lines = read_text(path, problem=CheckpointError).split("\n")
    return [_read_record(line, f"{path}, line {number}") for number, line in enumerate(lines[:-1], start=1)]


def _read_record(line: str, place: str) -> dict[str, Any]:
    record = parse_json(line, place, problem=CheckpointError, advice=". Remove this line.")
    record.at("step").integer(low=0)
    for _, value in record.items():
        if not isinstance(value.value, int | float):  # a diverging run may have logged NaN
            raise value.expected("a number")
    return dict(record.value)


def require_tensorboard() -> None:
    """Say in one line how to install TensorBoard if it is missing."""
    require("tensorboard", extra="track", purpose="run.tensorboard")


def _open_tensorboard(folder: Path, *, resume_step: int) -> Any:
    require_tensorboard()
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder / TENSORBOARD_FOLDER), purge_step=resume_step + 1)


def _write_to_tensorboard(board: Any, record: Mapping[str, float], report: StepReport | None) -> None:
    """Write the scalars of a record, and pictures of the first two videos of the batch."""
    step = int(record["step"])
    for name, value in record.items():
        if name not in NOT_PLOTTED:
            board.add_scalar(name, value, step)
    if report is not None and len(report.embeddings) > 1:
        first, second = report.embeddings[:2].float().cpu()
        board.add_image("similarity", draw_similarity(first, second), step, dataformats="HW")
        if report.frames is not None:
            strip = draw_neighbors(report.frames[:2].cpu(), first, second)
            board.add_image("nearest_neighbors", strip, step, dataformats="HWC")
    board.flush()


def draw_neighbors(frames: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Draw frames of one video above their nearest neighbours in another: (2 H, n W, 3) uint8.

    `frames` (2, T, H, W, 3) uint8 are those of both videos, `a` and `b` (T, D) their embeddings.
    """
    chosen = torch.linspace(0, len(a) - 1, min(len(a), STRIP_FRAMES)).round().long()  # (n,)
    nearest = torch.cdist(a[chosen], b).argmin(dim=1)  # (n,)
    rows = (frames[0][chosen], frames[1][nearest])  # (n, H, W, 3) each
    return torch.cat([torch.cat(list(row), dim=1) for row in rows], dim=0)


def draw_similarity(a: Tensor, b: Tensor) -> Tensor:
    """Draw the similarity of the frames of two videos (T, D) as an image in [0, 1]; brighter is nearer.

    Each frame is a square of some pixels; rows are frames of `a`, columns frames of `b`.
    """
    distances = torch.cdist(a, b)  # (T, T)
    scaled = 1 - (distances - distances.min()) / (distances.max() - distances.min()).clamp_min(1e-12)
    return scaled.repeat_interleave(PIXELS_PER_FRAME, 0).repeat_interleave(PIXELS_PER_FRAME, 1)
