"""Damaged, foreign and wrong input of every command: one line that helps, exit code 1 or 2, nothing written.

A run of sequences trains in a second, so that its files can be damaged in many ways.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import Result
from cycleback.cli.main import main
from cycleback.embeddings import EmbeddingSet

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
DEEP = b"[" * 100_000
QUICK = ["optimizer.num_updates=2", "optimizer.batch_size=2", "run.save_every=2", "run.log_every=1"]
Command = Callable[..., Result]


@pytest.fixture(scope="module")
def sequences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four random walks, with labels of two key events."""
    folder = tmp_path_factory.mktemp("walks") / "videos"
    folder.mkdir()
    walks = np.random.default_rng(0).normal(size=(4, 40, 6)).cumsum(axis=1).astype(np.float32)
    for number, walk in enumerate(walks):
        np.savez(folder / f"walk_{number}.npz", features=walk)
    rows = [f"walk_{number},a,9\nwalk_{number},b,25\n" for number in range(4)]
    (folder / "labels.csv").write_text("video,event,frame\n" + "".join(rows))
    return folder


@pytest.fixture(scope="module")
def run(sequences: Path, tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A run on the walks."""
    folder = tmp_path_factory.mktemp("walks") / "run"
    assert main(["train", str(sequences), "-o", str(folder), "--recipe", "poses", *QUICK]) == 0
    return folder


@pytest.fixture(scope="module")
def saved(sequences: Path, run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The walks, embedded by the run."""
    folder = tmp_path_factory.mktemp("walks") / "set"
    assert main(["embed", str(sequences), "--run", str(run), "-o", str(folder)]) == 0
    return folder


def damages(content: bytes) -> Iterator[bytes]:
    """Yield other files, and this one cut off, with a flipped bit, or with something behind it."""
    yield from (b"", PNG, DEEP, b"{}", b"null", b"\xff\xfe{", content[: len(content) // 2])
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 4
    yield from (bytes(flipped), content + b"\x00")


def one_line(result: Result, *codes: int) -> None:
    """Check that a command ended well, or with one line on stderr."""
    assert result.code in (codes or (0, 2))
    errors = [line for line in result.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == (result.code == 2), result.err
    if result.code == 2:
        assert result.err.splitlines()[-1].startswith("error: ") and len(errors[0]) < 1200


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (
            "recipe.toml",
            ["info {run}", "embed {data} --run {run} -o {out}", "train {data} -o {run} --resume"],
        ),
        ("encoder.safetensors", ["info {run}", "embed {data} --run {run} -o {out}"]),
        ("videos.json", ["info {run}", "embed {data} --run {run} -o {out} --part train"]),
        ("state.pt", ["train {data} -o {run} --resume"]),
        ("log.jsonl", ["plot evolution {run} -o {tmp}/p.png", "train {data} -o {run} --resume"]),
    ],
)
def test_damaged_runs(
    command: Command, run: Path, sequences: Path, tmp_path: Path, file: str, words: list[str]
) -> None:
    content = (run / file).read_bytes()
    for damaged in damages(content):
        for each in words:
            shutil.rmtree(tmp_path / "run", ignore_errors=True)
            shutil.copytree(run, tmp_path / "run")
            (tmp_path / "run" / file).write_bytes(damaged)
            names = {"run": tmp_path / "run", "data": sequences, "out": tmp_path / "out", "tmp": tmp_path}
            result = command(*each.format(**names).split())
            one_line(result)
            if file not in ("videos.json", "log.jsonl") and damaged[:1] != content[:1]:
                assert result.code == 2, (each, damaged[:9])
            assert result.code == 0 or not (tmp_path / "out").exists()
            shutil.rmtree(tmp_path / "out", ignore_errors=True)
            (tmp_path / "p.png").unlink(missing_ok=True)


@pytest.mark.parametrize("file", ["index.json", "embeddings.npy", "times.npy"])
def test_damaged_sets(command: Command, saved: Path, tmp_path: Path, file: str) -> None:
    words = (
        "align walk_0 walk_1 --embeddings {set} -o {out}.csv",
        "plot map --embeddings {set} -o {out}.png",
        "search query {set} walk_0@0.5",
        "search add {out} --embeddings {set}",
        "repetitions --embeddings {set} -o {out}.csv",
        "progress --reference walk_0 --embeddings {set} -o {out}.csv",
        "anomalies walk_0 --good {set} --embeddings {set} -o {out}.csv",
        "evaluate {set}",
    )
    content = (saved / file).read_bytes()
    for number, damaged in enumerate(damages(content)):
        shutil.rmtree(tmp_path / "set", ignore_errors=True)
        shutil.copytree(saved, tmp_path / "set")
        (tmp_path / "set" / file).write_bytes(damaged)
        for each in words[number % 2 :: 2]:
            result = command(*each.format(set=tmp_path / "set", out=tmp_path / "out").split())
            one_line(result, 2)
            assert sorted(path.name for path in tmp_path.iterdir() if path.name != "out") == ["set"]


STRANGE = {
    "nan": {"features": np.full((30, 6), np.nan)},
    "times that fall": {"features": np.ones((30, 6)), "times": np.arange(30)[::-1]},
    "times of text": {"features": np.ones((30, 6)), "times": np.array(["x"] * 30)},
    "complex": {"features": np.ones((30, 6), complex)},
    "objects": {"features": np.array([[{}]], dtype=object)},
    "objects beside": {"features": np.ones((30, 6)), "names": np.array([{}], dtype=object)},
    "text": {"features": np.array([["x"]])},
    "no frames": {"features": np.ones((0, 6))},
    "no features": {"features": np.ones((30, 0))},
    "three axes": {"features": np.ones((30, 6, 2))},
    "no axes": {"features": np.float64(3)},
    "no name": {"a": np.ones((30, 6)), "b": np.ones((30, 6))},
    "nothing": {},
    "too large": {"features": np.full((30, 6), 1e300)},
    "large": {"features": np.full((30, 6), 3e38)},
    "fps of text": {"features": np.ones((30, 6)), "fps": np.array("x")},
    "no fps": {"features": np.ones((30, 6)), "fps": np.array([])},
    "fps that is no number": {"features": np.ones((30, 6)), "fps": np.nan},
    "one frame": {"features": np.ones((1, 6))},
    "another size": {"features": np.ones((30, 5))},
    "constant": {"features": np.ones((30, 6))},
}


@pytest.mark.filterwarnings("ignore:1 of 2 videos have fewer than", "ignore:left out walk_1")
@pytest.mark.parametrize("name", [*STRANGE, "foreign"])
def test_strange_sequences(command: Command, sequences: Path, run: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "videos"
    shutil.copytree(sequences, folder)
    contents = [PNG, b"", DEEP, (folder / "walk_1.npz").read_bytes()[:-30]]
    for content in contents if name == "foreign" else contents[:1]:
        if name == "foreign":
            (folder / "walk_1.npz").write_bytes(content)
        else:
            np.savez(folder / "walk_1.npz", **STRANGE[name])
        one_line(command("data", "check", folder), 0, 1)
        one_line(command("embed", folder, "--run", run, "-o", tmp_path / "set"))
        shutil.rmtree(tmp_path / "set", ignore_errors=True)
        result = command("train", folder, "-o", tmp_path / "run", "--recipe", "poses", *QUICK)
        one_line(result)
        assert result.code == 0 or not (tmp_path / "run").exists()
        shutil.rmtree(tmp_path / "run", ignore_errors=True)


@pytest.mark.parametrize(
    "setting",
    [
        "encoder.dropout=2",
        "encoder.mlp.dropout=2",
        "run.save_every=0",
        "run.save_every=1e400",
        "data.held_out=2",
        "data.held_out=-0.1",
        "loss.tcc.temperature=nan",
        "loss.weights={ tcc = -1 }",
        "loss.weights={}",
        f"run.seed={2**64}",
        "run.seed=-1",
        f"run.seed={'9' * 5000}",
        "optimizer.learning_rate=inf",
        "optimizer.num_updates=0",
        "optimizer.batch_size=1e9",
        "optimizer.name=",
        "data.frames_per_video=[[[[1]]]]",
        f"data.frames_per_video={'[' * 5000}",
        "encoder.base=../../x",
        "encoder.vector.in_features=99",
        "encoder=3",
        "=",
        "a.b.c=1",
        "run.start_from=/dev/null",
        "run.start_from=\x1b[31m",
    ],
)
def test_settings_out_of_range(command: Command, sequences: Path, tmp_path: Path, setting: str) -> None:
    result = command("train", sequences, "-o", tmp_path / "run", "--recipe", "poses", *QUICK, setting)
    one_line(result, 2)
    assert not (tmp_path / "run").exists() and "\x1b" not in result.err


LABELS = [
    "",
    "video,event\nwalk_0,a\n",
    "video,event,frame\nwalk_0,a,nan\n",
    "video,event,frame\nwalk_0,a,1e99\n",
    "video,event,frame\nwalk_0,a,-3\n",
    "video,event,frame\nnobody,a,3\n",
    "video,event,seconds\nwalk_0,a,1_0\n",
    '{"database": ' + "[" * 5000,
    '{"format": "cycleback-annotations", "videos": [3]}',
    "<ANNOTATION_DOCUMENT>",
]


@pytest.mark.parametrize("text", LABELS)
def test_wrong_labels(command: Command, saved: Path, sequences: Path, tmp_path: Path, text: str) -> None:
    for name in ("labels.csv", "labels.json", "labels.eaf", "labels.txt", "labels.boris", "labels.jsonl"):
        (tmp_path / name).write_text(text)
        words = ["transfer", "labels", tmp_path / name, "--embeddings", saved, "-o", tmp_path / "out.csv"]
        one_line(command(*words), 2)
        assert not (tmp_path / "out.csv").exists()
    folder = tmp_path / "videos"
    folder.mkdir()
    for path in sequences.glob("*.npz"):
        os.link(path, folder / path.name)
    for name in ("labels.csv", "splits.csv", "people.csv", "pins.csv"):
        (folder / name).write_text(text)
        one_line(command("data", "check", folder), 0, 1, 2)
        (folder / name).unlink()


def test_pipes_are_no_files_of_any_kind(command: Command, saved: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    shutil.copytree(saved, tmp_path / "set")
    for name in ("index.json", "times.npy"):
        (tmp_path / "set" / name).unlink()
        os.mkfifo(tmp_path / "set" / name)
    recipe = tmp_path / "recipe.toml"
    os.mkfifo(recipe)
    for words in (
        ["transfer", "labels", tmp_path / "pipe", "--embeddings", saved],
        ["transfer", "labels", "/dev/zero", "--embeddings", saved],
        ["align", "walk_0", "walk_1", "--embeddings", tmp_path / "set"],
        ["train", tmp_path, "-o", tmp_path / "run", "--recipe", recipe],
        ["info", tmp_path],
    ):
        one_line(command(*words), 2)


def test_names_in_a_set_are_names(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set may name any path: what is there is looked at as a video, and nothing else happens."""
    monkeypatch.chdir(tmp_path)
    arrays = {"[/red]": np.eye(9), "-b": np.eye(9), "http:host?x": np.eye(9)}
    for path in ("/etc/passwd", "../../x", "http:host?x.mp4", "/dev/zero", "\udcff", "-"):
        paths = dict.fromkeys(arrays, path)
        EmbeddingSet.from_arrays(arrays, paths=paths, fps=10.0).save("set", overwrite=True)
        one_line(command("sync", "--embeddings", "set", "-o", "x.mp4"), 2)
        one_line(command("search", "query", "set", "[/red]@0.1"))
        one_line(
            command("align", "[/red]", "http:host?x", "--embeddings", "set", "-o", "t.csv", "--overwrite")
        )
    assert sorted(path.name for path in tmp_path.iterdir()) in (["set"], ["set", "t.csv"])


def test_a_name_that_is_too_long_is_one_line(command: Command, saved: Path, tmp_path: Path) -> None:
    long = "x" * 5000
    for words in (
        ["align", long, "b"],
        ["embed", long, "-o", tmp_path / "set"],
        ["data", "check", long],
        ["info", long],
        ["train", saved, "-o", tmp_path / long, "--recipe", long],
        ["transfer", "labels", long, "--embeddings", saved],
        ["search", "query", long, "x@1"],
    ):
        one_line(command(*words), 2)
