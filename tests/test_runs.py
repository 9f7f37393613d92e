"""From rendered videos to aligned ones, through the Python API."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import cycleback
from cycleback.alignment import cycle_consistency_rate
from cycleback.data import FrameCache, VideoRecord, read_dataset
from cycleback.embeddings.poses import PoseCache
from cycleback.errors import CheckpointError, ConfigError, DataError, TrainingError, UserError
from cycleback.models import FusedBase, fingerprint
from cycleback.models.pooling_embedders import PooledEmbedder
from cycleback.models.streams import MOTION_SIZE, POSE_SIZE, SCALES
from cycleback.progress import Counter, ignore
from cycleback.recipe import Recipe, build_encoder, load_recipe, recipe_toml
from cycleback.recipe.sections import ConvSettings, DataSettings, EncoderSettings, LossSettings, MLPSettings
from cycleback.runs import choose_device, learn, run_split, select_part
from cycleback.runs.folder import build_pretrained
from cycleback.synth import write_dataset
from cycleback.training import read_log
from cycleback.training.held_out import SELECTED_FILE, embed_video
from cycleback.training.settings import OptimizerSettings, RunSettings
from cycleback.training.videos import load_sides, load_videos

SCRATCH = Recipe(
    data=DataSettings(frame_size=48, frames_per_video=12),
    encoder=EncoderSettings(
        streams=("appearance",),
        base="small",
        embedder="conv",
        train_base="all",
        conv=ConvSettings(reduce_channels=0, conv_channels=(16,), fc_channels=(16,)),
    ),
    optimizer=OptimizerSettings(num_updates=3, batch_size=2),
    run=RunSettings(log_every=1),
    loss=LossSettings(weights={"tcc": 1.0, "tcn": 1.0}),
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
    recipe = Recipe(
        data=DataSettings(frame_size=64),
        encoder=EncoderSettings(streams=("appearance", "motion")),  # these videos show no person
        optimizer=OptimizerSettings(num_updates=120),
    )
    state = cycleback.train(videos, tmp_path / "run", recipe=recipe, cache=cache)
    assert state.step == 120
    held_out = select_part(videos, tmp_path / "run", "held_out")
    trained = cycleback.embed_videos(tmp_path / "run", held_out, cache=cache)
    torch.manual_seed(0)
    untrained = cycleback.embed_videos(build_encoder(recipe), held_out, cache=cache)
    assert (
        cycleback.evaluate(None, trained).event_error_frames
        < cycleback.evaluate(None, untrained).event_error_frames
    )
    log = read_log(tmp_path / "run")
    assert np.mean([record["cycle_rate"] for record in log[-3:]]) > np.mean(
        [record["cycle_rate"] for record in log[:3]]
    )


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every video show a person whose joints circle, without the network that finds them."""

    def load(cache: PoseCache, record: VideoRecord, *, progress: Counter = ignore) -> np.ndarray:
        angles = np.arange(cache.frames.load(record).num_frames)[:, None] / 8 + np.arange(17)
        return np.stack([np.cos(angles), np.sin(angles), np.full_like(angles, 0.9)], axis=2, dtype=np.float32)

    monkeypatch.setattr(PoseCache, "load", load)


