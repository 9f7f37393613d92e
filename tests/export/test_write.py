"""Exported models: the graphs, what they compute, and what cannot be exported."""

import dataclasses
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from cycleback.cli.main import main
from cycleback.data import FrameCache, VideoRecord
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import CheckpointError, DataError, UserError
from cycleback.export import export_onnx
from cycleback.export.graphs import write_base, write_pose
from cycleback.exported import embed_exported, read_model
from cycleback.models import ResNet50, load_settings, save_encoder
from cycleback.models.movenet import MoveNet
from cycleback.runs import embed_videos, load_encoder
from cycleback.video import write_video

BLOCKED = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "onnx", "onnxscript", "safetensors"}:
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, Block())
from cycleback.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def check_graph(path: Path, axes: set[str]) -> None:
    """No 3-D convolution, no BatchNorm, free axes, opset for browsers."""
    graph = onnx.load(path)
    onnx.checker.check_model(graph)
    ranks = {each.name: len(each.dims) for each in graph.graph.initializer}
    convolutions = [node for node in graph.graph.node if node.op_type.startswith("Conv")]
    assert all(ranks[node.input[1]] <= 4 for node in convolutions)
    assert not [node for node in graph.graph.node if node.op_type in ("BatchNormalization", "Dropout")]
    dims = graph.graph.input[0].type.tensor_type.shape.dim
    assert {dim.dim_param for dim in dims if dim.dim_param} == axes
    assert graph.opset_import[0].version == 18


def test_graphs_have_flat_convolutions_folded_norms_and_free_axes(conv_model: Path) -> None:
    check_graph(conv_model / "base.onnx", {"frames"})
    check_graph(conv_model / "embedder.onnx", {"batch", "length"})
    kinds = {node.op_type for node in onnx.load(conv_model / "embedder.onnx").graph.node}
    assert "Conv" in kinds


def test_an_exported_model_embeds_as_the_run_does(
    conv_model: Path, conv_run: Path, clips: Path, tmp_path: Path
) -> None:
    """The plain encoder in torch is the reference: every clip of context frames by itself."""
    exported = embed_exported(conv_model, clips, cache=tmp_path)
    encoder = load_encoder(conv_run)
    frames = FrameCache(tmp_path, size=(48, 48)).load(VideoRecord("clip-1", clips / "clip-1.mp4")).frames
    for number in (0, 4, 11, 23):
        context = np.stack([frames[max(number - back, 0)] for back in (10, 5, 0)])
        with torch.no_grad():
            alone = encoder(torch.from_numpy(context).movedim(-1, 1)[None, None].float() / 255)[0, 0].numpy()
        np.testing.assert_allclose(exported["clip-1"][number], alone, rtol=1e-4, atol=1e-4 * abs(alone).max())
    run = embed_videos(conv_run, clips, cache=tmp_path / "run")
    assert exported.encoder == run.encoder and exported.names == run.names
    assert np.array_equal(exported.times("clip-2"), run.times("clip-2"))
    again = embed_videos(str(conv_model), clips, cache=tmp_path)
    assert np.array_equal(again["clip-0"], exported["clip-0"])


def test_videos_of_one_frame_and_of_many_chunks_are_embedded(
    conv_model: Path, conv_run: Path, tmp_path: Path
) -> None:
    chance = np.random.default_rng(0)
    for name, count in (("one", 1), ("many", 150)):
        write_video(
            tmp_path / f"{name}.mp4", list(chance.integers(0, 255, (count, 48, 48, 3), np.uint8)), fps=30
        )
        exported = embed_exported(conv_model, tmp_path / f"{name}.mp4", cache=tmp_path / "cache")[name]
        run = embed_videos(conv_run, tmp_path / f"{name}.mp4", cache=tmp_path / "run")[name]
        np.testing.assert_allclose(exported, run, rtol=1e-3, atol=1e-4 * abs(run).max())


def test_the_card_states_the_difference_to_torch_at_two_sizes(conv_model: Path) -> None:
    model, card = read_model(conv_model), (conv_model / "README.md").read_text()
    assert set(model.parity) == {
        "base, 2 frames",
        "base, 5 frames",
        "embedder, 1 x 11 frames",
        "embedder, 2 x 24 frames",
        "embeddings of 2 whole videos",
    }
    assert all(0 <= value < 1e-4 for name, value in model.parity.items() if "whole" not in name)
    for name, value in model.parity.items():
        assert f"| {name} | {value:.1e} |" in card
    assert all(digest in card for digest in model.files.values())


