"""Embed a corpus with worker processes of this machine. A process that ends is replaced."""

import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from multiprocessing.connection import wait as wait_for
from pathlib import Path

from cycleback.corpus.sources import Item
from cycleback.corpus.worker import Worker
from cycleback.embeddings.shards import ManifestRow
from cycleback.errors import UserError

MAX_BREAKS = 3  # of the pool one after another, without a video that was finished in between
THREADS = "OMP_NUM_THREADS"  # read by numpy and torch when they are imported
AHEAD = 2  # passes per worker that are handed out, so that none waits

Pass = Sequence[Item]


def run_passes(
    folder: Path, passes: Sequence[Pass], *, workers: int, device: str, cache_root: Path | None = None
) -> Iterator[list[ManifestRow]]:
    """Yield the lines of each pass as it is finished, in any order.

    Args:
        folder: of the corpus.
        workers: processes; on a machine with GPUs, each takes one in turn.
        cache_root: folder of decoded frames; default: the user's.
    """
    waiting = list(reversed(passes))
    breaks = 0
    with _one_thread_each():
        while waiting:
            running: dict[Future[list[ManifestRow]], Pass] = {}
            pool = _open_pool(workers, device)
            try:
                while waiting or running:
                    while waiting and len(running) < AHEAD * workers:
                        part = waiting.pop()
                        running[pool.submit(_run_pass, folder, part, device, cache_root)] = part
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        rows = future.result()
                        del running[future]
                        breaks = 0
                        yield rows
            except BrokenProcessPool as error:
                breaks += 1
                if breaks > MAX_BREAKS:
                    raise UserError(
                        f"worker processes end as soon as they start ({MAX_BREAKS} times in a row). "
                        "Is there enough memory? Use fewer with --workers."
                    ) from error
                waiting += reversed(running.values())
            finally:
                _close_pool(pool)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that are started now compute with one thread each: more would wait for each other."""
    before = os.environ.get(THREADS)
    os.environ[THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[THREADS]
        if before is not None:
            os.environ[THREADS] = before


def _open_pool(workers: int, device: str) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    numbers = context.SimpleQueue()
    for number in range(workers):
        numbers.put(number)
    return ProcessPoolExecutor(workers, context, initializer=_start, initargs=(numbers, device))


def _close_pool(pool: ProcessPoolExecutor) -> None:
    """End the workers now, even in the middle of a video: it is embedded by the next run."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()


def _start(numbers: "multiprocessing.SimpleQueue[int]", device: str) -> None:
    """Prepare a worker process: it ends when its parent does, and Ctrl-C is left to the parent."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if device == "cuda":
        import torch

        torch.cuda.set_device(numbers.get() % torch.cuda.device_count())


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _run_pass(folder: Path, items: Pass, device: str, cache_root: Path | None) -> list[ManifestRow]:
    return _open_worker(folder, device, cache_root)(items)


@cache
def _open_worker(folder: Path, device: str, cache_root: Path | None) -> Worker:
    return Worker(folder, device=device, cache=cache_root)
