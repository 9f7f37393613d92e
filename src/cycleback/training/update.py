"""One update: forward and backward of its batches, eagerly or as a CUDA graph, and its pending results.

Shapes: B videos of a batch, b of them embedded by this process, T sampled frames, C context frames, H W
pixels, F feature channels, V' size of the streams besides appearance, D embedding size.
"""

import copy
import dataclasses
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cycleback.data.augmentation import (
    Augmentation,
    AugmentSettings,
    augment,
    augment_on_gpu,
    draw_augmentation,
)
from cycleback.errors import TrainingError
from cycleback.losses import CombinedLoss, LossParts
from cycleback.models import Encoder
from cycleback.training.batches import Batch, mix_seed
from cycleback.training.distributed import Processes
from cycleback.training.log import StepReport
from cycleback.training.settings import RunSettings

LOSS_STREAM, AUGMENT_STREAM = 1, 2  # keep the random numbers of a batch apart
EAGER_CALLS = 3  # before a CUDA graph: libraries choose their kernels in the first calls
TOTAL, NORM = "", "|gradient|"  # names that no loss has


@dataclass(frozen=True)
class DeviceBatch:
    """A batch on the device; see `Batch`. Only the tensors differ between batches."""

    inputs: Tensor
    times: Tensor
    frames: Tensor
    phases: Tensor | None
    positive_frames: Tensor | None
    matches: Tensor | None
    side: Tensor | None
    augmentation: Augmentation
    second: Augmentation  # of the positives, if they are another view
    has_positives: bool
    has_views: bool
    num_videos: int
    rows: tuple[int, ...]  # which of the videos this process embeds

    @property
    def own_numbers(self) -> Tensor:
        """Frame numbers (b, T or 2T) of the inputs."""
        parts = [self.frames] if self.positive_frames is None else [self.frames, self.positive_frames]
        numbers = torch.cat(parts, dim=1)
        is_alone = self.rows == tuple(range(self.num_videos))  # looking up rows would wait for the device
        return numbers if is_alone else numbers[list(self.rows)]

    @property
    def _optional(self) -> dict[str, Tensor | None]:
        return {name: getattr(self, name) for name in ("phases", "positive_frames", "matches", "side")}

    @property
    def tensors(self) -> list[Tensor]:
        """Everything that differs between batches."""
        optional = [tensor for tensor in self._optional.values() if tensor is not None]
        return [self.inputs, self.times, self.frames, *optional, *self._drawn]

    @property
    def _drawn(self) -> list[Tensor]:
        return [*self.augmentation.tensors.values(), *self.second.tensors.values()]

    def copy(self) -> "DeviceBatch":
        """Copy all tensors."""
        optional: dict[str, Any] = {
            name: None if tensor is None else tensor.clone() for name, tensor in self._optional.items()
        }
        return replace(
            self,
            inputs=self.inputs.clone(),
            times=self.times.clone(),
            frames=self.frames.clone(),
            augmentation=self.augmentation.map(Tensor.clone),
            second=self.second.map(Tensor.clone),
            **optional,
        )


