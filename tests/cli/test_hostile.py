"""Damaged, foreign and wrong input of every command: one line that helps, exit code 1 or 2, nothing written.

A run of sequences trains in a second, so that its files can be damaged in many ways.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from cli.conftest import Result
from cycleback.cli.main import main
from cycleback.data import read_dataset
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
        "encoder.transformer.dropout=2",
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


@pytest.mark.parametrize(
    "words",
    [
        "sync a.mp4 b.mp4 -o c.mp4",
        "sync a.mp4 b.mp4 --edits notes.csv",
        "align a.mp4 b.mp4 -o notes.csv",
        "align a.mp4 b.mp4 -o t.csv --picture c.png",
        "transfer sound a.mp4 b.mp4 -o c.mp4",
        "transfer labels labels.csv a.mp4 b.mp4 -o notes.csv",
        "transfer labels labels.csv a.mp4 b.mp4 --format elan -o eaf",
        "timing a.mp4 b.mp4 --phases 2 -o notes.csv",
        "plot similarity a.mp4 b.mp4 -o c.png",
    ],
)
def test_overwrite_replaces_only_what_this_program_wrote(
    command: Command, rendered: Path, tmp_path: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that are no input of this command are somebody's, too."""
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate("abc"):
        shutil.copy(rendered / f"pouring_00{number}.mp4", f"{name}.mp4")
    Path("labels.csv").write_text("video,event,frame\na,start,3\n")
    Path("eaf").mkdir()
    for name in ("notes.csv", "c.png", "eaf/b.eaf"):
        Path(name).write_text("mine")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result = command(*words.split(), "--overwrite")
    one_line(result, 2)
    assert "not as this program wrote it" in result.err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(("poses", "reason"), [("in", "lies in the input"), ("set", "holds index.json")])
def test_poses_are_not_written_among_videos_or_into_a_set(
    command: Command, rendered: Path, saved: Path, tmp_path: Path, poses: str, reason: str
) -> None:
    (tmp_path / "in").mkdir()
    os.link(rendered / "pouring_000.mp4", tmp_path / "in" / "a.mp4")
    shutil.copytree(saved, tmp_path / "set")
    before = sorted(tmp_path.rglob("*"))
    for place, words in ((poses, reason), ("new/sub", "lies in the embedding set")):
        result = command("embed", tmp_path / "in", "-o", tmp_path / "new", "--poses", tmp_path / place)
        one_line(result, 2)
        assert words in result.err and sorted(tmp_path.rglob("*")) == before


def test_sequences_named_one_by_one_are_sequences(
    command: Command, sequences: Path, run: Path, rendered: Path, tmp_path: Path
) -> None:
    a, b = sequences / "walk_0.npz", sequences / "walk_1.npz"
    for words in (
        ["align", a, b, "--run", run, "-o", tmp_path / "t.csv"],
        ["timing", a, b, "--run", run, "--phases", "2", "-o", tmp_path / "u.csv"],
        ["plot", "map", sequences, "--run", run, "-o", tmp_path / "m.png"],
        ["plot", "similarity", a, b, "--run", run, "-o", tmp_path / "s.png"],
    ):
        assert command(*words).code == 0
    for words, reason in (
        (["sync", sequences, "--run", run], "is no video file"),
        (["sync", a, b, "--run", run], "cannot be played"),
        (["align", a, b], "made for videos, not for sequences"),
        (
            ["align", a, rendered / "pouring_000.mp4", "--run", run],
            "made for sequences (.npz), not for videos",
        ),
    ):
        result = command(*words, "-o", tmp_path / "x.mp4" if words[0] == "sync" else tmp_path / "x.csv")
        one_line(result, 2)
        assert reason in result.err


@pytest.mark.parametrize("pin", ["nans:1s", "infs:0s", "1_0:2", "３:4", "1e1s:2", "3", "a:b", ":", "1.5:2"])
def test_pins_are_plain_numbers(command: Command, saved: Path, tmp_path: Path, pin: str) -> None:
    result = command(
        "align", "walk_0", "walk_1", "--embeddings", saved, "--pin", pin, "-o", tmp_path / "t.csv"
    )
    one_line(result, 2)
    assert "cannot read" in result.err and not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize("words", ["--smoothing-s inf", "--smoothing-s nan", "--fps 0.0001", "--fps nan"])
