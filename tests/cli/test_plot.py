"""`cycleback plot`: a picture of each kind, and one line for what is wrong."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cycleback.embeddings import EmbeddingSet


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    generator = np.random.default_rng(0)
    arrays = {f"take{k}": np.cumsum(generator.normal(1, 0.2, (20, 3)), axis=0) for k in range(3)}
    events = {name: {"top": 8, "impact": 14} for name in arrays}
    folder = tmp_path_factory.mktemp("sets") / "set"
    return EmbeddingSet.from_arrays(arrays, events=events, fps=25).save(folder)


@pytest.mark.parametrize(
    "words", [["map", "--by", "pca"], ["similarity", "take0", "take1"], ["progress", "--reference", "take1"]]
)
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_every_picture_of_a_set(command, saved: Path, tmp_path: Path, words: list[str], suffix: str) -> None:
    out = tmp_path / f"out.{suffix}"
    result = command("plot", *words, "--embeddings", saved, "-o", out, "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["picture"] == str(out)
    assert out.read_bytes().startswith(b"\x89PNG" if suffix == "png" else b"<?xml")


def test_a_map_of_videos_shows_their_frames(command, rendered: Path, tmp_path: Path) -> None:
    files = sorted(rendered.glob("*.mp4"))[:2]
    for name, options in (("a", []), ("b", ["--no-frames"])):
        out = tmp_path / f"{name}.png"
        assert command("plot", "map", *files, "--by", "pca", *options, "-o", out).code == 0
    with_frames, without = (np.asarray(Image.open(path).convert("L")) for path in sorted(tmp_path.iterdir()))
    assert (with_frames[:150] < 200).mean() > 0.3 > (without[:150] < 200).mean()


def test_a_video_against_itself(command, rendered: Path, tmp_path: Path) -> None:
    video = rendered / "pouring_000.mp4"
    assert command("plot", "similarity", video, video, "-o", tmp_path / "self.png").code == 0


def test_evolution_of_a_run_is_its_log(command, run_folder: Path, tmp_path: Path) -> None:
    result = command("plot", "evolution", run_folder, "-o", tmp_path / "log.svg")
    assert result.code == 0
    assert "Frames that cycle back" in (tmp_path / "log.svg").read_text()


def test_evolution_of_a_pair_has_a_matrix_a_run(
    command, run_folder: Path, rendered: Path, tmp_path: Path
) -> None:
    a, b = rendered / "pouring_000.mp4", rendered / "pouring_001.mp4"
    out = tmp_path / "pair.svg"
    assert command("plot", "evolution", "pretrained", run_folder, "--pair", a, b, "-o", out).code == 0
    assert "pretrained" in out.read_text() and out.read_text().count("frame of pouring_001") == 2


def test_the_size_is_in_inches(command, saved: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.png"
    command("plot", "progress", "--embeddings", saved, "--size", "4x3", "-o", out)
    with Image.open(out) as picture:
        assert picture.size == (600, 450)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["map"], "no videos given"),
        (["map", "--embeddings", "{saved}", "--by", "umap"], "unknown map by 'umap'; expected tsne or pca"),
        (
            ["map", "--embeddings", "{saved}", "-o", "{tmp}/x.gif"],
            "a name ending in .png, .svg or .pdf",
        ),
        (
            ["map", "--embeddings", "{saved}", "--size", "big"],
            "no size 'big': expected width x height",
        ),
        (
            ["map", "--embeddings", "{saved}", "--size", "0x5"],
            "a picture of 0x5 inches: expected sides",
        ),
        (["map", "--embeddings", "{saved}", "-o", "{saved}/index.json"], "expected a name ending in .png"),
        (["map", "{tmp}/gone.mp4"], "{tmp}/gone.mp4"),
        (["similarity", "take0", "take9", "--embeddings", "{saved}"], "take9"),
        (["progress", "--embeddings", "{saved}", "--reference", "take9"], "take9"),
        (["evolution", "{tmp}/no_run"], "no run in {tmp}/no_run"),
    ],
)
def test_bad_input_is_one_line(command, saved: Path, tmp_path: Path, words: list[str], message: str) -> None:
    filled = {"saved": saved, "tmp": tmp_path}
    output = [] if "-o" in words else ["-o", tmp_path / "out.png"]
    result = command("plot", *(word.format(**filled) for word in words), *output)
    assert (result.code, result.out) == (2, "")
    assert message.format(**filled) in result.err
    assert len([line for line in result.err.splitlines() if line.startswith("error: ")]) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_existing_picture_is_kept(command, saved: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.png"
    out.write_text("precious")
    assert "out.png exists. Add --overwrite" in command("plot", "map", "--embeddings", saved, "-o", out).err
    assert out.read_text() == "precious"
