"""Write LeRobot data sets of numbered frames, laid out as versions 2.1 and 3.0 of the format are."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coded_clips import draw_number
from cycleback.video import write_video

FPS = 10
CAMERA = "observation.images.top"


def state_of(episode: int, frame: int) -> list[float]:
    """The state that the test data sets record: it tells episode and frame."""
    return [float(episode), frame / 8]


def write_lerobot(
    root: Path,
    lengths: Sequence[int],
    *,
    version: str = "v2.1",
    tasks: Sequence[str] = ("pick up",),
    frames: Mapping[int, NDArray[np.uint8]] | None = None,
    states: Mapping[int, NDArray[np.float32]] | None = None,
    fps: float = FPS,
) -> Path:
    """Write episodes of these lengths; frame f of episode e shows the number 100 e + f.

    Args:
        frames: the pictures (T, H, W, 3) of each episode instead of numbers.
        states: the states (T, S) of each episode.
    """
    pictures = frames or {
        e: np.stack([draw_number(100 * e + f) for f in range(length)]) for e, length in enumerate(lengths)
    }
    values = states or {
        e: np.array([state_of(e, f) for f in range(length)], np.float32) for e, length in enumerate(lengths)
    }
    is_v3 = version == "v3.0"
    place = "chunk-{chunk_index:03d}/file-{file_index:03d}"
    own = "chunk-{episode_chunk:03d}", "episode_{episode_index:06d}"
    info = {
        "codebase_version": version,
        "robot_type": "kinova",
        "total_episodes": len(lengths),
        "total_frames": sum(lengths),
        "chunks_size": 1000,
        "fps": fps,
        "splits": {"train": f"0:{len(lengths) - 1}", "val": f"{len(lengths) - 1}:{len(lengths)}"},
        "data_path": f"data/{place}.parquet" if is_v3 else "data/{}/{}.parquet".format(*own),
        "video_path": f"videos/{{video_key}}/{place}.mp4"
        if is_v3
        else "videos/{}/{{video_key}}/{}.mp4".format(*own),
        "features": {
            "observation.state": {"dtype": "float32", "shape": [values[0].shape[1]], "names": None},
            CAMERA: {"dtype": "video", "shape": list(pictures[0].shape[1:]), "names": None},
            **{n: {"dtype": "int64", "shape": [1], "names": None} for n in ("index", "episode_index")},
        },
    }
    (root / "meta").mkdir(parents=True)
    (root / "meta" / "info.json").write_text(json.dumps(info))
    rows = [
        {"index": sum(lengths[:e]) + f, "episode_index": e, "frame_index": f, "timestamp": f / fps,
         "observation.state": values[e][f].tolist()}
        for e, length in enumerate(lengths) for f in range(length)
    ]  # fmt: skip
    (_write_v3 if is_v3 else _write_v2)(root, lengths, rows, pictures, tasks=tasks, fps=fps)
    return root


def _write_v2(root, lengths, rows, pictures, *, tasks, fps) -> None:
    entries = []
    for episode, length in enumerate(lengths):
        entries.append({"episode_index": episode, "tasks": [tasks[episode % len(tasks)]], "length": length})
        _write_table(
            root / f"data/chunk-000/episode_{episode:06d}.parquet",
            [row for row in rows if row["episode_index"] == episode],
        )
        path = root / f"videos/chunk-000/{CAMERA}/episode_{episode:06d}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_video(path, pictures[episode], fps=fps)
    (root / "meta" / "episodes.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def _write_v3(root, lengths, rows, pictures, *, tasks, fps) -> None:
    """Pack the first two episodes into one file, and each other one into its own."""
    files = [0 if episode < 2 else episode - 1 for episode in range(len(lengths))]
    entries, starts = [], [0] * (max(files) + 1)
    for episode, (length, file) in enumerate(zip(lengths, files, strict=True)):
        first = sum(lengths[:episode])
        entries.append(
            {
                "episode_index": episode,
                "tasks": [tasks[episode % len(tasks)]],
                "length": length,
                "dataset_from_index": first,
                "dataset_to_index": first + length,
                "data/chunk_index": 0,
                "data/file_index": file,
                f"videos/{CAMERA}/chunk_index": 0,
                f"videos/{CAMERA}/file_index": file,
                f"videos/{CAMERA}/from_timestamp": starts[file] / fps,
                f"videos/{CAMERA}/to_timestamp": (starts[file] + length) / fps,
            }
        )
        starts[file] += length
    _write_table(root / "meta/episodes/chunk-000/file-000.parquet", entries)
    for file in range(len(starts)):
        inside = [episode for episode in range(len(lengths)) if files[episode] == file]
        name = f"chunk-000/file-{file:03d}"
        _write_table(root / f"data/{name}.parquet", [row for row in rows if row["episode_index"] in inside])
        path = root / f"videos/{CAMERA}/{name}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_video(path, (frame for episode in inside for frame in pictures[episode]), fps=fps)


def _write_table(path: Path, rows: list[dict[str, object]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(rows), path)
