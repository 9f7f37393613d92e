"""Score embeddings in other processes while the next row trains.

A trained row waits in a folder until it is scored, so that nothing is trained twice:

WAITING/BASE~ROW~SEED/run.json   minutes, curve, seed, recipe, provenance; written last
WAITING/BASE~ROW~SEED/PART/      embeddings of train and of each held-out part
"""

import json
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from cycleback.embeddings import EmbeddingSet
from cycleback.evaluation import evaluate
from cycleback.files import write_json

TRAIN = "train"
DETAILS = ("by_action", "event_error_by_event", "event_errors", "calibration", "robust")  # left out
MAX_WAIT_S = 1e6  # stands for no limit
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def score(seen: EmbeddingSet, held_out: EmbeddingSet, *, few_shot: bool = True) -> dict[str, Any]:
    """Return the report of `held_out` without its details."""
    report = evaluate(seen, held_out, few_shot=few_shot).to_json()
    return {key: value for key, value in report.items() if key not in DETAILS}


def score_part(folder: Path, part: str) -> dict[str, Any]:
    """Return the report of one held-out part of a waiting row."""
    return score(EmbeddingSet.load(folder / TRAIN), EmbeddingSet.load(folder / part))


class Scorer:
    """Scores every part of every row, and returns the rows that are done.

    Args:
        waiting: folder of the rows that wait.
        workers: number of processes; 0 scores at once in this one.
    """

    def __init__(self, waiting: Path, workers: int) -> None:
        self.waiting = waiting
        self.failed: list[str] = []
        self._tasks: dict[str, dict[str, Future[dict[str, Any]]]] = {}
        self._pool = _pool(workers) if workers else None
        for found in sorted(waiting.glob("*/run.json")):
            self._submit(found.parent.name.replace("~", "/"))

    @property
    def keys(self) -> set[str]:
        """The rows that are trained and not yet returned."""
        return set(self._tasks)

    def add(self, key: str, run: Mapping[str, Any], sets: Mapping[str, EmbeddingSet]) -> None:
        """Keep a trained row and start scoring it."""
        folder = self._folder(key)
        for part, found in sets.items():
            found.save(folder / part, overwrite=True)
        write_json(folder / "run.json", run, overwrite=True)
        self._submit(key)

    def _folder(self, key: str) -> Path:
        return self.waiting / key.replace("/", "~")

    def _submit(self, key: str) -> None:
        folder = self._folder(key)
        parts = sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name != TRAIN)
        self._tasks[key] = {part: self._start(folder, part) for part in parts}

    def _start(self, folder: Path, part: str) -> "Future[dict[str, Any]]":
        if self._pool is not None:
            return self._pool.submit(score_part, folder, part)
        future: Future[dict[str, Any]] = Future()
        future.set_result(score_part(folder, part))
        return future

    def finished(self, *, wait_s: float = 0.0) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield rows with the scores of all parts; wait at most `wait_s` for the others."""
        end = time.monotonic() + min(wait_s, MAX_WAIT_S)
        while self._tasks:
            for key in [k for k, parts in self._tasks.items() if all(f.done() for f in parts.values())]:
                yield from self._collect(key)
            open_parts = [f for parts in self._tasks.values() for f in parts.values() if not f.done()]
            left = end - time.monotonic()
            if left <= 0 or (open_parts and not wait(open_parts, left, FIRST_COMPLETED).done):
                return

    def _collect(self, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the row, unless scoring it failed; then it waits for the next call."""
        parts = self._tasks.pop(key)
        for part, future in parts.items():
            if (error := future.exception()) is not None:
                print(f"{key} {part}: {error!r}", file=sys.stderr, flush=True)
                self.failed.append(key)
                return
        run = json.loads((self._folder(key) / "run.json").read_text("utf-8"))
        yield key, {**run, **{part: future.result() for part, future in parts.items()}}

    def forget(self, key: str) -> None:
        """Delete the embeddings of a row after its scores are written."""
        shutil.rmtree(self._folder(key))
        if not any(self.waiting.iterdir()):
            self.waiting.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the processes at once."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()


def _pool(workers: int) -> ProcessPoolExecutor:
    """Return processes of one thread each; libraries read the variables when a process loads them."""
    os.environ |= dict.fromkeys(THREAD_VARIABLES, "1")
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=spawn, initializer=torch.set_num_threads, initargs=(1,))