@pytest.mark.usefixtures("person")
def test_all_streams_are_trained_on_saved_and_embedded_alike(
    videos: Path, cache: Path, tmp_path: Path
) -> None:
    quick = ["data.frame_size=64", "optimizer.num_updates=2", "optimizer.batch_size=2"]
    cycleback.train(videos, tmp_path / "run", recipe=load_recipe(None, quick), cache=cache)
    encoder = cycleback.load_encoder(tmp_path / "run")
    assert isinstance(encoder.base, FusedBase)
    embeddings = cycleback.embed_videos(tmp_path / "run", videos, cache=cache)
    assert embeddings.streams == pytest.approx(SCALES) and embeddings.encoder == fingerprint(encoder)
    embeddings.save(tmp_path / "set")
    assert cycleback.EmbeddingSet.load(tmp_path / "set").streams == embeddings.streams
    records = read_dataset(videos).records[:2]
    frames = FrameCache(cache, size=(64, 64))
    for record, video in zip(
        records, load_videos(encoder, records, frames=frames, device=encoder.device), strict=True
    ):
        assert video.shape[1:] == (encoder.base.channels, 1, 1) and video.dtype == torch.float32
        assert (video.flatten(1).split(list(encoder.base.sizes.values()), dim=1)[2] != 0).any()
        np.testing.assert_allclose(embed_video(encoder, video), embeddings[record.name], atol=1e-5)


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize("embedder", ["mlp", "gru"])
def test_a_base_is_trained_together_with_the_other_streams(
    videos: Path, cache: Path, tmp_path: Path, embedder: str
) -> None:
    section = EncoderSettings(base="small", embedder=embedder, train_base="all")
    recipe = replace(SCRATCH, encoder=section, run=RunSettings(select_every=2))
    recipe = replace(recipe, data=replace(recipe.data, held_out=0.4))
    before = build_encoder(recipe).base.state_dict()
    cycleback.train(videos, tmp_path / "run", recipe=recipe, cache=cache)
    encoder = cycleback.load_encoder(tmp_path / "run")
    after = encoder.base.state_dict()
    assert not torch.equal(after["norm.running_mean"], before["norm.running_mean"])
    embeddings = cycleback.embed_videos(encoder, videos, cache=cache)
    records, frames = read_dataset(videos).records[:2], FrameCache(cache, size=(48, 48))
    loaded = {"frames": frames, "device": encoder.device}
    sides = load_sides(encoder, records, **loaded)
    assert sides is not None
    for record, video, side in zip(records, load_videos(encoder, records, **loaded), sides, strict=True):
        assert video.dtype == torch.uint8 and side.shape == (len(video), MOTION_SIZE + POSE_SIZE)
        np.testing.assert_allclose(embed_video(encoder, video, side), embeddings[record.name], atol=1e-4)
        still = embed_video(encoder, video, torch.zeros_like(side))
        assert np.abs(still - embeddings[record.name]).max() > 1e-3


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.usefixtures("person")
def test_a_cuda_graph_sees_the_other_streams_of_each_batch(videos: Path, cache: Path, tmp_path: Path) -> None:
    section = EncoderSettings(base="small", train_base="all", embedder="mlp", mlp=MLPSettings(dropout=0.0))
    logs = []
    for cuda_graph in (False, True):
        run = RunSettings(log_every=1, cuda_graph=cuda_graph)
        optimizer = OptimizerSettings(num_updates=8, batch_size=2)
        recipe = replace(SCRATCH, encoder=section, optimizer=optimizer, run=run)
        where = tmp_path / str(cuda_graph)
        cycleback.train(videos, where, recipe=recipe, cache=cache, device="cuda")
        logs.append([record["loss"] for record in read_log(where)])
    assert logs[0] == pytest.approx(logs[1], rel=1e-2, abs=1e-3)


