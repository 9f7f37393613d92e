"""Several processes that train one encoder, under torchrun.

    torchrun --nproc-per-node 8 --no-python cycleback train VIDEOS -o RUN

Each process embeds its share of the batch. The embeddings are gathered on every process, so each computes the
loss over all pairs of the whole batch. Let g_r be the gradient of process r through its own embeddings. The
gradient of the whole batch is sum_r g_r. `gather` multiplies the gradient that flows back by W, so the mean
over W processes is that sum. The weights of a loss see the whole batch on every process, so their gradients
agree. Averaging all gradients therefore gives the update of one process with the whole batch.

The exception is BatchNorm in training mode: its statistics are those of the process's own share.

Shapes: W processes, n videos per process, B videos in all, T frames, D embedding size.
"""

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from cycleback.errors import TrainingError

TIMEOUT = timedelta(hours=6)  # the other processes wait while the first one decodes videos
Item = TypeVar("Item")
BUCKET_ELEMENTS = 2**24  # gradients sent at once: 64 MiB in float32


@dataclass(frozen=True)
class Processes:
    """One process of a group that trains together; by default the group has one member."""

    rank: int = 0
    world_size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def local_size(self) -> int:
        """How many processes of the group run on this machine, as torchrun tells."""
        return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if self.world_size > 1 else 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and reports."""
        return self.rank == 0

    def gather(self, embeddings: Tensor, count: int) -> Tensor:
        """Gather embeddings (n, T, D) of this process's rows into those of the batch (B = `count`, T, D).

        Row k of process r is row r + k * W of the batch. Rows past the end are repeats and are dropped.
        """
        if self.world_size == 1:
            return embeddings
        stacked: Tensor = _Gather.apply(embeddings, self)  # type: ignore[no-untyped-call]
        return stacked.transpose(0, 1).flatten(0, 1)[:count]  # (W, n, T, D) -> (B, T, D)

    def average_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace each gradient by its mean over the processes."""
        if self.world_size == 1:
            return
        for bucket in _buckets([p.grad for p in parameters if p.grad is not None]):
            flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
            dist.all_reduce(flat)
            flat /= self.world_size
            parts = torch.split(flat, [gradient.numel() for gradient in bucket])
            for gradient, part in zip(bucket, parts, strict=True):
                gradient.copy_(part.view_as(gradient))

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any process."""
        if self.world_size == 1:
            return flag
        votes = torch.tensor(float(flag), device=self.device)
        dist.all_reduce(votes, dist.ReduceOp.MAX)
        return bool(votes.item())

    def from_first(self, value: float) -> float:
        """Return the value of the first process."""
        if self.world_size == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float64, device=self.device)
        dist.broadcast(shared, src=0)
        return float(shared.item())

    def share(self, *modules: nn.Module) -> None:
        """Give all processes the weights and buffers of the first."""
        if self.world_size == 1:
            return
        for module in modules:
            for tensor in module.state_dict().values():
                whole = tensor.contiguous()
                dist.broadcast(whole, src=0)
                tensor.copy_(whole)

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """Run the body in the first process, then in all others; if it fails there, all stop."""
        if self.is_first:
            try:
                yield
            except BaseException:
                self.any(True)
                raise
            self.any(False)
            return
        if self.any(False):
            raise TrainingError(f"process {self.rank} stops: the first process failed, see its message")
        yield

    @contextmanager
    def together(self) -> Iterator[None]:
        """Run the body in all processes at once; if it fails in one, all stop."""
        try:
            yield
        except BaseException:
            self.any(True)
            raise
        if self.any(False):
            raise TrainingError(f"process {self.rank} stops: another process failed, see its message")

    def deal(self, items: Sequence[Item]) -> list[Item]:
        """Return the items that are this process's to work on."""
        return list(items[self.rank :: self.world_size])


class _Gather(torch.autograd.Function):
    """Gather (n, T, D) into (W, n, T, D); backward returns this process's part times W."""

    @staticmethod
    def forward(context: Any, embeddings: Tensor, processes: Processes) -> Tensor:
        context.processes = processes
        parts = [torch.empty_like(embeddings) for _ in range(processes.world_size)]
        dist.all_gather(parts, embeddings.contiguous())
        return torch.stack(parts)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        processes = context.processes
        return gradient[processes.rank] * processes.world_size, None


def _buckets(gradients: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Group gradients of one type up to BUCKET_ELEMENTS elements; larger tensors are alone."""
    bucket: list[Tensor] = []
    for gradient in gradients:
        total = sum(g.numel() for g in bucket) + gradient.numel()
        if bucket and (total > BUCKET_ELEMENTS or gradient.dtype != bucket[0].dtype):
            yield bucket
            bucket = []
        bucket.append(gradient)
    if bucket:
        yield bucket


@contextmanager
def join_processes(device: torch.device) -> Iterator[Processes]:
    """Join the processes that torchrun started; without torchrun, this process is alone.

    With device "cuda", each process takes the GPU with its local rank. Drop models and optimizers before the
    end of the body: releasing them after the process group is gone can abort the process.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "RANK" not in os.environ:
        yield Processes(device=device)
        return
    is_cuda = device.type == "cuda"
    if is_cuda:
        device = choose_gpu(int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    backend = "nccl" if is_cuda else "gloo"
    dist.init_process_group(backend, timeout=TIMEOUT, device_id=device if is_cuda else None)
    try:
        yield Processes(dist.get_rank(), dist.get_world_size(), device)
        dist.barrier()
    finally:
        gc.collect()
        dist.destroy_process_group()


def choose_gpu(local_rank: int) -> torch.device:
    """Return the GPU of a process by its local rank."""
    count = torch.cuda.device_count()
    if local_rank >= count:
        raise TrainingError(
            f"process {local_rank} of this machine has no GPU of its own; there are {count}. "
            f"Start at most {count} with --nproc-per-node, or train with --device cpu."
        )
    return torch.device("cuda", local_rank)
