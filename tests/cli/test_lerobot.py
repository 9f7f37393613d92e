"""LeRobot data sets in place of folders of videos, from `embed` to frame signals."""

import json
from pathlib import Path

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet
from cycleback.video import probe
from lerobot_folders import write_lerobot

LENGTHS = (20, 22, 24)
parquet = pytest.importorskip("pyarrow.parquet")


def draw_push(length: int) -> np.ndarray:
    """A square that crosses the picture."""
    images = np.full((length, 64, 64, 3), 60, dtype=np.uint8)
    for image, left in zip(images, np.linspace(0, 48, length).astype(int), strict=True):
        image[24:40, left : left + 16] = 230
    return images


@pytest.fixture(scope="module")
def episodes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One data set with a file per episode, and the same with packed files."""
    frames = {e: draw_push(length) for e, length in enumerate(LENGTHS)}
    states = {e: np.linspace(0, 1, length)[:, None].astype(np.float32) for e, length in enumerate(LENGTHS)}
    folder = tmp_path_factory.mktemp("lerobot")
    facts = {"frames": frames, "states": states}
    return {v: write_lerobot(folder / v, LENGTHS, version=v, **facts) for v in ("v2.1", "v3.0")}


def test_a_data_set_is_embedded_aligned_and_played(
    command, episodes, run_folder: Path, tmp_path: Path
) -> None:
    root, run = episodes["v2.1"], ("--run", run_folder)
    assert command("embed", root, *run, "-o", tmp_path / "set").code == 0
    assert EmbeddingSet.load(tmp_path / "set").names == tuple(f"episode_{e:06d}" for e in range(3))
    table = json.loads(command("align", root, *run, "--json").out)
    assert table["videos"] == [f"episode_{e:06d}" for e in range(3)]
    result = command("sync", root, *run, "-o", tmp_path / "x.mp4")
    assert result.code == 0 and probe(tmp_path / "x.mp4").num_frames == LENGTHS[0]


def test_progress_is_written_as_frame_signals(command, episodes, run_folder: Path, tmp_path: Path) -> None:
    root, out = episodes["v2.1"], tmp_path / "progress.parquet"
    words = ("--run", run_folder, "--reference", "episode_000000", "-o", tmp_path / "p.csv")
    result = command("progress", root, *words, "--frame-signals", out)
    assert result.code == 0 and f"frame signals in {out}" in result.out
    table = parquet.read_table(out).to_pydict()
    assert table["index"] == list(range(sum(LENGTHS)))
    assert table["episode_index"] == [e for e, length in enumerate(LENGTHS) for _ in range(length)]
    again = command("progress", root, *words, "--overwrite", "--frame-signals", out)
    assert again.code == 0
    refused = command("progress", root, *words[:-2], "-o", tmp_path / "q.csv", "--frame-signals", out)
    assert refused.code == 2 and "exists" in refused.err and not (tmp_path / "q.csv").exists()
    clip = next(root.rglob("*.mp4"))
    single = command("progress", clip, *words, "--overwrite", "--frame-signals", tmp_path / "y.parquet")
    assert single.code == 2 and "--frame-signals needs a LeRobot data set: name its folder" in single.err


def test_packed_episodes_and_states_are_unpacked_and_trained_on(command, episodes, tmp_path: Path) -> None:
    root = episodes["v3.0"]
    refused = command("embed", root, "-o", tmp_path / "set")
    assert refused.code == 2 and f"cycleback data prepare lerobot {root} FOLDER" in refused.err
    assert command("data", "prepare", "lerobot", root, tmp_path / "plain").code == 0
    assert probe(tmp_path / "plain" / "episode_000002.mp4").num_frames == LENGTHS[2]
    states = tmp_path / "states"
    assert command("data", "prepare", "lerobot", root, states, "states=observation.state").code == 0
    quick = ("optimizer.num_updates=2", "optimizer.batch_size=2", "run.log_every=1")
    result = command("train", states, "-o", tmp_path / "run", "--recipe", "poses", *quick)
    assert result.code == 0, result.err
    out = tmp_path / "progress.parquet"
    words = ("--run", tmp_path / "run", "--reference", "episode_000000", "-o", tmp_path / "p.csv")
    assert command("progress", states, *words, "--frame-signals", out).code == 0
    assert parquet.read_table(out).num_rows == sum(LENGTHS)
