"""From rendered videos to aligned ones, through the Python API."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import cycleback
from cycleback.errors import CheckpointError, DataError
from cycleback.recipe import DataSection, EncoderSection, OptimizerSection, Recipe, RunSection
from cycleback.runs import run_split, select_part
from cycleback.synth import write_dataset
from cycleback.training import read_log

SCRATCH = Recipe(
    data=DataSection(frame_size=48, frames_per_video=12),
    encoder=EncoderSection(
        base="small", train_base="all", reduce_channels=0, conv_channels=(16,), fc_channels=(16,)
    ),
    optimizer=OptimizerSection(num_updates=3, batch_size=2),
    run=RunSection(log_every=1),
)


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "videos"
    write_dataset(folder, videos=10, seed=0, size=64, jobs=1)
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def test_a_base_from_scratch_trains_on_frames(videos: Path, cache: Path, tmp_path: Path) -> None:
    cycleback.train(videos, tmp_path / "run", recipe=SCRATCH, cache=cache)
    assert [record["step"] for record in read_log(tmp_path / "run")] == [1, 2, 3]
    encoder = cycleback.load_encoder(tmp_path / "run")
    assert encoder.frame_size == (48, 48)
    assert not encoder.training


@pytest.mark.slow
def test_learning_beats_the_untrained_network_on_held_out_videos(
    videos: Path, cache: Path, tmp_path: Path
) -> None:
    recipe = Recipe(data=DataSection(frame_size=64), optimizer=OptimizerSection(num_updates=120))
    state = cycleback.train(videos, tmp_path / "run", recipe=recipe, cache=cache)
    assert state.step == 120
    held_out = select_part(videos, tmp_path / "run", "held_out")
    trained = cycleback.embed_videos(tmp_path / "run", held_out, cache=cache)
    torch.manual_seed(0)
    from cycleback.recipe import build_encoder

    untrained = cycleback.embed_videos(build_encoder(recipe), held_out, cache=cache)
    assert (
        cycleback.evaluate(None, trained).event_error_frames
        < cycleback.evaluate(None, untrained).event_error_frames
    )
    log = read_log(tmp_path / "run")
    assert np.mean([record["cycle_rate"] for record in log[-3:]]) > np.mean(
        [record["cycle_rate"] for record in log[:3]]
    )


def test_the_pretrained_encoder_aligns_two_files_and_shows_them(
    videos: Path, cache: Path, tmp_path: Path
) -> None:
    files = [videos / "pouring_000.mp4", videos / "pouring_001.mp4"]
    embeddings = cycleback.embed_videos("pretrained", files, cache=cache)
    alignment = cycleback.align(embeddings["pouring_000"], embeddings["pouring_001"])
    indices = [np.arange(len(alignment.indices)), alignment.indices]
    assert cycleback.write_synced(tmp_path / "pair.mp4", files, indices).stat().st_size > 1000


def test_a_run_keeps_its_split_when_videos_are_added(videos: Path, cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    for number in range(4):
        (folder / f"v{number}.mp4").write_bytes((videos / f"pouring_{number:03d}.mp4").read_bytes())
    cycleback.train(folder, tmp_path / "run", recipe=SCRATCH, cache=cache)
    before = run_split(tmp_path / "run")
    (folder / "v9.mp4").write_bytes((videos / "pouring_009.mp4").read_bytes())
    cycleback.train(folder, tmp_path / "run", resume=True, cache=cache)
    assert run_split(tmp_path / "run") == before


def test_a_vanished_video_is_named_on_resume(videos: Path, cache: Path, tmp_path: Path) -> None:
    cycleback.train(videos, tmp_path / "run", recipe=SCRATCH, cache=cache)
    (tmp_path / "run" / "videos.json").write_text(
        json.dumps({"train": ["gone", "pouring_001"], "held_out": []})
    )
    with pytest.raises(DataError, match=r"lacks 'gone' \(1 of the 2 videos of .*run\)"):
        cycleback.train(videos, tmp_path / "run", resume=True, cache=cache)


def test_a_folder_without_a_run_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"looked for recipe\.toml"):
        cycleback.load_encoder(tmp_path)


def test_an_unknown_part_is_refused(videos: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no part 'test' of a data set: expected all, train or held_out"):
        select_part(videos, tmp_path, "test")
