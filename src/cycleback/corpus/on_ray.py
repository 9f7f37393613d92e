"""Embed a corpus on a Ray cluster: one actor per GPU, or per core.

Ray Data hands out passes of video names and collects lines of the manifest; frames never enter its object
store. Whatever Ray loses is handed out again: workers skip videos that have a shard. These limits of Ray
are known, and guarded against:

- A cluster whose actors take every core hangs, because the tasks that feed them find none: one stays free.
- A pool of fixed size does not replace an actor that died: the pool has a range.
- A job may stop making progress without an error: a time limit ends it, and the rest is handed out again.
- An exception in an actor stops the job: workers return the errors of videos as lines.
"""

import json
import logging
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cycleback.corpus.settings import Settings
from cycleback.corpus.sources import Item
from cycleback.corpus.worker import Worker
from cycleback.embeddings.shards import ManifestRow
from cycleback.errors import UserError, require

MAX_ROUNDS = 3  # one after another in which no video was finished
STALLED_S = 1800  # without a finished pass, after which a round is given up
CONNECT_S = 10.0  # for a cluster to answer
STORE_BYTES = 128 << 20  # of a cluster that is started here: only names and lines are in its store
SHARE_CPUS = 1.0  # per actor on a machine without GPUs; each computes with one thread
GPU_CPUS = 2.0  # per actor with a GPU: to decode meanwhile


class RayWorker:
    """What an actor holds: a worker. Videos and lines of the manifest travel as JSON."""

    def __init__(self, folder: str, cache: str | None, device: str) -> None:
        root = None if cache is None else Path(cache)
        self.worker = Worker(Path(folder), device=device, cache=root)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """Embed the videos of a pass."""
        items = [Item(**json.loads(text)) for text in batch["item"]]
        return {"row": [json.dumps(asdict(row)) for row in self.worker(items)]}


def run_items(
    folder: Path,
    items: Sequence[Item],
    *,
    address: str | None,
    settings: Settings,
    pass_videos: int,
    workers: int | None = None,
    cache: Path | None = None,
    stalled_s: float = STALLED_S,
) -> Iterator[list[ManifestRow]]:
    """Yield lines of the manifest as videos are finished, in any order.

    Args:
        folder: of the corpus.
        address: of a cluster, such as "10.0.0.1:6379"; None: that of RAY_ADDRESS, or one that is started for
            this call.
        pass_videos: embedded together by an actor.
        workers: actors, at most; default: as many as the cluster has room for.
    """
    ray: Any = require("ray", extra="ray", purpose="--on ray")
    waiting = {item.id: item for item in items}
    if not waiting:
        return
    rounds = 0
    with _join_cluster(ray, address, workers):
        while waiting:
            rounds += 1
            try:
                for row in _run_round(
                    ray,
                    folder,
                    list(waiting.values()),
                    settings=settings,
                    pass_videos=pass_videos,
                    workers=workers,
                    cache=cache,
                    stalled_s=stalled_s,
                ):
                    rounds = 0
                    if waiting.pop(row.id, None) is not None:
                        yield [row]
            except UserError:
                raise
            except Exception as error:  # of Ray: an actor, a node or the store was lost
                cause = _find_user_error(error)
                if cause is not None:
                    raise cause from error
                if rounds >= MAX_ROUNDS:
                    reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
                    raise UserError(
                        f"the Ray cluster makes no progress ({reason[:300]}). What is done is kept: look at "
                        "the cluster, and run the same command again."
                    ) from error


@contextmanager
def _join_cluster(ray: Any, address: str | None, workers: int | None) -> Iterator[None]:
    """Connect to a cluster until the block ends; without an address, start one on this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if ray.is_initialized():  # the caller's own cluster
        yield
        return
    where: dict[str, Any] = {"address": address or os.environ.get("RAY_ADDRESS")}
    if where["address"] is None:
        cores = workers or os.cpu_count() or 1
        where = {"num_cpus": cores + 1, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    elif "://" not in where["address"]:
        _check_address(where["address"])
    try:
        ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"no Ray cluster at {where.get('address')}: {reason[:300]}") from error
    try:
        with redirect_stdout(sys.stderr):  # Ray prints there that a node was lost
            yield
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Refuse an address at which nothing answers; Ray itself would ask for minutes."""
    host, _, port = address.rpartition(":")
    if address in ("auto", "local"):
        return
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(
            f"no Ray cluster at {address}: {reason}. Expected local, ray, or HOST:PORT such as 10.0.0.1:6379."
        ) from error


def _run_round(
    ray: Any,
    folder: Path,
    items: Sequence[Item],
    *,
    settings: Settings,
    pass_videos: int,
    workers: int | None,
    cache: Path | None,
    stalled_s: float,
) -> Iterator[ManifestRow]:
    """Hand out videos once and yield their lines; Ray raises errors of a hundred types."""
    import ray.data as ray_data

    context = ray_data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_no_progress_timeout_s = stalled_s
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    passes = -(-len(items) // pass_videos)
    count, share = share_cluster(ray.cluster_resources(), device=settings.device, workers=workers)
    count = min(count, passes)
    rows = [{"item": json.dumps(asdict(item))} for item in items]
    done = ray_data.from_items(rows, override_num_blocks=passes).map_batches(
        RayWorker,
        fn_constructor_args=(str(folder), None if cache is None else str(cache), settings.device),
        batch_size=None,
        compute=ray_data.ActorPoolStrategy(min_size=max(1, count - 1), max_size=count, initial_size=count),
        num_cpus=share,
        num_gpus=1 if settings.device == "cuda" else None,
        runtime_env={"env_vars": {"OMP_NUM_THREADS": "1"}},
    )
    for batch in done.iter_batches(batch_size=None, prefetch_batches=0):
        for text in batch["row"]:
            yield ManifestRow(**json.loads(str(text)))


def share_cluster(
    resources: dict[str, float], *, device: str, workers: int | None = None
) -> tuple[int, float]:
    """Return how many actors a cluster has room for, and the share of cores of each; one core stays free.

    Args:
        resources: of the cluster, as Ray names them: CPU, GPU.
    """
    cores, gpus = resources.get("CPU", 0.0), int(resources.get("GPU", 0.0))
    if device == "cuda":
        if not gpus:
            raise UserError(
                "this corpus was begun on GPUs, and the cluster has none. Choose another folder with -o."
            )
        count = min(gpus, workers or gpus)
        return count, max(min(GPU_CPUS, (cores - 1) / count), 0.1)
    if cores < 1:
        raise UserError("the Ray cluster has no cores")
    if cores < 2:
        return 1, cores / 2
    count = min(int((cores - 1) // SHARE_CPUS), workers or int(cores))
    return max(1, count), SHARE_CPUS


def _find_user_error(error: BaseException | None) -> UserError | None:
    """Return the mistake of a user that an actor met, if it is what stopped the job."""
    while error is not None:
        if isinstance(error, UserError):
            return error
        error = getattr(error, "cause", None) or error.__cause__
    return None