@pytest.mark.usefixtures("person")
def test_untrained_streams_are_weighed_for_the_videos_unless_weights_are_given(
    videos: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, encoder = [videos / "pouring_000.mp4", videos / "pouring_001.mp4"], cycleback.load_encoder()
    first = fingerprint(encoder)
    assert cycleback.embed_videos(encoder, files, cache=cache).encoder == first
    person = PoseCache.load
    monkeypatch.setattr(PoseCache, "load", lambda *args, **options: 0 * person(*args, **options))
    chosen = cycleback.embed_videos(encoder, files, cache=cache)
    assert chosen.streams == pytest.approx({**SCALES, "pose": 0.0}) and chosen.encoder != first
    assert fingerprint(encoder) == first  # the caller's encoder stays as it is
    again = cycleback.embed_videos(encoder, files[:1], cache=cache, streams=chosen.streams)
    assert again.encoder == chosen.encoder
    np.testing.assert_array_equal(again["pouring_000"], chosen["pouring_000"])


def test_a_run_from_before_there_were_streams_is_loaded_as_it_was(
    videos: Path, cache: Path, tmp_path: Path
) -> None:
    cycleback.train(videos, tmp_path / "run", recipe=SCRATCH, cache=cache)
    before, path = fingerprint(cycleback.load_encoder(tmp_path / "run")), tmp_path / "run" / "recipe.toml"
    saved = path.read_text()
    assert 'streams = ["appearance"]\n' in saved
    path.write_text(saved.replace('streams = ["appearance"]\n', ""))
    assert fingerprint(cycleback.load_encoder(tmp_path / "run")) == before


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


def test_the_weights_with_the_best_held_out_rate_are_kept(videos: Path, cache: Path, tmp_path: Path) -> None:
    run, recipe = (
        tmp_path / "run",
        replace(SCRATCH, run=RunSettings(log_every=1, select_every=1, ema_decay=0.5)),
    )
    state = cycleback.train(videos, run, recipe=recipe, cache=cache)
    looks = {r["step"]: r["held_out_cycle_rate"] for r in read_log(run) if "held_out_cycle_rate" in r}
    assert list(looks) == [1, 2, 3]
    assert state.selected.held_out_cycle_rate == max(looks.values()) == looks[state.selected.step]
    assert json.loads((run / SELECTED_FILE).read_text())["step"] == state.selected.step
    held_out = cycleback.embed_videos(run, select_part(videos, run, "held_out"), cache=cache)
    rate = cycle_consistency_rate([held_out[name] for name in held_out.names])
    assert rate == pytest.approx(max(looks.values()), abs=0.02)


def test_selecting_without_held_out_videos_leaves_nothing_behind(
    videos: Path, cache: Path, tmp_path: Path
) -> None:
    recipe = replace(SCRATCH, data=DataSettings(held_out=0.0), run=RunSettings(select_every=1))
    with pytest.raises(TrainingError, match="at least 2 held-out videos of one action, got 0"):
        cycleback.train(videos, tmp_path / "run", recipe=recipe, cache=cache)
    assert not (tmp_path / "run").exists()


def test_all_losses_train_together_on_labelled_videos(videos: Path, cache: Path, tmp_path: Path) -> None:
    weights = {"tcc": 1.0, "stochastic_tcc": 0.5, "tcn": 1.0, "sal": 1.0, "supervised": 1.0}
    optimizer = OptimizerSettings(num_updates=2, batch_size=3, accumulate=2, schedule="step")
    recipe = replace(SCRATCH, loss=LossSettings(weights=weights), optimizer=optimizer)
    cycleback.train(videos, tmp_path / "run", recipe=recipe, cache=cache)
    assert {f"loss/{name}" for name in weights} <= read_log(tmp_path / "run")[0].keys()


def test_one_action_of_several_is_trained_on(videos: Path, cache: Path, tmp_path: Path) -> None:
    for number in range(6):
        folder = tmp_path / "videos" / ("pour" if number < 4 else "bowl")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"v{number}.mp4").symlink_to(videos / f"pouring_{number:03d}.mp4")
    recipe = replace(SCRATCH, data=replace(SCRATCH.data, action="pour"))
    cycleback.train(tmp_path / "videos", tmp_path / "run", recipe=recipe, cache=cache)
    names = run_split(tmp_path / "run")
    assert sorted(names["train"] + names["held_out"]) == [f"pour/v{number}" for number in range(4)]
    unknown = replace(SCRATCH, data=replace(SCRATCH.data, action="jump"))
    with pytest.raises(DataError, match=r"no video of data\.action 'jump' \(actions: bowl, pour\)"):
        cycleback.train(tmp_path / "videos", tmp_path / "other", recipe=unknown, cache=cache)


def test_sequences_of_vectors_are_trained_on(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "poses").mkdir()
    for number in range(5):
        walk = np.random.default_rng(number).normal(size=(30, 6)).cumsum(axis=0)
        np.savez(tmp_path / "poses" / f"p{number}.npz", features=walk)
    encoder = EncoderSettings(
        base="vector", embedder="mlp", mlp=MLPSettings(fc_channels=(8,), embedding_size=4)
    )
    data = DataSettings(frames_per_video=8, held_out=0.4)
    recipe = replace(SCRATCH, data=data, encoder=encoder, run=RunSettings(select_every=2))
    state = cycleback.train(tmp_path / "poses", tmp_path / "run", recipe=recipe, cache=cache)
    assert state.selected is not None
    assert cycleback.load_encoder(tmp_path / "run").base.in_features == 6


def test_torchrun_trains_with_two_processes(videos: Path, cache: Path, tmp_path: Path) -> None:
    script = tmp_path / "two.py"
    script.write_text(
        "import sys, cycleback\n"
        "from cycleback.recipe import load_recipe\n"
        "cycleback.train(sys.argv[1], sys.argv[2], recipe=load_recipe(sys.argv[3]), cache=sys.argv[4])\n"
    )
    (tmp_path / "recipe.toml").write_text(recipe_toml(replace(SCRATCH, run=RunSettings(select_every=2))))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = [videos, tmp_path / "run", tmp_path / "recipe.toml", cache]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*launch, script, *map(str, words)], check=True, env=environment, capture_output=True)
    assert cycleback.load_encoder(tmp_path / "run").frame_size == (48, 48)
    assert {"selected.json", "state.pt", "log.jsonl"} <= {path.name for path in (tmp_path / "run").iterdir()}


