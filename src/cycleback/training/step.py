"""Forward and backward of one batch: eagerly, or on a GPU replayed as one recording.

Shapes: B videos, b of them embedded by this process, T sampled frames, C context frames, D embedding size.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor

from cycleback.data.augmentation import Augmentation, AugmentSettings
from cycleback.losses import CombinedLoss, LossParts
from cycleback.models import Encoder
from cycleback.training.batches import Batch, mixed_seed
from cycleback.training.distributed import Processes
from cycleback.training.images import augmented_images, draw_for
from cycleback.training.precision import Forward
from cycleback.training.recording import Recording

LOSS_STREAM, AUGMENT_STREAM = 1, 2  # keep the random numbers of a step apart
EAGER_CALLS = 3  # before a recording: libraries choose their kernels in the first calls


@dataclass(frozen=True)
class DeviceBatch:
    """A batch where it is computed on; see `Batch`. All but the tensors is the same for all batches."""

    inputs: Tensor
    times: Tensor
    phases: Tensor | None
    augmentation: Augmentation
    has_positives: bool
    num_videos: int

    @property
    def tensors(self) -> list[Tensor]:
        """All that differs between batches."""
        labels = [] if self.phases is None else [self.phases]
        return [self.inputs, self.times, *labels, *self.augmentation.tensors.values()]

    def copy(self) -> "DeviceBatch":
        """The same in memory of its own."""
        return replace(
            self,
            inputs=self.inputs.clone(),
            times=self.times.clone(),
            phases=None if self.phases is None else self.phases.clone(),
            augmentation=self.augmentation.map(Tensor.clone),
        )


@dataclass
class Step:
    """Embeds a batch, computes its loss and adds to the gradients.

    Attributes:
        forward: inputs to embeddings, in the arithmetic of the run.
        accumulate: batches of an update.
        records: whether to replay the step as one recording, where that can be done.
    """

    encoder: Encoder
    loss: CombinedLoss
    forward: Forward
    seed: int
    accumulate: int
    augmentation: AugmentSettings | None
    device: torch.device
    processes: Processes
    records: bool = False
    _calls: int = 0
    _recordings: dict[tuple[torch.Size, ...], Recording] = field(default_factory=dict, repr=False)

    def __call__(self, number: int, batch: Batch) -> tuple[Tensor, LossParts]:
        """Embeddings (B, T, D) and loss of a batch; all that is random is a function of (seed, number)."""
        moved = self._to_device(number, batch)
        rank = (self.processes.rank,) if self.processes.rank else ()  # each process has its own dropout
        loss_seed = mixed_seed(self.seed, number, LOSS_STREAM, 0)
        torch.manual_seed(mixed_seed(self.seed, number, *rank))
        self._calls += 1
        if self._is_recordable and self._calls > EAGER_CALLS:
            return self._recording(moved).replay(moved.tensors, seed=loss_seed)
        reseed = partial(torch.manual_seed, loss_seed)
        return self._compute(moved, torch.Generator().manual_seed(loss_seed), before_loss=reseed)

    @property
    def _is_recordable(self) -> bool:
        is_alone = self.processes.world_size == 1 and self.accumulate == 1
        has_noise = self.augmentation is not None and self.augmentation.noise > 0  # from its own generator
        can_record = self.device.type == "cuda" and self.loss.capturable and not has_noise
        return self.records and can_record and is_alone

    def _recording(self, batch: DeviceBatch) -> Recording:
        shapes = tuple(tensor.shape for tensor in batch.tensors)
        if shapes not in self._recordings:
            own = batch.copy()
            weights = [*self.encoder.parameters(), *self.loss.parameters()]
            self._recordings[shapes] = Recording(partial(self._compute, own), own.tensors, weights)
        return self._recordings[shapes]

    def _to_device(self, number: int, batch: Batch) -> DeviceBatch:
        settings = None if batch.inputs.is_floating_point() else self.augmentation
        seed = mixed_seed(self.seed, number, AUGMENT_STREAM, 0)

        def moved(values: Tensor) -> Tensor:
            return values.to(
                self.device, non_blocking=True
            )  # else it waits for all that the device has to do

        return DeviceBatch(
            inputs=moved(batch.inputs),
            times=moved(batch.times),
            phases=None if batch.phases is None else moved(batch.phases),
            augmentation=draw_for(batch, settings=settings, seed=seed).map(moved),
            has_positives=batch.has_positives,
            num_videos=len(batch.videos),
        )

    def _compute(
        self,
        batch: DeviceBatch,
        generator: torch.Generator,
        *,
        before_loss: Callable[[], object] = lambda: None,
    ) -> tuple[Tensor, LossParts]:
        """Forward and backward, without looking at any value."""
        embeddings, near = self._embed(batch)
        before_loss()  # the dropout in a loss is the same for all processes
        parts = self.loss.parts(
            embeddings, times=batch.times, positives=near, phases=batch.phases, generator=generator
        )
        (parts.total / self.accumulate).backward()  # type: ignore[no-untyped-call]
        values = {name: value.detach() for name, value in parts.parts.items()}
        return embeddings.detach(), LossParts(parts.total.detach(), values)

    def _embed(self, batch: DeviceBatch) -> tuple[Tensor, Tensor | None]:
        """Embeddings (B, T, D) of the anchors, and those of the positives where the batch has them."""
        inputs = batch.inputs
        are_features = inputs.is_floating_point() and inputs.ndim == 6
        inputs = (
            inputs.float() if inputs.is_floating_point() else augmented_images(inputs, batch.augmentation)
        )
        # positives are no later frames of the anchors: an embedder that remembers must not see them so
        remembers = batch.has_positives and self.encoder.embedder.can_count_frames
        pieces = inputs.chunk(2, dim=1) if remembers else (inputs,)
        embeddings = torch.cat([self.forward(piece, are_features=are_features) for piece in pieces], dim=1)
        embeddings = self.processes.gather(embeddings, batch.num_videos)
        if not batch.has_positives:
            return embeddings, None
        anchors, near = embeddings.chunk(2, dim=1)
        return anchors, near
