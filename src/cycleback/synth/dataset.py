"""A folder of pouring videos with labels and truth: what `cycleback synth` writes."""

import csv
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cycleback.errors import DataError, OutputExistsError
from cycleback.synth.mishaps import ANOMALIES
from cycleback.synth.pouring import check_settings, check_size
from cycleback.synth.worker import Job, run_jobs

FPS = 30.0
TRUTH_FORMAT = 1


@dataclass(frozen=True)
class SynthVideo:
    """One written video; `path` is where it lies when the whole set is written."""

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
    progress: Callable[[int, int], None] | None = None,
    overwrite: bool = False,
) -> list[SynthVideo]:
    """Write `videos` pouring videos with sound, `labels.csv`, `truth.json` and, where asked, `anomalies.csv`.

    Video k depends on (seed, k, level, size) only: not on how many there are, nor on `jobs`. The folder
    appears when it is whole.

    Args:
        directory: Folder to write; it may exist when it is empty.
        videos: How many, at least 1.
        seed: Another seed gives another set.
        level: "easy" or "hard".
        size: Side of a frame in pixels, even, at least 48.
        anomalies: How many of the videos, the last ones, go wrong: each kind in turn.
        jobs: Processes; None for one a core.
        progress: Called with (videos done, videos in all) after each video.
        overwrite: Replace a folder that is not empty.
    """
    _check_counts(videos=videos, anomalies=anomalies, jobs=jobs, seed=seed)
    check_settings(level=level, fps=FPS, anomaly=None)
    check_size(size)
    target = Path(directory)
    with _new_folder(target, overwrite=overwrite) as folder:
        work = [
            Job(
                path=str(folder / f"{video_name(index)}.mp4"),
                seed=video_seed(seed, index),
                level=level,
                size=size,
                fps=FPS,
                anomaly=_anomaly(index, videos=videos, anomalies=anomalies),
            )
            for index in range(videos)
        ]
        truths = run_jobs(work, workers=min(jobs or os.cpu_count() or 1, videos), progress=progress)
        written = [_synth_video(target, index, truth) for index, truth in enumerate(truths)]
        settings = {"format": TRUTH_FORMAT, "seed": seed, "level": level, "size": size, "fps": FPS}
        _write_truth(folder, settings, written, truths)
        _write_labels(folder, written)
        if anomalies:
            _write_anomalies(folder, written)
    return written


def video_name(index: int) -> str:
    """Name of a video, without suffix: pouring_000."""
    return f"pouring_{index:03d}"


def video_seed(seed: int, index: int) -> int:
    """The seed of video `index` of the set `seed`; independent for every pair."""
    return int(np.random.SeedSequence((seed, index)).generate_state(1, np.uint64)[0])


def _anomaly(index: int, *, videos: int, anomalies: int) -> str | None:
    """What goes wrong in video `index`: the last `anomalies` videos take the kinds in turn."""
    number = index - (videos - anomalies)
    return ANOMALIES[number % len(ANOMALIES)] if number >= 0 else None


def _check_counts(*, videos: int, anomalies: int, jobs: int | None, seed: int) -> None:
    if videos < 1:
        raise ValueError(f"videos must be 1 or more, got {videos}")
    if not 0 <= anomalies <= videos:
        raise ValueError(f"anomalies must be between 0 and videos ({videos}), got {anomalies}")
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be 1 or more, or None for one a core, got {jobs}")
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed}")


@contextmanager
def _new_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """A folder beside `target` that takes its place when all went well, and vanishes when not."""
    if target.exists() and not target.is_dir():
        raise DataError(f"{target} is a file; give a folder to write the videos into")
    if target.is_dir() and any(target.iterdir()) and not overwrite:
        raise OutputExistsError(f"{target} is not empty. Add --overwrite, or give another folder.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    except OSError as error:
        raise DataError(f"cannot make {target}: {error.strerror}. Give another folder.") from error
    try:
        yield partial
        partial.chmod(0o755)  # mkdtemp makes it private
        _replace(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _replace(partial: Path, target: Path) -> None:
    """Put `partial` in the place of `target`; an old folder is moved aside first and removed last."""
    if not target.exists():
        partial.rename(target)
        return
    old = partial.with_suffix(".old")
    target.rename(old)
    partial.rename(target)
    shutil.rmtree(old)


def _synth_video(directory: Path, index: int, truth: dict[str, Any]) -> SynthVideo:
    anomaly = truth["anomaly"]
    return SynthVideo(
        name=video_name(index),
        path=directory / f"{video_name(index)}.mp4",
        seed=truth["seed"],
        events=truth["events"],
        anomaly=anomaly and anomaly["kind"],
        anomaly_range=anomaly and (anomaly["start"], anomaly["end"] - 1),
        num_frames=truth["num_frames"],
        fps=FPS,
    )


def _write_truth(
    folder: Path, settings: dict[str, Any], written: list[SynthVideo], truths: list[dict[str, Any]]
) -> None:
    by_name = {video.name: truth for video, truth in zip(written, truths, strict=True)}
    text = json.dumps(settings | {"videos": by_name}, indent=None, separators=(",", ":"), allow_nan=False)
    (folder / "truth.json").write_text(text + "\n", encoding="utf-8")


def _write_labels(folder: Path, written: list[SynthVideo]) -> None:
    rows = [(video.name, event, frame) for video in written for event, frame in video.events.items()]
    _write_csv(folder / "labels.csv", ("video", "event", "frame"), rows)


def _write_anomalies(folder: Path, written: list[SynthVideo]) -> None:
    rows = [(v.name, v.anomaly, *v.anomaly_range) for v in written if v.anomaly_range is not None]
    _write_csv(folder / "anomalies.csv", ("video", "anomaly", "start_frame", "end_frame"), rows)


def _write_csv(path: Path, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
