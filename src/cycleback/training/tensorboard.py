"""The log as TensorBoard shows it; off unless asked for.

Shapes: T sampled frames, D embedding size.
"""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor

from cycleback.errors import require
from cycleback.training.report import StepReport

TENSORBOARD_FOLDER = "tensorboard"
PIXELS_PER_FRAME = 8
STRIP_FRAMES = 10
NOT_PLOTTED = ("step", "seconds")


class TensorBoardLog:
    """Scalars, similarity matrices and neighbour strips in `folder`/tensorboard; on resume hides the rest.

    Args:
        folder: the run folder.
        resume_step: updates after which the run goes on.
    """

    def __init__(self, folder: Path, *, resume_step: int = 0) -> None:
        require_tensorboard()
        from torch.utils.tensorboard import SummaryWriter

        where = str(folder / TENSORBOARD_FOLDER)
        self._writer: Any = SummaryWriter(where, purge_step=resume_step + 1)

    def write(self, record: Mapping[str, float], report: StepReport | None = None) -> None:
        """A line of the log, and the similarity matrix of the first two videos of the batch."""
        step = int(record["step"])
        for name, value in record.items():
            if name not in NOT_PLOTTED:
                self._writer.add_scalar(name, value, step)
        if report is not None and len(report.embeddings) > 1:
            first, second = report.embeddings[:2].float().cpu()
            self._writer.add_image("similarity", similarity_image(first, second), step, dataformats="HW")
            if report.frames is not None:
                strip = neighbor_strip(report.frames[:2].cpu(), first, second)
                self._writer.add_image("nearest_neighbors", strip, step, dataformats="HWC")
        self._writer.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()


def require_tensorboard() -> None:
    """Say in one line how to get TensorBoard, where it is missing."""
    require("tensorboard", extra="track", purpose="run.tensorboard")


def neighbor_strip(frames: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Frames of one video above their nearest neighbours in another, as one picture (2 H, n W, 3) uint8.

    Args:
        frames: (2, T, H, W, 3) uint8 of both videos.
        a: (T, D), embeddings of the first.
        b: (T, D), embeddings of the second.
    """
    shown = torch.linspace(0, len(a) - 1, min(len(a), STRIP_FRAMES)).round().long()  # (n,)
    nearest = torch.cdist(a[shown], b).argmin(dim=1)  # (n,)
    rows = (frames[0][shown], frames[1][nearest])  # (n, H, W, 3) each
    return torch.cat([torch.cat(list(row), dim=1) for row in rows], dim=0)


def similarity_image(a: Tensor, b: Tensor) -> Tensor:
    """Similarity of the frames of two videos (T, D) as a picture in [0, 1]: brighter is nearer.

    Each frame is a square of some pixels; rows are frames of `a`, columns frames of `b`.
    """
    distances = torch.cdist(a, b)  # (T, T)
    scaled = 1 - (distances - distances.min()) / (distances.max() - distances.min()).clamp_min(1e-12)
    return scaled.repeat_interleave(PIXELS_PER_FRAME, 0).repeat_interleave(PIXELS_PER_FRAME, 1)
