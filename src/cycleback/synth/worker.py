"""Write many videos with several processes.

A worker is a new interpreter that runs `main`: jobs come in as JSON lines, truths go out as JSON lines.
Unlike a pool of `multiprocessing`, this never imports the caller's script again: a script needs no `__main__`
guard, and a worker never loads what the caller has loaded.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from cycleback.errors import VideoError
from cycleback.synth.pouring import plan_take, take_audio, take_frames
from cycleback.video import write_video

Truth = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One video to write."""

    path: str
    seed: int
    level: str
    size: int
    fps: float
    anomaly: str | None


def run_job(job: Job) -> Truth:
    """Render one video, write it, and return the truth about it."""
    take = plan_take(job.seed, level=job.level, fps=job.fps, anomaly=job.anomaly)
    frames = take_frames(take, size=job.size)
    write_video(job.path, frames, fps=job.fps, audio=take_audio(take), repeatable=True)
    return take.truth()


def run_jobs(
    jobs: Sequence[Job], *, workers: int, progress: Callable[[int, int], None] | None = None
) -> list[Truth]:
    """Run all jobs and return their truths in the order of the jobs."""
    if workers == 1:
        truths = []
        for job in jobs:
            truths.append(run_job(job))
            if progress is not None:
                progress(len(truths), len(jobs))
        return truths
    with WorkerPool(workers) as pool:
        return pool.run(jobs, progress=progress)


class WorkerPool:
    """Worker processes, one thread here for each; they end with the `with` block, whatever happens in it."""

    def __init__(self, workers: int) -> None:
        """Start `workers` processes."""
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # the workers are the parallelism
        environment = os.environ | one_thread | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._idle = [_start_worker(environment) for _ in range(workers)]
        self._processes = list(self._idle)
        self._lock = threading.Lock()

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()
        for process in self._processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]  # both are pipes

    def _kill(self) -> None:
        for process in self._processes:
            process.kill()

    def run(self, jobs: Sequence[Job], *, progress: Callable[[int, int], None] | None) -> list[Truth]:
        """Truths in the order of the jobs; the first failure is raised and stops the rest."""
        with ThreadPoolExecutor(len(self._processes)) as threads:
            futures = [threads.submit(self._ask, job) for job in jobs]
            try:
                for done, future in enumerate(as_completed(futures), start=1):
                    future.result()
                    if progress is not None:
                        progress(done, len(jobs))
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                self._kill()  # a thread that waits for an answer ends when its worker does
                raise
            return [future.result() for future in futures]

    def _ask(self, job: Job) -> Truth:
        with self._lock:
            process = self._idle.pop()
        answer = _exchange(process, asdict(job))
        with self._lock:
            self._idle.append(process)
        if "error" in answer:
            raise VideoError(f"could not write {job.path}: {answer['error']}")
        return answer


def _start_worker(environment: dict[str, str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", "from cycleback.synth.worker import main; main()"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=environment
    )


def _exchange(process: "subprocess.Popen[str]", message: dict[str, Any]) -> Truth:
    """Send one line, read one line."""
    assert process.stdin is not None and process.stdout is not None  # both are pipes
    try:
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except (OSError, ValueError) as error:
        return {"error": f"the worker is gone ({error})"}
    if not line:
        return {"error": f"the worker ended with exit code {process.wait()}"}
    answer: Truth = json.loads(line)
    return answer


def main() -> None:
    """Answer every line of standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, who then ends the workers
    answers = sys.stdout
    sys.stdout = sys.stderr  # nothing but answers may reach the pipe
    for line in sys.stdin:
        try:
            answer = run_job(Job(**json.loads(line)))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