def test_a_pace_without_end_is_refused(
    command: Command, rendered: Path, tmp_path: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    videos = [rendered / "pouring_000.mp4", rendered / "pouring_001.mp4"]
    result = command("sync", *videos, *words.split())
    assert result.code == 2 and "Traceback" not in result.err and not list(tmp_path.iterdir())


def test_too_little_memory_is_one_line(
    command: Command, sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "cycleback.runs.learn._prepare", lambda *_, **__: torch.empty(2**52, dtype=torch.uint8)
    )
    result = command("train", sequences, "-o", tmp_path / "run", "--recipe", "poses", *QUICK)
    one_line(result, 2)
    assert "out of memory" in result.err and not (tmp_path / "run").exists()


def test_an_animated_webp_is_told(command: Command, rendered: Path, tmp_path: Path) -> None:
    from PIL import Image

    pictures = [Image.new("RGB", (64, 48), (8 * number, 40, 90)) for number in range(20)]
    pictures[0].save(tmp_path / "x.webp", save_all=True, append_images=pictures[1:], duration=40)
    pictures[0].save(tmp_path / "still.webp")
    for name, number in (("a", 0), ("b", 1)):
        os.link(rendered / f"pouring_00{number}.mp4", tmp_path / f"{name}.mp4")
    result = command("align", tmp_path / "x.webp", tmp_path / "a.mp4")
    one_line(result, 2)
    assert "x.webp is an animated .webp" in result.err and "convert it to .mp4" in result.err
    with pytest.warns(UserWarning, match=r"x\.webp is not read \(1 such in its folder\): convert"):
        names = read_dataset(tmp_path).names
    assert names == ("a", "b")


def test_a_source_of_a_published_data_set_must_be_there(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for name in ("pouring", "golfdb", "penn-action", "penn-poses"):
        for source in ("file", "nothing"):
            result = command("data", "prepare", name, tmp_path / source, tmp_path / "out")
            one_line(result, 2)
            assert source in result.err and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("fps=x", "a number above 0"),
        ("fps=nan", "a number above 0"),
        ("mirror=maybe", "true or false"),
        ("actions=3", "names, separated by commas"),
        ("actions=", "names, separated by commas"),
        ("actions=bowl,nope", "no action 'nope'"),
        ("center=3", "a text"),
    ],
)
def test_options_of_published_data_sets_are_checked(
    command: Command, tmp_path: Path, option: str, reason: str
) -> None:
    np.savez(tmp_path / "penn_action_poses.npz", a=np.ones(3))
    result = command("data", "prepare", "penn-poses", tmp_path, tmp_path / "out", option)
    one_line(result, 2)
    assert reason in result.err and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("data check {data}", "train {data} -o runs/videos --recipe poses"),
        ("evaluate {run} --data {data}", "embed {data} --run {run}"),
        ("align {data}/walk_0.npz {data}/walk_1.npz --run {run} -o {tmp}/t.csv", None),
        (
            "search query {data} walk_0@0.5 --run {run} -k 2 --between 0.1 0.9",
            "search query {data} walk_0@0.5 -k 2 --between 0.1 0.9 --run {run} --sheet hits.png",
        ),
    ],
)
def test_the_next_command_fits_sequences_and_keeps_options(
    command: Command, sequences: Path, run: Path, tmp_path: Path, words: str, expected: str | None
) -> None:
    names = {"data": sequences, "run": run, "tmp": tmp_path}
    result = command(*words.format(**names).split())
    assert result.code == 0, result.err
    last = result.out.splitlines()[-1]
    if expected is None:
        assert not last.startswith("next:")
    else:
        assert last == f"next: cycleback {expected.format(**names)}"


def test_a_device_that_is_not_there_is_one_line(command: Command, sequences: Path, tmp_path: Path) -> None:
    for device in ("cpu:9", "cuda:99", "meta", "nope", ""):
        result = command("train", sequences, "-o", tmp_path / "run", "--recipe", "poses", "--device", device)
        one_line(result, 2)
        assert "cannot compute on device" in result.err and not (tmp_path / "run").exists()