def test_a_model_of_streams_runs_without_torch(
    make_run, clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appearance and motion, an mlp over both, in a process where torch cannot be imported."""
    monkeypatch.setenv("CYCLEBACK_CACHE", str(tmp_path / "cache"))
    run = make_run(
        "data.frame_size=48",
        "encoder.streams=['appearance','motion']",
        "encoder.base=small",
        "encoder.train_base=frozen",
        "encoder.embedder=mlp",
        "encoder.mlp.fc_channels=[8]",
    )
    model, output = tmp_path / "streams.onnx", tmp_path / "set"
    assert main(["export", str(run), "--to", "onnx", "-o", str(model), "--videos", str(clips)]) == 0
    words = ["embed", str(clips), "--run", str(model), "-o", str(output), "--json"]
    done = subprocess.run([sys.executable, "-c", BLOCKED, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["videos"] == 3 and "streams: motion 1" in done.stderr
    exported, embedded = EmbeddingSet.load(output), embed_videos(run, clips)
    for name in embedded:
        rms = np.sqrt(np.mean(embedded[name] ** 2))
        assert np.abs(exported[name] - embedded[name]).max() < 5e-3 * rms
    refused = subprocess.run([sys.executable, "-c", BLOCKED, "info"], capture_output=True, text=True)
    assert "torch is not installed here" in refused.stderr  # the block works


def test_joints_are_those_of_torch(tmp_path: Path) -> None:
    write_pose(tmp_path / "pose.onnx", 192)
    check_graph(tmp_path / "pose.onnx", {"frames"})
    images = np.random.default_rng(2).integers(0, 255, (3, 192, 192, 3), np.uint8)
    session = onnxruntime.InferenceSession(tmp_path / "pose.onnx")
    for count in (1, 3):
        pixels = np.moveaxis(images[:count], -1, 1).astype(np.float32)
        found = session.run(None, {"frames": pixels})[0]
        np.testing.assert_allclose(found, MoveNet("lightning").find(images[:count]), atol=1e-4)


def test_a_resnet_is_folded_by_hand(tmp_path: Path) -> None:
    torch.manual_seed(0)
    base = ResNet50(weights=None, layer="layer2[0]").eval()
    for norm in (each for each in base.modules() if isinstance(each, torch.nn.BatchNorm2d)):
        torch.nn.init.uniform_(norm.running_mean, -1, 1)
        torch.nn.init.uniform_(norm.running_var, 0.5, 2)
    write_base(tmp_path / "base.onnx", base, (64, 64))
    check_graph(tmp_path / "base.onnx", {"frames"})
    session = onnxruntime.InferenceSession(tmp_path / "base.onnx")
    for count in (1, 4):
        images = torch.rand(count, 3, 64, 64)
        with torch.no_grad():
            want = base(images).numpy()
        given = session.run(None, {"frames": (images * 255).numpy()})[0]
        np.testing.assert_allclose(given, want, atol=1e-4 * want.std())


def test_an_export_that_differs_from_torch_is_not_kept(
    conv_model: Path, conv_run: Path, clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One weight of the run is changed by a thousandth after its networks were written."""
    run = shutil.copytree(conv_run, tmp_path / "run")
    encoder = load_encoder(run)
    next(encoder.base.parameters()).data.mul_(1.001)
    save_encoder(run, encoder, load_settings(run))
    for name in ("base", "embedder"):
        file = conv_model / f"{name}.onnx"
        monkeypatch.setattr(
            f"cycleback.export.write.write_{name}", lambda path, *_, file=file: shutil.copy(file, path)
        )
    with pytest.raises(CheckpointError, match=r"not the run: base, 2 frames differ by .*allowed 1e-04"):
        export_onnx(run, tmp_path / "wrong.onnx", videos=clips)
    assert not (tmp_path / "wrong.onnx").exists()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["encoder.base=small", "encoder.embedder=gru"], "the embedder GRUEmbedder cannot be exported"),
        (
            [
                "encoder.base=small",
                "encoder.streams=['appearance','motion']",
                "encoder.train_base=all",
                "encoder.embedder=mlp",
            ],
            "streams were joined to a trained network",
        ),
    ],
)
def test_what_cannot_be_exported_is_refused_in_one_line(
    make_run, overrides: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        export_onnx(make_run(*overrides, "data.frame_size=48"), tmp_path / "model.onnx")
    assert "\n" not in str(caught.value) and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("attention", "positions"), [("full", "none"), ("causal", "shifted"), ("full", "relative")]
)
def test_attention_sees_the_whole_video(make_run, tmp_path: Path, attention: str, positions: str) -> None:
    """A video longer than the chunk of other embedders; the other one is short."""
    chance = np.random.default_rng(4)
    for name, length in (("a", 200), ("b", 30)):
        np.savez(
            tmp_path / f"{name}.npz", features=chance.normal(size=(length, 6)).astype(np.float32), fps=25
        )
    run = make_run(
        *("encoder.base=vector", "encoder.vector.in_features=6", "encoder.embedder=transformer"),
        *(f"encoder.transformer.attention={attention}", f"encoder.transformer.positions={positions}"),
    )
    export_onnx(run, tmp_path / "v.onnx", videos=tmp_path)
    exported, embedded = embed_exported(tmp_path / "v.onnx", tmp_path), embed_videos(run, tmp_path)
    assert np.ptp(embedded["a"], axis=0).min() > 0.01
    for name in "ab":
        np.testing.assert_allclose(exported[name], embedded[name], atol=1e-4)