@dataclass
class ForwardBackward:
    """Embeds a batch, computes its loss and adds to the gradients."""

    encoder: Encoder
    loss: CombinedLoss
    settings: RunSettings
    accumulate: int  # batches per update
    augmentation: AugmentSettings | None
    processes: Processes
    slow_momentum: float = 0.99  # of the slow copy
    slow_copy: Encoder | None = None  # follows the encoder, if a loss needs targets
    _calls: int = 0
    _graphs: dict[tuple[torch.Size, ...], "CudaGraph"] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._forward = Forward(self.encoder, self.settings)
        if "targets" in self.loss.needs:
            self.slow_copy = copy.deepcopy(self.encoder).eval().requires_grad_(False)
            self._slow_forward = Forward(self.slow_copy, self.settings)

    def __call__(self, number: int, batch: Batch) -> tuple[Tensor, LossParts]:
        """Return embeddings (B, T, D) and loss of a batch; everything random depends on (seed, number)."""
        seed, rank = self.settings.seed, self.processes.rank
        on_device = self._to_device(number, batch)
        loss_seed = mix_seed(seed, number, LOSS_STREAM, 0)
        torch.manual_seed(mix_seed(seed, number, *((rank,) if rank else ())))  # own dropout per process
        self._calls += 1
        self._follow()
        if self._can_use_graph and self._calls > EAGER_CALLS:
            return self._graph(on_device).replay(on_device.tensors, seed=loss_seed)
        reseed = partial(torch.manual_seed, loss_seed)
        return self._compute(on_device, torch.Generator().manual_seed(loss_seed), before_loss=reseed)

    @torch.no_grad()
    def _follow(self) -> None:
        """Move the weights of the slow copy towards those of the encoder; copy its buffers."""
        if self.slow_copy is None:
            return
        for slow, weight in zip(self.slow_copy.parameters(), self.encoder.parameters(), strict=True):
            slow.data.lerp_(weight, 1 - self.slow_momentum)
        for kept, buffer in zip(self.slow_copy.buffers(), self.encoder.buffers(), strict=True):
            kept.copy_(buffer)

    @property
    def _can_use_graph(self) -> bool:
        is_alone = self.processes.world_size == 1 and self.accumulate == 1
        has_noise = self.augmentation is not None and self.augmentation.noise > 0  # has its own generator
        can_capture = self.processes.device.type == "cuda" and self.loss.capturable and not has_noise
        return self.settings.cuda_graph and can_capture and is_alone

    def _graph(self, batch: DeviceBatch) -> "CudaGraph":
        shapes = tuple(tensor.shape for tensor in batch.tensors)
        if shapes not in self._graphs:
            own = batch.copy()
            weights = [*self.encoder.parameters(), *self.loss.parameters()]
            self._graphs[shapes] = CudaGraph(partial(self._compute, own), own.tensors, weights)
        return self._graphs[shapes]

    def _to_device(self, number: int, batch: Batch) -> DeviceBatch:
        settings = None if batch.inputs.is_floating_point() else self.augmentation
        seeds = [mix_seed(self.settings.seed, number, AUGMENT_STREAM, view) for view in range(2)]
        of_second = settings if batch.has_views else None

        def move(values: Tensor) -> Tensor:
            return values.to(self.processes.device, non_blocking=True)  # without waiting for earlier work

        return DeviceBatch(
            inputs=move(batch.inputs),
            times=move(batch.times),
            frames=move(batch.frames),
            phases=None if batch.phases is None else move(batch.phases),
            positive_frames=None if batch.positive_frames is None else move(batch.positive_frames),
            matches=None if batch.matches is None else move(batch.matches),
            side=None if batch.side is None else move(batch.side),
            augmentation=draw_for_batch(batch, settings=settings, seed=seeds[0]).map(move),
            second=draw_for_batch(batch, settings=of_second, seed=seeds[1]).map(move),
            has_positives=batch.has_positives,
            has_views=batch.has_views,
            num_videos=len(batch.videos),
            rows=batch.rows or tuple(range(len(batch.videos))),
        )

    def _compute(
        self,
        batch: DeviceBatch,
        generator: torch.Generator,
        *,
        before_loss: Callable[[], object] = lambda: None,
    ) -> tuple[Tensor, LossParts]:
        """Run forward and backward without reading any value."""
        embeddings, positives, targets = self._embed(batch)
        before_loss()  # dropout inside a loss is the same for all processes
        parts = self.loss.parts(
            embeddings,
            times=batch.times,
            positives=positives,
            phases=batch.phases,
            frames=batch.frames,
            positive_frames=batch.positive_frames,
            targets=targets,
            matches=batch.matches,
            generator=generator,
        )
        (parts.total / self.accumulate).backward()  # type: ignore[no-untyped-call]
        values = {name: value.detach() for name, value in parts.parts.items()}
        return embeddings.detach(), LossParts(parts.total.detach(), values)

    def _embed(self, batch: DeviceBatch) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return embeddings (B, T, D) of the anchors, of the positives, and of these by the slow copy.

        The last two are None if no loss needs them.
        """
        are_features = batch.inputs.is_floating_point() and batch.inputs.ndim == 6
        inputs, numbers, side = see(batch), batch.own_numbers, batch.side
        # an embedder that mixes frames must not take the positives for frames among the anchors
        pieces = 2 if batch.has_positives and self.encoder.embedder.mixes_frames else 1
        sides = [None] * pieces if side is None else side.chunk(pieces, dim=1)
        split = zip(inputs.chunk(pieces, dim=1), sides, numbers.chunk(pieces, dim=1), strict=True)
        embeddings = torch.cat([self._forward(*piece, are_features=are_features) for piece in split], dim=1)
        embeddings = self.processes.gather(embeddings, batch.num_videos)
        if not batch.has_positives:
            return embeddings, None, None
        anchors, positives = embeddings.chunk(2, dim=1)
        if self.slow_copy is None:
            return anchors, positives, None
        late, late_side = inputs.chunk(2, dim=1)[1], None if side is None else side.chunk(2, dim=1)[1]
        with torch.no_grad():
            targets = self._slow_forward(
                late, late_side, numbers.chunk(2, dim=1)[1], are_features=are_features
            )
        return anchors, positives, self.processes.gather(targets, batch.num_videos)


def see(batch: DeviceBatch) -> Tensor:
    """Return the inputs of a batch as floats; frames are augmented, a second view by its own draw."""
    if batch.inputs.is_floating_point():
        return batch.inputs.float()
    if not batch.has_views:
        return to_images(batch.inputs, batch.augmentation)
    first, second = batch.inputs.chunk(2, dim=1)
    return torch.cat([to_images(first, batch.augmentation), to_images(second, batch.second)], dim=1)


class Forward:
    """The encoder in the arithmetic of the run: inputs in, float32 embeddings out."""

    def __init__(self, encoder: Encoder, settings: RunSettings) -> None:
        self.is_bfloat16 = settings.precision == "bfloat16"
        if settings.channels_last:  # not the embedder: weights with five axes have no such layout
            encoder.base.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        wrap = torch.compile if settings.compile else lambda function: function
        self._from_frames, self._from_features = wrap(encoder.forward), wrap(encoder.embed)

    def __call__(
        self,
        inputs: Tensor,
        side: Tensor | None = None,
        numbers: Tensor | None = None,
        *,
        are_features: bool,
    ) -> Tensor:
        """Embed frames (B, T, C, ...), or their feature maps (B, T, C, F, h, w), to (B, T, D).

        `side` (B, T, C, V') are the streams besides the appearance of frames, if there are any; `numbers`
        (B, T) the frame numbers.
        """
        with torch.autocast(
            inputs.device.type, torch.bfloat16, enabled=self.is_bfloat16, cache_enabled=False
        ):
            embeddings: Tensor = (
                self._from_features(inputs, numbers)
                if are_features
                else self._from_frames(inputs, side, numbers)
            )
        return embeddings.float()


def draw_for_batch(batch: Batch, *, settings: AugmentSettings | None, seed: int) -> Augmentation:
    """Draw the augmentation of a batch; without settings, frames stay unchanged.

    The draw of a video depends on `seed` and its row in the batch, not on the process that embeds it. Only
    the noise pattern differs between processes.
    """
    if settings is None:
        return Augmentation()
    generator = torch.Generator().manual_seed(seed)
    draw = draw_augmentation(len(batch.videos), settings=settings, generator=generator)
    if batch.rows is None:
        return draw
    rows = list(batch.rows)
    own = draw.map(lambda values: values[rows])
    return dataclasses.replace(own, noise_seed=mix_seed(draw.noise_seed, rows[0]))


def to_images(frames: Tensor, augmentation: Augmentation) -> Tensor:
    """Augment frames (b, T, C, H, W, 3) uint8 and return images (b, T, C, 3, H, W) in [0, 1]."""
    fused = augment_on_gpu(frames, augmentation)
    return augment(frames.movedim(-1, -3).float() / 255, augmentation) if fused is None else fused


Compute = Callable[[torch.Generator], tuple[Tensor, LossParts]]


class CudaGraph:
    """Forward and backward captured once as a CUDA graph and replayed as a single operation.

    Launching a small operation takes the CPU longer than the GPU needs to run it. A graph reads and writes
    fixed memory: inputs are copied in, results are copied out, and gradients stay where they were captured.
    `compute` runs forward and backward on `inputs`, which `replay` fills, and gives gradients to `weights`.
    """

    def __init__(self, compute: Compute, inputs: Sequence[Tensor], weights: Sequence[nn.Parameter]) -> None:
        self._inputs = list(inputs)
        self._compute = compute  # the tensors it reads must live as long as the graph
        self._weights = [weight for weight in weights if weight.requires_grad]
        self._generator = torch.Generator(self._inputs[0].device)
        self._graph = torch.cuda.CUDAGraph()
        self._graph.register_generator_state(self._generator)
        for weight in self._weights:
            weight.grad = None
        try:
            with torch.cuda.graph(self._graph):
                self._embeddings, self._loss = compute(self._generator)
        except RuntimeError as error:
            reason = str(error).partition("\n")[0]
            raise TrainingError(
                f"the update cannot be captured as a CUDA graph: {reason}. Set run.cuda_graph=false."
            ) from error
        self._gradients = [weight.grad for weight in self._weights]

    def replay(self, inputs: Sequence[Tensor], *, seed: int) -> tuple[Tensor, LossParts]:
        """Run on other inputs: return embeddings (B, T, D) and loss, and replace the gradients."""
        for place, value in zip(self._inputs, inputs, strict=True):
            place.copy_(value, non_blocking=True)
        self._generator.manual_seed(seed)
        self._graph.replay()
        for weight, gradient in zip(self._weights, self._gradients, strict=True):
            weight.grad = gradient
        parts = {name: value.clone() for name, value in self._loss.parts.items()}
        return self._embeddings.clone(), LossParts(self._loss.total.clone(), parts)


@dataclass(frozen=True)
class PendingUpdate:
    """An update whose results may still be on their way from the device."""

    step: int  # updates so far, including this one
    learning_rate: float
    scalars: "Scalars"  # norm of the gradient before clipping, and the losses of each batch
    batches: Sequence[Batch]
    embeddings: Tensor  # (B, T, D) of the last batch, before the update
    names: Sequence[str]  # of the training videos, for messages
    has_all_frames: bool  # whether this process has the frames of all embeddings

    def report(self) -> StepReport:
        """Wait for the device and report the update."""
        self.require_finite()
        means = {name: float(np.mean(column)) for name, column in self.scalars.read().items()}
        batch, frames = self.batches[-1], None
        if self.has_all_frames and not batch.inputs.is_floating_point():
            frames = batch.inputs[:, : batch.times.shape[1], -1]  # the anchors, before augmentation
        return StepReport(
            step=self.step,
            gradient_norm=means.pop(NORM),
            loss=means.pop(TOTAL),
            parts=means,
            learning_rate=self.learning_rate,
            embeddings=self.embeddings,
            frames=frames,
        )

    def require_finite(self) -> None:
        """Wait for the device and refuse a loss or gradient that is not finite."""
        values = self.scalars.read()
        if np.isfinite([*values[NORM], *values[TOTAL]]).all():
            return
        broken = next((i for i, total in enumerate(values[TOTAL]) if not math.isfinite(total)), -1)
        parts = {name: column[broken] for name, column in values.items() if name not in (NORM, TOTAL)}
        terms = ", ".join(f"{name} {value:g}" for name, value in parts.items())
        videos = ", ".join(self.names[video] for video in self.batches[broken].videos)
        raise TrainingError(
            f"loss or gradient is not finite at update {self.step} ({terms}; videos: {videos}). "
            "Lower optimizer.learning_rate or set optimizer.clip_norm; the last saved state is intact."
        )


class Scalars:
    """The scalars of an update, copied from the device in the background; only `read` waits."""

    def __init__(self, gradient_norm: Tensor, losses: Sequence[LossParts]) -> None:
        self._names = [NORM, *(name for parts in losses for name in (TOTAL, *parts.parts))]
        scalars = torch.stack([gradient_norm, *(v for p in losses for v in (p.total, *p.parts.values()))])
        self._values, self._arrived = scalars, None
        if scalars.is_cuda:
            self._values = torch.empty(scalars.shape, pin_memory=True).copy_(scalars, non_blocking=True)
            self._arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._arrived.record()

    def read(self) -> dict[str, list[float]]:
        """Return the norm of the gradient, the losses and their parts: by name, one value per batch."""
        if self._arrived is not None:
            self._arrived.synchronize()
        columns: dict[str, list[float]] = {}
        for name, value in zip(self._names, self._values.tolist(), strict=True):
            columns.setdefault(name, []).append(value)
        return columns


@contextmanager
def use_deterministic(enabled: bool) -> Iterator[None]:
    """Use only operations that give the same bits each time; other operations raise an error."""
    if not enabled:
        yield
        return
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    benchmark = torch.backends.cudnn.benchmark
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # required by cuBLAS
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn_only)
        torch.backends.cudnn.benchmark = benchmark