def test_a_video_that_vanishes_before_it_is_decoded_is_named(videos: Path, tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    for number in range(4):
        (folder / f"v{number}.mp4").write_bytes((videos / f"pouring_{number:03d}.mp4").read_bytes())
    dataset = cycleback.read_dataset(folder)
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(UserError, match=r"v\d\.mp4"):
        cycleback.train(dataset, tmp_path / "run", recipe=SCRATCH, cache=tmp_path / "cache")


def test_broken_videos_leave_no_run_behind(videos: Path, tmp_path: Path) -> None:
    folder, run = tmp_path / "videos", tmp_path / "run"
    shutil.copytree(videos, folder)
    for path in folder.glob("*.mp4"):
        path.write_bytes(b"no video")
    with pytest.raises(UserError, match=r"pouring_\d+\.mp4"):
        cycleback.train(folder, run, recipe=SCRATCH, cache=tmp_path / "cache")
    assert not run.exists()
    shutil.copytree(videos, folder, dirs_exist_ok=True)
    assert cycleback.train(folder, run, recipe=SCRATCH, cache=tmp_path / "cache").step == 3


def test_a_run_killed_while_it_began_is_gone_on_with(videos: Path, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.toml").write_text(recipe_toml(SCRATCH))
    assert cycleback.train(videos, tmp_path / "run", resume=True, cache=cache).step == 3


def test_a_full_disk_at_the_start_is_one_sentence(
    videos: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*words: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(UserError, match=r"cannot write .*run.recipe\.toml: No space left on device"):
        cycleback.train(videos, tmp_path / "run", recipe=SCRATCH, cache=cache)
    assert not (tmp_path / "run").exists()


def test_a_resumed_run_takes_no_recipe(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"keeps the settings in .*recipe\.toml: pass no recipe"):
        cycleback.train(tmp_path, tmp_path / "run", recipe=SCRATCH, resume=True)


@pytest.fixture
def sequences(tmp_path: Path) -> Path:
    """Six sequences of a point on a circle, each at its own pace."""
    folder = tmp_path / "sequences"
    folder.mkdir()
    generator = np.random.default_rng(0)
    for number in range(6):
        angle = np.sort(generator.uniform(0, 3, 40 + 5 * number))
        points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        np.savez(folder / f"s{number}.npz", features=points.astype(np.float32), fps=20.0)
    return folder


def test_sequences_of_vectors_are_trained_on_embedded_and_aligned(sequences: Path, tmp_path: Path) -> None:
    recipe = load_recipe("poses", ["optimizer.num_updates=5", "run.log_every=1"])
    cycleback.train(sequences, tmp_path / "run", recipe=recipe)
    embeddings = cycleback.embed_videos(tmp_path / "run", sequences)
    assert [len(embeddings[name]) for name in embeddings.names] == [40, 45, 50, 55, 60, 65]
    assert embeddings.times("s0")[20] == pytest.approx(1.0)
    assert len(cycleback.align(embeddings["s0"], embeddings["s5"]).indices) == 40


@pytest.mark.parametrize(
    ("shares", "setting", "weight"),
    [
        ([0.4, 0.1], "loss.weights.order=0.3", 0.3),  # the second training is better
        ([0.4, 0.5], "loss.weights.order=0.3", None),  # it is worse, and the first is kept
        ([0.05], None, None),  # few enough: nothing is trained again
    ],
)
def test_a_training_that_runs_backwards_is_made_again_once(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares, setting, weight
) -> None:
    measured = list(shares)
    monkeypatch.setattr(learn, "backward_share", lambda embeddings: measured.pop(0))
    recipe = load_recipe("poses", ["optimizer.num_updates=5", "run.log_every=1"])
    state = cycleback.train(sequences, tmp_path / "run", recipe=recipe)
    assert measured == []
    assert (state.restart and state.restart.setting) == setting
    assert state.backwards == min(shares)
    saved = load_recipe(tmp_path / "run" / "recipe.toml")
    assert saved.loss.weights.get("order") == weight
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {"recipe.toml", "videos.json", "encoder.safetensors", "state.pt", "log.jsonl"}
    first = read_log(tmp_path / "run")[0]
    assert ("loss/order" in first) == (weight is not None)
    assert cycleback.embed_videos(tmp_path / "run", sequences).names == ("s0", "s1", "s2", "s3", "s4", "s5")


def test_another_start_is_tried_where_the_order_is_learned_already(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = [0.4, 0.2]
    monkeypatch.setattr(learn, "backward_share", lambda embeddings: measured.pop(0))
    settings = ["optimizer.num_updates=3", "loss.weights.order=0.3"]
    state = cycleback.train(sequences, tmp_path / "run", recipe=load_recipe("poses", settings))
    assert state.restart is not None and state.restart.setting == "run.seed=1"
    videos = json.loads((tmp_path / "run" / "videos.json").read_text())
    assert len(videos["train"]) + len(videos["held_out"]) == 6
    measured[:] = [0.4]
    state = cycleback.train(
        sequences, tmp_path / "other", recipe=load_recipe("poses", [*settings, "run.restart=false"])
    )
    assert state.restart is None and state.backwards == 0.4


def test_an_encoder_of_pictures_refuses_sequences(sequences: Path) -> None:
    with pytest.raises(DataError, match=r"s0: this encoder was made for videos, not for sequences \(\.npz\)"):
        cycleback.embed_videos("pretrained", sequences)


def test_a_recurrent_embedder_trains_with_positives_and_is_flagged(
    videos: Path, cache: Path, tmp_path: Path
) -> None:
    overrides = [
        "encoder.embedder=gru",
        "encoder.gru.conv_channels=[8]",
        "optimizer.num_updates=2",
        "data.frame_size=64",
    ]
    cycleback.train(videos, tmp_path / "run", recipe=load_recipe("fast", overrides), cache=cache)
    embeddings = cycleback.embed_videos(tmp_path / "run", [videos / "pouring_000.mp4"], cache=cache)
    embeddings.save(tmp_path / "set")
    assert cycleback.EmbeddingSet.load(tmp_path / "set").can_count_frames
    assert cycleback.evaluate(None, embeddings).can_count_frames


def test_a_run_may_begin_with_the_encoder_of_another(videos: Path, cache: Path, tmp_path: Path) -> None:
    first = replace(SCRATCH, optimizer=replace(SCRATCH.optimizer, learning_rate=1e-2))
    cycleback.train(videos, tmp_path / "first", recipe=first, cache=cache)
    start = replace(SCRATCH.run, start_from=str(tmp_path / "first"), seed=1)
    still = replace(SCRATCH.optimizer, learning_rate=0.0, weight_decay=0.0, num_updates=1)
    second = replace(SCRATCH, run=start, optimizer=still)
    cycleback.train(videos, tmp_path / "second", recipe=second, cache=cache)
    before, after = (cycleback.load_encoder(tmp_path / name) for name in ("first", "second"))
    assert all(map(torch.equal, before.parameters(), after.parameters()))


def test_a_run_to_begin_with_that_is_not_there_leaves_no_folder(
    videos: Path, cache: Path, tmp_path: Path
) -> None:
    nowhere = replace(SCRATCH, run=replace(SCRATCH.run, start_from=str(tmp_path / "none")))
    with pytest.raises(CheckpointError, match=r"no run in .*none"):
        cycleback.train(videos, tmp_path / "run", recipe=nowhere, cache=cache)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("device", ["tpu", "cuda:99"])
def test_a_device_that_is_not_there_is_one_line(device: str) -> None:
    with pytest.raises(UserError, match=f"cannot compute on device '{device}'; expected cpu"):
        choose_device(device)
    assert choose_device("cpu").type == "cpu"


def test_untrained_streams_are_kept_where_training_does_not_help(
    videos: Path, cache: Path, tmp_path: Path
) -> None:
    mlp = MLPSettings(embedding_size=1, fc_channels=(2,))
    encoder = EncoderSettings(streams=("motion",), embedder="mlp", mlp=mlp)
    optimizer = OptimizerSettings(num_updates=1, batch_size=2)
    recipe = Recipe(encoder=encoder, optimizer=optimizer)
    state = cycleback.train(videos, tmp_path / "run", recipe=recipe, cache=cache)
    assert state.kept_untrained and state.cycle_rates is not None
    kept = cycleback.load_encoder(tmp_path / "run")
    assert isinstance(kept.embedder, PooledEmbedder) and kept.base.streams == ("motion",)
    few = sorted(videos.glob("*.mp4"))[:2]
    expected = cycleback.embed_videos(build_pretrained(("motion",)), few, cache=cache)
    found = cycleback.embed_videos(tmp_path / "run", few, cache=cache)
    for name in found.names:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)