def test_a_video_too_long_to_be_seen_at_once_is_refused(
    make_run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cycleback.exported.networks.MAX_ATTENDED", 20)
    np.savez(tmp_path / "a.npz", features=np.ones((21, 6), np.float32), fps=25)
    run = make_run("encoder.base=vector", "encoder.vector.in_features=6", "encoder.embedder=transformer")
    with pytest.raises(DataError, match=r"has 21 frames, .* at most 20 at once"):
        export_onnx(run, tmp_path / "v.onnx", videos=tmp_path)


def test_poses_and_features_are_exported(make_run, tmp_path: Path) -> None:
    """Vectors with velocities, standardised inside the graph."""
    chance = np.random.default_rng(4)
    for name in "ab":
        np.savez(tmp_path / f"{name}.npz", features=chance.normal(size=(30, 6)).astype(np.float32), fps=25)
    run = make_run(
        "encoder.base=vector",
        "encoder.vector.in_features=6",
        "encoder.vector.velocity=true",
        "encoder.embedder=mlp",
        "encoder.mlp.fc_channels=[8]",
    )
    export_onnx(run, tmp_path / "v.onnx", videos=tmp_path)
    exported, embedded = embed_exported(tmp_path / "v.onnx", tmp_path), embed_videos(run, tmp_path)
    np.testing.assert_allclose(exported["b"], embedded["b"], atol=1e-5)


@pytest.mark.parametrize("name", ["base.onnx", "embedder.onnx", "model.json"])
def test_a_changed_file_is_refused_in_one_line(
    conv_model: Path, clips: Path, tmp_path: Path, name: str
) -> None:
    folder = shutil.copytree(conv_model, tmp_path / "model")
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(UserError, match=name) as caught:
        embed_exported(folder, clips, cache=tmp_path / "cache")
    assert "\n" not in str(caught.value)


def test_a_foreign_network_with_the_right_digest_is_refused(
    conv_model: Path, clips: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(conv_model, tmp_path / "model")
    for content in (b"not onnx", (folder / "base.onnx").read_bytes()):
        (folder / "embedder.onnx").write_bytes(content)
        files = {**read_model(folder).files, "embedder.onnx": hashlib.sha256(content).hexdigest()}
        model = dataclasses.replace(read_model(folder), files=files)
        (folder / "model.json").write_text(json.dumps(model.to_json()))
        with pytest.raises(CheckpointError, match=r"embedder\.onnx") as caught:
            embed_exported(folder, clips, cache=tmp_path / "cache")
        assert "\n" not in str(caught.value)


def test_an_exported_model_is_no_run(
    conv_model: Path, clips: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["embed", str(clips), "--run", str(conv_model), "-o", str(conv_model.parent / "set")]
    for extra, message in (
        (["--device", "cuda"], "runs on the cpu in float32"),
        (["--part", "train"], "has no --part"),
    ):
        assert main([*words, *extra]) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(CheckpointError, match="can only embed videos"):
        load_encoder(conv_model)
    assert main(["export", "pretrained", "-o", str(clips), "--overwrite"]) == 2
    assert "has no model.json" in capsys.readouterr().err
