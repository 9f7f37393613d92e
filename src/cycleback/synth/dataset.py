"""Write a folder of pouring videos with labels and ground truth, with several processes.

A worker is a new interpreter that runs `serve_jobs`: it reads jobs and writes ground truth as JSON lines.
Unlike `multiprocessing`, it never imports the caller's script, so a script needs no `__main__` guard, and a
worker does not load the caller's modules.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from cycleback.errors import VideoError
from cycleback.files import atomic_folder, check_folder
from cycleback.progress import Counter, ignore
from cycleback.synth.motion import ANOMALIES
from cycleback.synth.pouring import check_settings, check_size, plan_take, render_audio, render_frames
from cycleback.tables import write_table
from cycleback.video import write_video

FPS = 30.0
TRUTH_FILE, TRUTH_FORMAT = "truth.json", 1
TABLES = (TRUTH_FILE, "labels.csv", "anomalies.csv", "splits.csv")  # the demo adds the last
OWN_VIDEO = re.compile(r"pouring_\d{3,}\.mp4")

Truth = dict[str, Any]


@dataclass(frozen=True)
class SynthVideo:
    """One written video."""

    name: str
    path: Path
    seed: int
    events: dict[str, int]
    anomaly: str | None
    anomaly_range: tuple[int, int] | None  # first and last frame
    num_frames: int
    fps: float


def write_dataset(
    directory: str | os.PathLike[str],
    *,
    videos: int,
    seed: int = 0,
    level: str = "easy",
    size: int = 112,
    anomalies: int = 0,
    jobs: int | None = None,
    progress: Counter = ignore,
    overwrite: bool = False,
) -> list[SynthVideo]:
    """Write `videos` pouring videos with sound, `labels.csv`, `truth.json` and, if asked, `anomalies.csv`.

    Video k depends only on (seed, k, level, size), not on the number of videos or on `jobs`. The folder
    appears only when it is complete.

    Args:
        directory: Folder to write; an existing folder must be empty.
        videos: Number of videos, at least 1.
        seed: Another seed gives another set.
        level: "easy" or "hard".
        size: Side of a frame in pixels, even, at least 48.
        anomalies: In how many of the videos, the last ones, something goes wrong: each kind in turn.
        jobs: Processes; None for one per core.
        progress: Called with (videos done, videos in total) after each video.
        overwrite: Overwrite a folder that was rendered before.
    """
    _check_counts(videos=videos, anomalies=anomalies, jobs=jobs, seed=seed)
    check_settings(level=level, fps=FPS, anomaly=None)
    check_size(size)
    target = Path(directory)
    check_rendered(target, overwrite=overwrite)
    with atomic_folder(target, overwrite=overwrite) as folder:
        work = [
            Job(
                path=str(folder / f"{_video_name(index)}.mp4"),
                seed=video_seed(seed, index),
                level=level,
                size=size,
                fps=FPS,
                anomaly=_choose_anomaly(index, videos=videos, anomalies=anomalies),
            )
            for index in range(videos)
        ]
        truths = run_jobs(work, workers=min(jobs or os.cpu_count() or 1, videos), progress=progress)
        written = [_describe_video(target, index, truth) for index, truth in enumerate(truths)]
        settings = {"format": TRUTH_FORMAT, "seed": seed, "level": level, "size": size, "fps": FPS}
        _write_tables(folder, written)
        by_name = {video.name: truth for video, truth in zip(written, truths, strict=True)}
        text = json.dumps(settings | {"videos": by_name}, separators=(",", ":"), allow_nan=False)
        (folder / TRUTH_FILE).write_text(text + "\n", encoding="utf-8")
    return written


def check_rendered(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that cannot be made; only a rendered folder to which nothing was added is replaced."""
    check_folder(
        folder,
        marker=TRUTH_FILE,
        is_own=lambda name: name in TABLES or OWN_VIDEO.fullmatch(name) is not None,
        overwrite=overwrite,
    )


def video_seed(seed: int, index: int) -> int:
    """Return the seed of video `index` of the set `seed`, independent for every pair."""
    return int(np.random.SeedSequence((seed, index)).generate_state(1, np.uint64)[0])


def _video_name(index: int) -> str:
    return f"pouring_{index:03d}"


def _choose_anomaly(index: int, *, videos: int, anomalies: int) -> str | None:
    """Choose the anomaly of video `index`: the last `anomalies` videos get each kind in turn."""
    number = index - (videos - anomalies)
    return ANOMALIES[number % len(ANOMALIES)] if number >= 0 else None


def _check_counts(*, videos: int, anomalies: int, jobs: int | None, seed: int) -> None:
    if videos < 1:
        raise ValueError(f"videos must be 1 or more, got {videos}")
    if not 0 <= anomalies <= videos:
        raise ValueError(f"anomalies must be between 0 and videos ({videos}), got {anomalies}")
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be 1 or more, or None for one per core, got {jobs}")
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed}")


def _describe_video(directory: Path, index: int, truth: Truth) -> SynthVideo:
    anomaly = truth["anomaly"]
    return SynthVideo(
        name=_video_name(index),
        path=directory / f"{_video_name(index)}.mp4",
        seed=truth["seed"],
        events=truth["events"],
        anomaly=anomaly and anomaly["kind"],
        anomaly_range=anomaly and (anomaly["start"], anomaly["end"] - 1),
        num_frames=truth["num_frames"],
        fps=FPS,
    )


def _write_tables(folder: Path, written: list[SynthVideo]) -> None:
    """Write labels.csv, and anomalies.csv if there are any."""
    labels = [
        {"video": video.name, "event": event, "frame": frame}
        for video in written
        for event, frame in video.events.items()
    ]
    write_table(folder / "labels.csv", labels)
    anomalies = [
        {"video": video.name, "anomaly": video.anomaly, "start_frame": start, "end_frame": end}
        for video in written
        for start, end in filter(None, [video.anomaly_range])
    ]
    if anomalies:
        write_table(folder / "anomalies.csv", anomalies)


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
    """Render and write one video, and return its ground truth."""
    take = plan_take(job.seed, level=job.level, fps=job.fps, anomaly=job.anomaly)
    frames = render_frames(take, size=job.size)
    write_video(job.path, frames, fps=job.fps, audio=render_audio(take), repeatable=True)
    return take.truth()


def run_jobs(jobs: Sequence[Job], *, workers: int, progress: Counter = ignore) -> list[Truth]:
    """Run all jobs and return the ground truths in the same order; the first error stops all."""
    if workers == 1:
        truths = []
        for job in jobs:
            truths.append(run_job(job))
            progress(len(truths), len(jobs))
        return truths
    with _start_workers(workers) as processes, ThreadPoolExecutor(workers) as threads:
        idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        for process in processes:
            idle.put(process)
        futures = [threads.submit(_run_in_worker, job, idle) for job in jobs]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                progress(done, len(jobs))
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.kill()  # ends the threads that wait for an answer
            raise
        return [future.result() for future in futures]


@contextmanager
def _start_workers(count: int) -> "Iterator[list[subprocess.Popen[str]]]":
    """Start worker processes; they always end with the `with` block."""
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # the workers are the parallelism
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", "from cycleback.synth.dataset import serve_jobs; serve_jobs()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=os.environ | one_thread | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        for _ in range(count)
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]  # both are pipes


def _run_in_worker(job: Job, idle: "SimpleQueue[subprocess.Popen[str]]") -> Truth:
    process = idle.get()
    answer = _exchange(process, asdict(job))
    idle.put(process)
    if "error" in answer:
        raise VideoError(f"could not write {job.path}: {answer['error']}")
    return answer


def _exchange(process: "subprocess.Popen[str]", message: dict[str, Any]) -> Truth:
    """Send one line and read one line."""
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


def serve_jobs() -> None:
    """Answer every line of standard input until it ends; runs in the worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the caller, which ends the workers
    answers = sys.stdout
    sys.stdout = sys.stderr  # nothing but answers may reach the pipe
    for line in sys.stdin:
        try:
            answer = run_job(Job(**json.loads(line)))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
